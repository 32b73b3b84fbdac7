package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2/ktesting"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// contend starts an engine that gives way for a short time only.
func (f *fixture) contend(c Contention, ruleYAML ...string) *fixture {
	f.Helper()
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		f.Fatal(err)
	}
	return f.startAs(config, Options{Contention: c, Registerer: prometheus.NewRegistry()}, ruleYAML...)
}

// counted is a metric of the engine, for one rule.
func (f *fixture) counted(name, rule string) int {
	f.Helper()
	return int(metric(f.T, f.engine.opts.Registerer.(prometheus.Gatherer), name, rule))
}

// opponent watches an object and acts whenever it is not as it wants it.
type opponent struct {
	acts atomic.Int64
	stop func()
}

func (f *fixture) opponent(gvr schema.GroupVersionResource, name string, wrong func(*unstructured.Unstructured) bool, act func(context.Context, dynamic.ResourceInterface) error) *opponent {
	f.Helper()
	objects := f.client.Resource(gvr).Namespace(f.ns)
	ctx, cancel := context.WithCancel(f.Context())
	w, err := objects.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		f.Fatal(err)
	}
	o := &opponent{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || !wrong(u) {
				continue
			}
			if err := act(ctx, objects); err != nil && ctx.Err() == nil {
				f.Errorf("the opponent cannot act: %v", err)
			}
			o.acts.Add(1)
		}
	}()
	o.stop = func() {
		cancel()
		w.Stop()
		<-done
	}
	f.Cleanup(o.stop)
	return o
}

// gitOps is an opponent who applies a label as a GitOps controller does.
func (f *fixture) gitOps(manager, name, label, value string) *opponent {
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{%q:%q}}}`, name, label, value)
	return f.opponent(configmaps, name,
		func(u *unstructured.Unstructured) bool { return u.GetLabels()[label] != value },
		func(ctx context.Context, objects dynamic.ResourceInterface) error {
			force := true
			_, err := objects.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
			return err
		})
}

// mergeAs is merge under the name of a field manager.
func (f *fixture) mergeAs(manager string, gvr schema.GroupVersionResource, name, patch string, subresources ...string) {
	f.Helper()
	_, err := f.client.Resource(gvr).Namespace(f.ns).Patch(f.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		f.Fatalf("patch %s: %v", name, err)
	}
}

// mentioning counts the accepted requests whose body holds a text.
func (f *fixture) mentioning(resource, text string) int {
	f.Helper()
	n := 0
	for _, e := range f.requests(resource) {
		if e.ResponseStatus.Code == 200 && strings.Contains(string(e.RequestObject), text) {
			n++
		}
	}
	return n
}

// contended waits until a rule has begun to be held so many times, and returns
// the contention.
func (f *fixture) contended(timeout time.Duration, rule string, holds int) (out Contended) {
	f.Helper()
	testcluster.Eventually(f, timeout, func() error {
		for _, c := range f.engine.Contentions() {
			// That the managers are known is the last that happens.
			if c.Rule == rule && c.Holds >= holds && c.Fields != nil {
				out = c
				return nil
			}
		}
		return fmt.Errorf("rule %s is not in its hold %d; contentions: %+v", rule, holds, f.engine.Contentions())
	})
	return out
}

const (
	setsTeam = `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {team: web}}}}`
	followsWant = `
