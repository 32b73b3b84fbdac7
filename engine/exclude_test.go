package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
)

// excludedFixture is a fixture with another namespace, which is excluded by a
// glob: there is the same to do in both.
func excludedFixture(t *testing.T) (f, excluded *fixture, glob string) {
	t.Helper()
	f = newFixture(t)
	there := *f
	there.ns = testcluster.Namespace(t)
	return f, &there, there.ns[:len(there.ns)-1] + "?"
}

// inBoth makes rules that are about both namespaces, and these Namespaces themselves.
func (f *fixture) inBoth(excluded, team string) []string {
	return []string{rule("objects", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS, `+excluded+`], names: ["drifted*"]}
lookups:
- {name: there, resource: {version: v1, resource: configmaps}, namespace: `+excluded+`, where: {metadata.name: source}}
patch: {merge: {metadata: {labels: {team: "`+team+`", seen: "${lookups.there[0].data.v}"}}}}`),
		rule("namespaces", `
resource: {version: v1, resource: namespaces}
match: {names: [NS, `+excluded+`]}
patch: {merge: {metadata: {labels: {team: "`+team+`"}}}}`)}
}

func (f *fixture) wantNamespaceLabel(want string) {
	f.Helper()
	testcluster.Eventually(f, soon, func() error {
		got, err := f.namespaceLabel()
		if err == nil && got != want {
			err = errNot{got, want}
		}
		return err
	})
}

type errNot struct{ got, want string }

func (e errNot) Error() string { return "it is " + e.got + ", not " + e.want }

// In an excluded namespace nothing is done, on whatever way an object comes to be
// looked at, and neither to the Namespace. What is looked up there is still seen.
func TestExcludedNamespacesAreLeftAlone(t *testing.T) {
	f, there, glob := excludedFixture(t)
	there.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: source}, data: {v: "1"}}`)
	for _, one := range []*fixture{f, there} {
		one.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted-before}}`)
	}
	config := f.everything()
	options := Options{ExcludeNamespaces: []string{"kube-*", glob}}
	f.startAs(config, options, f.inBoth(there.ns, "a")...)
	f.eventually(soon, configmaps, "drifted-before", "1", "metadata", "labels", "seen")
	f.wantNamespaceLabel("a")
	for _, one := range []*fixture{there, f} {
		one.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted-after}}`)
	}
	there.merge(configmaps, "source", `{"data": {"v": "2"}}`)
	f.eventually(soon, configmaps, "drifted-after", "2", "metadata", "labels", "seen")
	f.eventually(soon, configmaps, "drifted-before", "2", "metadata", "labels", "seen")
	f.reload(f.inBoth(there.ns, "b")...)
	f.eventually(soon, configmaps, "drifted-after", "b", "metadata", "labels", "team")
	f.wantNamespaceLabel("b")
	f.stop() // when all that is queued has been looked at

	e, err := New(f.options(config, options, f.inBoth(there.ns, "c")...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	summary, err := e.Once(ctx)
	if err != nil || summary.Fixed != 3 || summary.Failed != 0 {
		t.Errorf("once: %+v, %v", summary, err)
	}
	for _, name := range []string{"drifted-before", "drifted-after"} {
		if labels := there.get(configmaps, name).GetLabels(); len(labels) > 0 {
			t.Errorf("%s has been changed in the excluded namespace: %v", name, labels)
		}
	}
	if label, err := there.namespaceLabel(); err != nil || label != "" {
		t.Errorf("the excluded Namespace has been changed: %q, %v", label, err)
	}
	for _, r := range slices.Concat(f.requests("configmaps"), f.requests("namespaces")) {
		if r.ObjectRef.Namespace == there.ns || r.ObjectRef.Name == there.ns {
			t.Errorf("there was a request: %s %s", r.Verb, r.RequestURI)
		}
	}
}

func TestAPreviewLeavesExcludedNamespacesOut(t *testing.T) {
	f, there, glob := excludedFixture(t)
	there.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: source}, data: {v: "1"}}`)
	var asked []string
	for _, one := range []*fixture{f, there} {
		one.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted}}`)
	}
	e, err := New(f.options(f.everything(), Options{DryRun: true, ExcludeNamespaces: []string{glob}}, f.inBoth(there.ns, "a")...))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = e.Preview(t.Context(), PreviewOptions{Select: func(_ gvr.Info, namespace, name string) bool {
		asked = append(asked, namespace+"/"+name)
		return true
	}}, func(p Preview) {
		for _, v := range p.Result.Verdicts {
			if v.Outcome == rules.Patch {
				got = append(got, p.Object.GetNamespace()+"/"+p.Object.GetName())
			}
		}
	})
	slices.Sort(got)
	want := []string{"/" + f.ns, f.ns + "/drifted"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !slices.Contains(asked, there.ns+"/drifted") {
		t.Errorf("it is not asked about what is excluded: %v", asked)
	}
}

