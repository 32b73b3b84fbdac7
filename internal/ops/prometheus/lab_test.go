package prometheus

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// lab is where a scenario happens: a namespace of the cluster, and a job of
// Prometheus with the instances that the scenario starts.
type lab struct {
	*testing.T
	*monitor
	binary string // rectifier
	cp     *controlplane.ControlPlane
	client dynamic.Interface // the administrator's
	job    string
	ns     string
	rules  string    // the folder with the rules of all instances
	rested time.Time // since when nothing may fire without a cause
	up     []*instance
	fired  []string
}

// instance is a `rectifier run`, or what stands for one.
type instance struct {
	user, address string
	kill          func()
}

var (
	configmaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	leases       = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	crds         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	bindings     = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// follow is the rule of most scenarios: data.is of a ConfigMap has to follow
// data.want.
const follow = `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS]}
condition: object.?data.want.hasValue() && object.data.?is.orValue('') != object.data.want
patch: {merge: {data: {is: "${object.data.want}"}}}`

// rule writes a rule file; NS in it stands for the namespace of the lab. An empty
// spec takes it away.
func (l *lab) rule(name, spec string) {
	l.Helper()
	spec = strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(spec, "NS", l.ns)), "\n", "\n  ")
	l.ruleFile(name, "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: "+name+"}\nspec:\n  "+spec+"\n")
}

func (l *lab) ruleFile(name, content string) {
	l.Helper()
	file := filepath.Join(l.rules, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		l.Fatal(err)
	}
	if err := os.Rename(file, file+".yaml"); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) removeRule(name string) {
	l.Helper()
	if err := os.Remove(filepath.Join(l.rules, name+".yaml")); err != nil {
		l.Fatal(err)
	}
}

var users atomic.Int64

// run starts `rectifier run` as a user who may do everything.
func (l *lab) run(flags ...string) *instance {
	l.Helper()
	user := fmt.Sprintf("rectifier-%d", users.Add(1))
	return l.runAs(user, l.kubeconfig(user, "system:masters"), flags...)
}

func (l *lab) kubeconfig(user string, groups ...string) string {
	l.Helper()
	file := filepath.Join(l.TempDir(), "kubeconfig")
	if err := l.cp.WriteKubeconfig(file, user, groups...); err != nil {
		l.Fatal(err)
	}
	return file
}

var servingAddress = regexp.MustCompile(`Serving status, metrics and health checks.* address="([^"]+)"`)

// runAs starts `rectifier run` and has it scraped.
func (l *lab) runAs(user, kubeconfig string, flags ...string) *instance {
	l.Helper()
	log := &lines{}
	cmd := exec.Command(l.binary, append([]string{"run", "--kubeconfig", kubeconfig, "--rules", l.rules, "--builtin", "none", "--bind-address", "127.0.0.1:0"}, flags...)...)
	i := &instance{user: user, kill: start(l.T, cmd, log)}
	l.Cleanup(func() {
		if l.Failed() {
			l.Logf("what %s logged:\n%s", user, log)
		}
	})
	testcluster.Eventually(l, time.Minute, func() error {
		address := servingAddress.FindStringSubmatch(log.String())
		if address == nil {
			return fmt.Errorf("it serves nothing yet:\n%s", log)
		}
		i.address = address[1]
		return nil
	})
	l.scrape(append(l.up, i)...)
	return i
}

// scrape says which instances there are.
func (l *lab) scrape(up ...*instance) {
	l.Helper()
	l.up = up
	var addresses []string
	for _, i := range up {
		addresses = append(addresses, i.address)
	}
	l.watch(l.T, l.job, addresses...)
}

// gone ends an instance, and it is not looked for any more.
func (l *lab) gone(i *instance) {
	l.Helper()
	i.kill()
	l.scrape(slices.DeleteFunc(slices.Clone(l.up), func(other *instance) bool { return other == i })...)
}