resource: {version: v1, resource: configmaps}
condition: object.?data.want.hasValue() && object.data.?is.orValue('') != object.data.want
patch: {merge: {data: {is: "${object.data.want}"}}}`
)

// FGT-02: a GitOps controller that applies what is in Git after each fix.
func TestAGitOpsLoopIsGivenWayTo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {team: git}}}`)
	loop := f.gitOps("argocd-controller", "c", "team", "git")
	f.contend(Contention{Window: 20 * time.Second, firstHold: time.Second}, rule("team", setsTeam), rule("follow", followsWant))

	c := f.contended(30*time.Second, "team", 1)
	if writes := f.mentioning("configmaps", `"team"`); c.Holds == 1 && writes != DefaultContentionCount {
		t.Errorf("%d writes before the rule was held, want %d", writes, DefaultContentionCount)
	}
	if len(c.Managers) != 1 || c.Managers[0] != "argocd-controller" || len(c.Fields) != 1 || c.Fields[0] != "metadata.labels.team" {
		t.Errorf("in contention with %q about %q", c.Managers, c.Fields)
	}
	f.wantEvent("c", "Warning Contended: rule team: held for 1s: metadata.labels.team is set back again and again by argocd-controller (5 times in 20s)")
	f.wantReadyz(soon, "[!] rule team on configmaps: in contention about 1 object, e.g. "+f.ns+"/c: metadata.labels.team by argocd-controller, ", "\nready")

	// Each hold is followed by one write, and twice as long.
	f.contended(30*time.Second, "team", 2)
	f.wantEvent("c", "rule team: held for 2s: metadata.labels.team is set back again and again by argocd-controller (hold 2 in a row)")
	// Another rule on the same object goes on all the time.
	f.merge(configmaps, "c", `{"data":{"want":"1"}}`)
	f.eventually(soon, configmaps, "c", "1", "data", "is")

	// When the other one gives up, the object is right after the hold, and a
	// window later everything is as if nothing had been.
	loop.stop()
	f.eventually(30*time.Second, configmaps, "c", "web", "metadata", "labels", "team")
	testcluster.Eventually(t, 90*time.Second, func() error {
		if all := f.engine.Contentions(); len(all) > 0 {
			return fmt.Errorf("still in contention: %+v", all)
		}
		return nil
	})
	if n := f.counted("rectifier_contended_objects", "team"); n != 0 {
		t.Errorf("rectifier_contended_objects is %d", n)
	}
	holds := f.counted("rectifier_contentions_total", "team")
	if writes := f.mentioning("configmaps", `"team"`); writes != DefaultContentionCount+holds {
		t.Errorf("%d writes with %d holds; want the count and one after each hold", writes, holds)
	}
	if _, body := f.readyz(); strings.Contains(body, "contention") {
		t.Errorf("readyz still tells of contention:\n%s", body)
	}
	testcluster.Eventually(t, soon, func() error {
		told := 0
		for _, e := range f.eventsOn("c") {
			if strings.Contains(e, "Contended") {
				told++
			}
		}
		if told != holds {
			return fmt.Errorf("%d Events of %d holds, want each told once: %q", told, holds, f.eventsOn("c"))
		}
		return nil
	})
}

// The outage: two writers want 3 and 5, and this is one of them.
func TestAWriterThatKeepsFighting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "5", 3)
	f.contend(Contention{firstHold: time.Second}, expectedReplicas(t))
	f.eventually(soon, deployments, "web", int64(5), "spec", "replicas")

	flips := f.flip("web", 8*time.Second, 50*time.Millisecond, 3, 5)
	c := f.contended(soon, "expected-replicas", 1)
	if len(c.Managers) != 1 || c.Managers[0] != "flipper" {
		t.Errorf("in contention with %q", c.Managers)
	}
	f.eventually(30*time.Second, deployments, "web", int64(5), "spec", "replicas")
	f.settle("deployments")
	accepted, all := f.writes("deployments")
	holds := f.counted("rectifier_contentions_total", "expected-replicas")
	t.Logf("%d flips, %d PATCH requests, %d accepted, %d holds", flips, all, accepted, holds)
	if accepted > DefaultContentionCount+holds {
		t.Errorf("%d accepted writes with %d holds for %d flips", accepted, holds, flips)
	}
	for _, e := range f.requests("deployments") {
		if code := e.ResponseStatus.Code; code != 200 && code != 409 {
			t.Errorf("a request was answered with %d", code)
		}
	}
}

// flip is a second writer without any manners. It returns how often it wrote.
func (f *fixture) flip(name string, howLong, every time.Duration, values ...int) int {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), howLong)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	n := 0
	for {
		select {
		case <-ctx.Done():
			return n
		case <-tick.C:
		}
		f.mergeAs("flipper", deployments, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, values[n%len(values)]), "scale")
		n++
	}
}