// What is excluded does not even come into the queue.
func TestWhatIsExcludedIsNotEnqueued(t *testing.T) {
	e, err := New(Options{Config: &rest.Config{Host: "127.0.0.1:1"}, Rules: &rules.Set{}, ExcludeNamespaces: []string{"kube-*"}})
	if err != nil {
		t.Fatal(err)
	}
	e.pending = newPending()
	object := func(namespace, name string) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}}
	}
	for _, tc := range []struct {
		resource        schema.GroupResource
		namespace, name string
		want            bool // in the queue
	}{
		{configmaps.GroupResource(), "kube-system", "c", false},
		{configmaps.GroupResource(), "shop", "kube-system", true},
		{namespaces.GroupResource(), "", "kube-system", false},
		{namespaces.GroupResource(), "", "shop", true},
		{schema.GroupResource{Resource: "nodes"}, "", "kube-node", true},
		{schema.GroupResource{Group: "acme.example", Resource: "namespaces"}, "", "kube-system", true},
	} {
		key := Key{tc.resource, tc.namespace, tc.name}
		for way, enqueue := range map[string]func(){
			"an object": func() { e.enqueue(tc.resource, newObject(object(tc.namespace, tc.name)), e.add) },
			"a tombstone, without it": func() {
				e.enqueue(tc.resource, cache.DeletedFinalStateUnknown{Key: strings.TrimPrefix(tc.namespace+"/"+tc.name, "/")}, e.add)
			},
			"a key": func() { e.add(key) },
		} {
			before := e.queue.Len()
			enqueue()
			if got := e.queue.Len() > before; got != tc.want || !tc.want && !e.pending.idle() {
				t.Errorf("%v, by %s: in the queue: %v", key, way, got)
			}
			for e.queue.Len() > 0 {
				k, _ := e.queue.Get()
				e.queue.Done(k)
				e.pending.settle(k, e.pending.mark(k))
			}
		}
	}
}

func TestExclusionsThatAreNone(t *testing.T) {
	_, err := New(Options{Config: &rest.Config{Host: "127.0.0.1:1"}, Rules: &rules.Set{}, ExcludeNamespaces: []string{"team-[a"}})
	if err == nil || !strings.Contains(err.Error(), `"team-[a" is not a pattern`) {
		t.Errorf("%v", err)
	}
}

// A rule that can do nothing because of an exclusion is told of.
func TestARuleThatIsAllExcluded(t *testing.T) {
	f := newFixture(t)
	f.startAs(f.everything(), Options{ExcludeNamespaces: []string{f.ns}}, rule("idle", "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {a: b}}}"))
	f.wantReadyz(soon, "[!] rule idle: it does nothing: all that it matches is excluded (--exclude-namespace "+f.ns+")", "\nready\n")
}

// everything is the configuration of a user who may do everything.
func (f *fixture) everything() *rest.Config {
	f.Helper()
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		f.Fatal(err)
	}
	return config
}

// namespaceLabel is what rules have made of the fixture's Namespace.
func (f *fixture) namespaceLabel() (string, error) {
	ns, err := f.client.Resource(namespaces).Get(f.Context(), f.ns, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return ns.GetLabels()["team"], nil
}

func newObject(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}