// grant gives a user these rights, each "VERB,… RESOURCE.GROUP/SUBRESOURCE", and
// no others.
func (l *lab) grant(user string, rights ...string) {
	l.Helper()
	var granted []any
	for _, right := range append([]string{
		"list,watch namespaces", "list,watch customresourcedefinitions.apiextensions.k8s.io",
	}, rights...) {
		verbs, resource, _ := strings.Cut(right, " ")
		resource, group, _ := strings.Cut(resource, ".")
		var names []any
		for _, verb := range strings.Split(verbs, ",") {
			names = append(names, verb)
		}
		granted = append(granted, map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": names})
	}
	l.apply(clusterRoles, map[string]any{"kind": "ClusterRole", "metadata": map[string]any{"name": user}, "rules": granted})
	l.apply(bindings, map[string]any{
		"kind": "ClusterRoleBinding", "metadata": map[string]any{"name": user},
		"roleRef":  map[string]any{"apiGroup": clusterRoles.Group, "kind": "ClusterRole", "name": user},
		"subjects": []any{map[string]any{"apiGroup": clusterRoles.Group, "kind": "User", "name": user}},
	})
}

func (l *lab) apply(resource schema.GroupVersionResource, object map[string]any) {
	l.Helper()
	object["apiVersion"] = resource.GroupVersion().String()
	u := &unstructured.Unstructured{Object: object}
	if _, err := l.client.Resource(resource).Namespace(u.GetNamespace()).Apply(l.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		l.Fatalf("apply %s %s: %v", u.GetKind(), u.GetName(), err)
	}
}

// create makes an object from YAML; NS in it stands for the namespace of the lab.
func (l *lab) create(resource schema.GroupVersionResource, y string) {
	l.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(y, "NS", l.ns)), &u.Object); err != nil {
		l.Fatal(err)
	}
	if _, err := l.client.Resource(resource).Namespace(u.GetNamespace()).Create(l.Context(), u, metav1.CreateOptions{}); err != nil {
		l.Fatalf("create %s %s: %v", u.GetKind(), u.GetName(), err)
	}
}

// want has a ConfigMap want a value; it is made if it is not there.
func (l *lab) want(name, value string) error {
	_, err := l.client.Resource(configmaps).Namespace(l.ns).Patch(l.Context(), name, types.ApplyPatchType, fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"want":%q}}`, name, value), metav1.PatchOptions{FieldManager: "drift"})
	return err
}

// is waits until a ConfigMap is as it wants to be.
func (l *lab) is(name, value string) {
	l.Helper()
	testcluster.Eventually(l, time.Minute, func() error {
		u, err := l.client.Resource(configmaps).Namespace(l.ns).Get(l.Context(), name, metav1.GetOptions{})
		if err == nil && is(u) != value {
			err = fmt.Errorf("data.is of %s is %q, not %q", name, is(u), value)
		}
		return err
	})
}

func is(u *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(u.Object, "data", "is")
	return value
}

// keepDrifting changes some ConfigMaps again and again, until the test ends.
func (l *lab) keepDrifting() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; l.Context().Err() == nil; n++ {
			if err := l.want(fmt.Sprintf("drifts-%d", n%4), fmt.Sprint(n)); err != nil && l.Context().Err() == nil && !apierrors.IsConflict(err) {
				l.Errorf("drift: %v", err)
				return
			}
			select {
			case <-time.After(250 * time.Millisecond):
			case <-l.Context().Done():
			}
		}
	}()
	l.Cleanup(func() { <-done })
}

// atRest waits until the instances are scraped and no alert of the job is there,
// not even a pending one, and then for some time in which none may fire.
func (l *lab) atRest(lasts time.Duration) {
	l.Helper()
	testcluster.Eventually(l, 2*time.Minute, func() error {
		up, err := l.query(fmt.Sprintf(`up{job=%q} == 1`, l.job))
		if err == nil && len(up) != len(l.up) {
			err = fmt.Errorf("%d of %d instances are scraped", len(up), len(l.up))
		}
		if err != nil {
			return err
		}
		names, err := l.alertsSince(l.job, ".*", time.Now().Add(-4*scrapeInterval))
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("there are alerts without a cause: %q", names)
		}
		return err
	})
	l.rested = time.Now()
	time.Sleep(lasts) // nothing is to be waited for
	names, err := l.alertsSince(l.job, "firing", l.rested)
	if err != nil {
		l.Fatal(err)
	}
	if len(names) > 0 {
		l.Errorf("alerts without a cause: %q", names)
	}
}

// fires waits until alerts of the job fire, and looks at what people read.
func (l *lab) fires(names ...string) {
	l.Helper()
	for _, name := range names {
		l.fired = append(l.fired, name)
		testcluster.Eventually(l, 2*time.Minute, func() error {
			now, err := l.alertsNow(l.job)
			if err == nil && !slices.Contains(now, name) {
				err = fmt.Errorf("%s does not fire; there are %q", name, now)
			}
			return err
		})
		read, err := l.annotations(l.job, name)
		if err != nil {
			l.Error(err)
		}
		for key, text := range read {
			if strings.Contains(text, "<no value>") || strings.Contains(text, "error expanding") || strings.Contains(text, "{{") {
				l.Errorf("%s of %s: %s", key, name, text)
			}
		}
		l.Logf("%s fires: %s", name, read["summary"])
	}
}

// resolves waits until alerts of the job do not fire any more.
func (l *lab) resolves(names ...string) {
	l.Helper()
	testcluster.Eventually(l, 2*time.Minute, func() error {
		now, err := l.alertsNow(l.job)
		for _, name := range names {
			if err == nil && slices.Contains(now, name) {
				err = fmt.Errorf("%s still fires", name)
			}
		}
		return err
	})
}