// FGT-06, over two installations: each gives way, and says to whom.
func TestTwoEnginesThatDisagree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := newFixture(t)
	g.ns = f.ns
	// Of an object that is created without any field, the server does not begin
	// to track who owns what.
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: web}}}`)
	const tier = `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {tier: %s}}}}`
	for _, side := range []struct {
		*fixture
		name string
	}{{f, "one"}, {g, "two"}} {
		config, err := side.cp.User(side.user, "system:masters")
		if err != nil {
			t.Fatal(err)
		}
		opts := Options{FieldManager: "rectifier-" + side.name, Registerer: prometheus.NewRegistry(), Contention: Contention{firstHold: 2 * time.Second}}
		side.startAs(config, opts, rule(side.name, fmt.Sprintf(tier, side.name)))
	}
	if c := f.contended(40*time.Second, "one", 1); len(c.Managers) != 1 || c.Managers[0] != "rectifier-two" {
		t.Errorf("one is in contention with %q", c.Managers)
	}
	if c := g.contended(40*time.Second, "two", 1); len(c.Managers) != 1 || c.Managers[0] != "rectifier-one" {
		t.Errorf("two is in contention with %q", c.Managers)
	}
	f.contended(40*time.Second, "one", 2)
	f.stop()
	g.stop()
	for _, side := range []struct {
		*fixture
		rule string
	}{{f, "one"}, {g, "two"}} {
		accepted, _ := side.writes("configmaps")
		if holds := side.counted("rectifier_contentions_total", side.rule); accepted > DefaultContentionCount+holds {
			t.Errorf("rule %s: %d writes with %d holds", side.rule, accepted, holds)
		}
	}
}

// FGT-06, on two versions of a resource, where no evaluation sees both rules.
func TestRulesOnTwoVersionsThatDisagree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v1 := schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}
	f.create(v1, `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 3}`)
	const most = `
resource: {group: autoscaling, version: %s, resource: horizontalpodautoscalers}
patch: {merge: {spec: {maxReplicas: %d}}}`
	f.start(rule("five", fmt.Sprintf(most, "v1", 5)), rule("six", fmt.Sprintf(most, "v2", 6)))
	f.wantEventWithin(30*time.Second, "web", "held for 1m0s: spec.maxReplicas is set back again and again by another writer under the field manager rectifier (5 times in 10m0s)")
	f.settle("horizontalpodautoscalers")
	if accepted, _ := f.writes("horizontalpodautoscalers"); accepted != 2*DefaultContentionCount {
		t.Errorf("%d writes, want %d by each", accepted, DefaultContentionCount)
	}
	if n := len(f.engine.Contentions()); n != 1 {
		t.Errorf("%d rules are held; the other one's change stays", n)
	}
}

// One who sets it back now and then, and changes that are meant, are no
// contention.
func TestWhatIsNoContention(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "human", "5", 5)
	f.create(deployments, deploymentYAML, "scaled", "1", 1)
	f.contend(Contention{}, expectedReplicas(t))
	f.wantReadyz(soon, "deployments: synced")
	for range 3 {
		f.merge(deployments, "human", `{"spec":{"replicas":2}}`, "scale")
		f.eventually(soon, deployments, "human", int64(5), "spec", "replicas")
	}
	for n := int64(2); n <= 7; n++ {
		f.merge(deployments, "scaled", fmt.Sprintf(`{"metadata":{"annotations":{"example.io/expected-replicas":"%d"}}}`, n))
		f.eventually(soon, deployments, "scaled", n, "spec", "replicas")
	}
	f.settle("deployments")
	if accepted, _ := f.writes("deployments"); accepted != 3+6 {
		t.Errorf("%d writes, want 9", accepted)
	}
	if n := f.counted("rectifier_contentions_total", "expected-replicas"); n != 0 || len(f.engine.Contentions()) != 0 {
		t.Errorf("%d holds", n)
	}
}

// Two objects that are computed from one another count for ever: no value comes
// twice, and no evaluation sees it.
func TestACounterOverTwoObjectsIsCapped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"a", "b"} {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {pair: one}}, data: {num: "1"}}`, name)
	}
	const most = 20
	f.contend(Contention{Cap: most}, rule("count", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], labelSelector: {matchLabels: {pair: one}}}
