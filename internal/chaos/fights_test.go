package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

var fightFaults = []scenario{
	{
		name: "gitops-loop", fault: "a GitOps controller applies what is in Git after each fix",
		run: func(t *trial) { fightGitOps(t) },
	},
	{
		name: "gitops-loop-ends", fault: "the same until the second hold, then it gives up", long: true,
		run: outlastGitOps,
	},
	{
		name: "horizontal-pod-autoscaler", fault: "a HorizontalPodAutoscaler (real controller manager) wants other replicas than a rule", long: true,
		run: fightAutoscaler,
	},
}

// setsTeam is what the GitOps controller sets back.
const setsTeam = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: team}
spec:
  resource: {version: v1, resource: configmaps}
  match: {namespaces: [NS]}
  patch: {merge: {metadata: {labels: {team: web}}}}
`

// fightGitOps lets a rule be set back until it gives way. Another rule on the
// same object keeps working.
func fightGitOps(t *trial) (p *patient, loop *gitOps) {
	l := t.shared()
	loop = l.gitOps("argocd-controller", "cm-0")
	p = l.start(func(o *engine.Options) { o.Contention.Window = 30 * time.Second }, setsTeam, follow)
	c := p.contended(time.Minute, "team", 1)
	if !slices.Equal(c.Managers, []string{"argocd-controller"}) {
		p.Errorf("in contention with %q", c.Managers)
	}
	if n := p.accepted(configmaps, "cm-0", `"team"`); n != engine.DefaultContentionCount {
		p.Errorf("%d writes before the rule was held", n)
	}
	p.saw("held after %d writes; set back %d times by %s", engine.DefaultContentionCount, loop.applied.Load(), strings.Join(c.Managers, ", "))
	l.merge(configmaps, l.ns, "cm-0", `{"data":{"want":"1"}}`)
	l.allRight(time.Minute, 1, "1")
	return p, loop
}

// outlastGitOps goes on after the first hold, which takes a minute.
func outlastGitOps(t *trial) {
	p, loop := fightGitOps(t)
	p.contended(3*time.Minute, "team", 2)
	loop.stop()
	began := time.Now()
	testcluster.Eventually(t, 5*time.Minute, func() error {
		if team := p.get(configmaps, "cm-0").GetLabels()["team"]; team != "web" {
			return fmt.Errorf("the label is %q", team)
		}
		return nil
	})
	p.saw("right %.0f s after it gave up, at the end of the second hold", time.Since(began).Seconds())
	testcluster.Eventually(t, 2*time.Minute, func() error {
		if all := p.engine.Contentions(); len(all) > 0 {
			return fmt.Errorf("still in contention: %+v", all)
		}
		return nil
	})
	if n, want := p.accepted(configmaps, "cm-0", `"team"`), engine.DefaultContentionCount+2; n != want {
		p.Errorf("%d writes, want %d: one after each hold", n, want)
	}
}

// fightAutoscaler has a rule that knows nothing of autoscalers, and the built-in
// one that does.
func fightAutoscaler(t *trial) {
	testcluster.RequireControllerManager(t)
	l := t.own(controlplane.Options{ControllerManager: true})
	const naive = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: naive}
spec:
  resource: {group: apps, version: v1, resource: deployments}
  match: {namespaces: [NS], names: [naive]}
  patch: {subresource: scale, merge: {spec: {replicas: 1}}}
`
	for _, name := range []string{"naive", "annotated"} {
		l.create(deployments, l.ns, l.fromYAML(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {example.io/expected-replicas: "1"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: registry.example/web:1}]}`, name))
		l.create(autoscalers, l.ns, l.fromYAML(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %[1]s}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}, minReplicas: 3, maxReplicas: 5}`, name))
	}
	source, err := builtin.Source(builtin.Default)
	if err != nil {
		t.Fatal(err)
	}
	p := l.start(nil, naive, string(source.Data))
	c := p.contended(2*time.Minute, "naive", 1)
	p.saw("held after %d writes; in contention with %s", p.accepted(deployments, "naive", "replicas"), strings.Join(c.Managers, ", "))
	if !slices.Equal(c.Managers, []string{"kube-controller-manager"}) || !slices.Equal(c.Fields, []string{"spec.replicas"}) {
		t.Errorf("in contention with %q about %q", c.Managers, c.Fields)
	}
	if n := p.accepted(deployments, "naive", "replicas"); n != engine.DefaultContentionCount {
		t.Errorf("%d writes before the rule was held", n)
	}
	p.contended(3*time.Minute, "naive", 2)
	if n := p.accepted(deployments, "naive", "replicas"); n != engine.DefaultContentionCount+1 {
		t.Errorf("%d writes before the second hold, want one after the first", n)
	}
	replicas := func() error {
		if n, _, _ := unstructured.NestedInt64(p.get(deployments, "annotated").Object, "spec", "replicas"); n != 3 {
			return fmt.Errorf("%d replicas", n)
		}
		return nil
	}
	testcluster.Eventually(t, time.Minute, replicas)
	if n := p.accepted(deployments, "annotated", ""); n != 0 {
		t.Errorf("%d writes by the built-in rule, which can see the autoscaler", n)
	}
}

// gitOps is a controller that applies a label whenever it is another one.
type gitOps struct {
	applied atomic.Int64
	stop    func()
}

func (l *lab) gitOps(manager, name string) *gitOps {
	l.Helper()
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"team":"git"}}}`, name)
	objects := l.client.Resource(configmaps).Namespace(l.ns)
	force := true
	apply := func(ctx context.Context) error {
		_, err := objects.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
		return err
	}
	if err := apply(l.Context()); err != nil {
		l.Fatalf("apply %s: %v", name, err)
	}
	ctx, cancel := context.WithCancel(l.Context())
	w, err := objects.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		l.Fatalf("watch %s: %v", name, err)
	}
	g := &gitOps{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); !ok || u.GetLabels()["team"] == "git" {
				continue
			}
			if err := apply(ctx); err != nil && ctx.Err() == nil {
				l.Errorf("apply %s: %v", name, err)
			}
			g.applied.Add(1)
		}
	}()
	g.stop = func() {
		cancel()
		w.Stop()
		<-done
	}
	l.Cleanup(g.stop)
	return g
}

// contended waits until a rule has begun to be held so many times.
func (p *patient) contended(timeout time.Duration, rule string, holds int) (out engine.Contended) {
	p.Helper()
	testcluster.Eventually(p, timeout, func() error {
		for _, c := range p.engine.Contentions() {
			if c.Rule == rule && c.Holds >= holds && c.Fields != nil {
				out = c
				return nil
			}
		}
		return fmt.Errorf("rule %s is not in its hold %d; contentions: %+v", rule, holds, p.engine.Contentions())
	})
	return out
}

// accepted counts the patient's accepted writes to an object whose body holds a text.
func (p *patient) accepted(resource schema.GroupVersionResource, name, text string) int {
	p.Helper()
	n := 0
	for _, e := range p.requests(resource.Resource) {
		if e.Verb == "patch" && e.ObjectRef.Name == name && e.ResponseStatus.Code == 200 && strings.Contains(string(e.RequestObject), text) {
			n++
		}
	}
	return n
}

func (l *lab) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.Helper()
	u, err := l.client.Resource(resource).Namespace(l.ns).Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.Fatalf("get %s: %v", name, err)
	}
	return u
}

// fromYAML reads an object.
func (l *lab) fromYAML(y string, args ...any) *unstructured.Unstructured {
	l.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, y, args...), &u.Object); err != nil {
		l.Fatal(err)
	}
	return u
}