lookups:
- {name: pair, resource: {version: v1, resource: configmaps}, namespace: "${object.metadata.namespace}", labelSelector: {matchLabels: {pair: one}}}
variables:
- {name: others, expression: "lookups.pair.filter(o, o.metadata.name != object.metadata.name).map(o, int(o.data.num))"}
condition: variables.others.exists(o, o >= int(object.data.num))
patch: {merge: {data: {num: "${string(variables.others[0] + 1)}"}}}`))
	c := f.contended(30*time.Second, "count", 1)
	f.wantEvent(c.Name, fmt.Sprintf("held for 1m0s: it changes data.num again and again (%d times in 10m0s)", most))
	f.settle("configmaps")
	if accepted, _ := f.writes("configmaps"); accepted > 2*most {
		t.Errorf("%d writes to two objects, the cap is %d for each", accepted, most)
	}
}

// A rule with two endpoints makes one change, if by two requests.
func TestTwoRequestsAreOneChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	f.start(rule("both", `
resource: {group: apps, version: v1, resource: deployments}
patches:
- {merge: {metadata: {labels: {team: web}}}}
- {subresource: scale, merge: {spec: {replicas: 2}}}`))
	for range DefaultContentionCount {
		f.eventually(soon, deployments, "web", int64(2), "spec", "replicas")
		f.eventually(soon, deployments, "web", "web", "metadata", "labels", "team")
		f.mergeAs("helm", deployments, "web", `{"metadata":{"labels":{"team":"other"}},"spec":{"replicas":4}}`)
	}
	f.wantEvent("web", "held for 1m0s: metadata.labels.team, spec.replicas is set back again and again by helm (5 times in 10m0s)")
	if accepted, _ := f.writes("deployments"); accepted != 2*DefaultContentionCount {
		t.Errorf("%d writes, want two for each change", accepted)
	}
}

// Rules that are sent one by one, because another one is refused, give way too.
func TestContentionBesideARefusedRule(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	f.start(
		rule("bad", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {spec: {selector: {matchLabels: {app: other}}}}}`),
		rule("team", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {metadata: {labels: {team: web}}}}`))
	for range DefaultContentionCount {
		f.eventually(soon, deployments, "web", "web", "metadata", "labels", "team")
		f.mergeAs("helm", deployments, "web", `{"metadata":{"labels":{"team":"other"}}}`)
	}
	f.wantEvent("web", "rule team: held for 1m0s: metadata.labels.team is set back again and again by helm (5 times in 10m0s)")
	f.settle("deployments")
	if accepted, _ := f.writes("deployments"); accepted != DefaultContentionCount {
		t.Errorf("%d writes, want %d", accepted, DefaultContentionCount)
	}
}

// Who removes a field does not own it.
func TestOneWhoRemovesAFieldIsPresumed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {keep: it}}}`)
	time.Sleep(time.Second) // managedFields have seconds: who created it must not seem to have written since
	var n atomic.Int64
	f.opponent(configmaps, "c",
		func(u *unstructured.Unstructured) bool { return u.GetLabels()["team"] != "" },
		func(ctx context.Context, objects dynamic.ResourceInterface) error {
			body := fmt.Appendf(nil, `{"metadata":{"labels":{"team":null}},"data":{"cleaned":"%d"}}`, n.Add(1))
			_, err := objects.Patch(ctx, "c", types.MergePatchType, body, metav1.PatchOptions{FieldManager: "cleaner"})
			return err
		})
	f.start(rule("team", setsTeam))
	f.wantEventWithin(30*time.Second, "c", "held for 1m0s: metadata.labels.team is set back again and again by cleaner, presumably (5 times in 10m0s)")
}

// A write that the server does not keep is no contention, however often it is
// tried.
func TestAnIneffectiveWriteIsNoContention(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	f.contend(Contention{Count: 1}, rule("cpu", `
resource: {group: apps, version: v1, resource: deployments}
condition: object.spec.template.spec.containers[0].?resources.?requests.?cpu.orValue('') != '1000m'
patch: {json: [{op: add, path: /spec/template/spec/containers/0/resources, value: {requests: {cpu: 1000m}}}]}`))
	f.wantEvent("web", "Warning Ineffective: rule cpu")
	time.Sleep(firstHold)
	f.merge(deployments, "web", `{"metadata":{"labels":{"touched":"1"}}}`)
	f.settle("deployments")
	if all := f.engine.Contentions(); len(all) > 0 {
		t.Errorf("contentions: %+v", all)
	}
}

// Once gives way, too, but does not wait for the end of a hold.
func TestOnceDoesNotWaitForAHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {team: git}}}`)
	// Each fix is undone before the engine has the answer to it: otherwise Once
	// may end in between.
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/c") {
			f.mergeAs("git", configmaps, "c", `{"metadata":{"labels":{"team":"git"}}}`)
		}
		return answer, err
	})
	e, err := New(f.options(config, Options{}, rule("team", setsTeam)))
	if err != nil {
		t.Fatal(err)
	}
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithTimeout(ctx, 50*time.Second) // a hold takes a minute
	defer cancel()
	summary, err := e.Once(ctx)
	if errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
	if accepted, _ := f.writes("configmaps"); accepted != DefaultContentionCount || summary.Failed != 1 {
		t.Errorf("%d writes, %+v; want %d and one failure", accepted, summary, DefaultContentionCount)
	}
}
