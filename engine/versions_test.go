package engine

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// versionedCRD makes a CRD like that of fixture.crd which is also served as
// v1alpha1, without spec.copies; objects are stored as v1.
func (f *fixture) versionedCRD(group string) *unstructured.Unstructured {
	f.Helper()
	return f.crd(group, `  - name: v1alpha1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}`)
}

// DSC-09: a write through an older version loses what only the newer one knows.
// That is how the API server works; Rectifier says so before, at the rule.
func TestAWriteThroughAnOlderVersion(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	group := f.ns + ".example.io"
	v1 := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.versionedCRD(group)
	for _, name := range []string{"old", "new"} {
		f.create(v1, `{apiVersion: %s/v1, kind: Widget, metadata: {name: %s}, spec: {size: 1, copies: 2}}`, group, name)
	}
	label := func(name, version, more string) string {
		return rule(name, fmt.Sprintf(`
resource: {group: %s, version: %s, resource: widgets}
match: {names: [%s]}
patch: {merge: {metadata: {labels: {team: web}}}}
%s`, group, version, name, more))
	}
	f.start(label("old", "v1alpha1", ""), label("new", "v1", ""), strings.Replace(label("old", "v1alpha1", "mode: Audit"), "{name: old}", "{name: reports}", 1))
	f.eventually(15*time.Second, v1, "old", "web", "metadata", "labels", "team")
	f.eventually(15*time.Second, v1, "new", "web", "metadata", "labels", "team")
	for name, want := range map[string]any{"old": nil, "new": int64(2)} {
		if got, _, _ := unstructured.NestedFieldNoCopy(f.get(v1, name).Object, "spec", "copies"); got != want {
			t.Errorf("%s: spec.copies is %v after the patch, and was expected to be %v", name, got, want)
		}
	}
	warning := fmt.Sprintf("rule old on %s/v1alpha1/widgets: it writes through a version that is not the preferred one: fields that only v1 knows may be lost", group)
	f.wantReadyz(5*time.Second, "[!] "+warning, "\nready")
	_, body := f.readyz()
	if strings.Contains(body, "rule new") || strings.Contains(body, "rule reports") {
		t.Errorf("a rule that loses nothing is told of:\n%s", body)
	}
	if got := logs.matching("it writes through a version"); len(got) != 1 {
		t.Errorf("%d lines in the log, want 1:\n%s", len(got), strings.Join(got, ""))
	}
}

// DSC-08: of two groups with the same kind, plural and names, only the one that the
// rule names is written, although the engine watches both.
func TestTheSameKindInTwoGroups(t *testing.T) {
	f := newFixture(t)
	one, two := f.ns+".example.io", f.ns+".example.org"
	var widgets []schema.GroupVersionResource
	for _, group := range []string{one, two} {
		f.crd(group, "")
		widgets = append(widgets, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"})
		f.create(widgets[len(widgets)-1], `{apiVersion: %s/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}`, group)
	}
	f.start(rule("second", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
patch: {merge: {spec: {size: 7}}}`, two)), rule("first", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
mode: Audit
patch: {merge: {spec: {size: 9}}}`, one)))
	f.eventually(15*time.Second, widgets[1], "a", int64(7), "spec", "size")
	f.settle("widgets")
	f.eventually(soon, widgets[0], "a", int64(1), "spec", "size")
	if accepted, all := f.writes("widgets"); accepted != 1 || all != 1 {
		t.Errorf("%d writes, %d accepted, want 1", all, accepted)
	}
	for _, e := range f.requests("widgets") {
		if e.Verb == "patch" && e.ObjectRef.APIGroup != two {
			t.Errorf("a PATCH of %s", e.RequestURI)
		}
	}
	if a, b := (Key{widgets[0].GroupResource(), f.ns, "a"}), (Key{widgets[1].GroupResource(), f.ns, "a"}); a == b || a.String() == b.String() {
		t.Errorf("one key for both: %s", a)
	}
}

// SCL-02: what caches leave out to be small does not look absent to a rule that
// reads it; to others it costs nothing.
func TestManagedFieldsAreThereForRulesThatReadThem(t *testing.T) {
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`)
	owner := f.get(configmaps, "owned").GetManagedFields()[0].Manager
	f.start(rule("owner", `
resource: {version: v1, resource: configmaps}
match: {names: [owned]}
patch: {merge: {data: {owner: "${object.metadata.managedFields[0].manager}"}}}`), rule("absent", `
resource: {version: v1, resource: configmaps}
match: {names: [owned]}
condition: "!has(object.metadata.managedFields)"
patch: {merge: {data: {absent: "yes"}}}`), rule("applied", `
resource: {version: v1, resource: configmaps}
match: {names: [owned]}
condition: "'kubectl.kubernetes.io/last-applied-configuration' in object.metadata.annotations"
patch: {merge: {data: {applied: "yes"}}}`), rule("label", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {metadata: {labels: {team: web}}}}`))
	f.eventually(10*time.Second, configmaps, "owned", owner, "data", "owner")
	f.eventually(10*time.Second, configmaps, "owned", "yes", "data", "applied")
	f.eventually(10*time.Second, deployments, "web", "web", "metadata", "labels", "team")
	f.settle("configmaps")
	if data := f.get(configmaps, "owned").Object["data"].(map[string]any); data["absent"] != nil {
		t.Error("managedFields looked absent to a rule")
	}
	if u, ok := f.engine.informers.Get(deployments, f.ns, "web"); !ok || len(u.GetManagedFields()) > 0 {
		t.Errorf("a cache holds managedFields that nobody reads: %v", ok)
	}
}

// An object that goes while it is written in one version is not written in the
// other, and nothing is refused.
func TestAnObjectThatGoesBetweenTwoVersions(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	group := f.ns + ".example.io"
	v1 := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.versionedCRD(group)
	set := func(size int) (out []string) {
		for name, version := range map[string]string{"one": "v1", "two": "v1alpha1"} {
			out = append(out, rule(name, fmt.Sprintf(`
resource: {group: %s, version: %s, resource: widgets}
condition: object.spec.?size.orValue(0) == %d
patch: {merge: {metadata: {labels: {%s: web}}}}`, group, version, size, name)))
		}
		return out
	}
	f.create(v1, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}`, group)
	var sent attempts
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/widgets/w") {
			if sent.note(); len(sent.times()) == 1 {
				_ = f.client.Resource(v1).Namespace(f.ns).Delete(r.Context(), "w", metav1.DeleteOptions{})
			}
		}
		return next.RoundTrip(r)
	})
	f.startAs(config, Options{}, set(2)...)
	f.wantReadyz(15*time.Second, "v1/widgets: synced, 1 object", "v1alpha1/widgets: synced, 1 object")
	f.reload(set(1)...) // both versions are known when the first is written
	testcluster.Eventually(t, 10*time.Second, func() error {
		f.engine.objects.mu.Lock()
		defer f.engine.objects.mu.Unlock()
		if n, states := len(sent.times()), len(f.engine.objects.states); n == 0 || states > 0 {
			return fmt.Errorf("%d requests, %d objects remembered", n, states)
		}
		return nil
	})
	f.settle("widgets")
	if got := logs.matching("Rule failed"); len(got) > 0 {
		t.Errorf("something is refused:\n%s", strings.Join(got, ""))
	}
	if n := len(sent.times()); n != 1 {
		t.Errorf("%d requests about an object that is gone, want 1", n)
	}
}

// WCH-07: what was there before the rule is put right from the first list,
// untouched, and once. (Namespaces themselves, which no namespace limits.)
func TestWhatWasThereBeforeTheRule(t *testing.T) {
	f := newFixture(t)
	const n = 100
	for i := range n {
		u := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: %s-%d}}`, f.ns, i)
		u.SetNamespace("")
		if _, err := f.client.Resource(namespaces).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.start(rule("team", fmt.Sprintf(`
resource: {version: v1, resource: namespaces}
match: {names: ["%s-*"]}
patch: {merge: {metadata: {labels: {team: web}}}}`, f.ns)))
	labelled := func() (count int) {
		list, err := f.client.Resource(namespaces).List(t.Context(), metav1.ListOptions{LabelSelector: "team=web"})
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			if strings.HasPrefix(u.GetName(), f.ns+"-") {
				count++
			}
		}
		return count
	}
	testcluster.Eventually(t, 30*time.Second, func() error {
		if got := labelled(); got != n {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	f.settle("namespaces")
	if accepted, all := f.writes("namespaces"); accepted != n || all != n {
		t.Errorf("%d requests, %d accepted, for %d Namespaces", all, accepted, n)
	}
}

// DSC-05: a version that is no longer served parks the rule, which names those that are,
// and no other version is taken instead. It starts again when it is served again.
func TestAVersionThatGoes(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	group := f.ns + ".example.io"
	v1 := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	crd := f.versionedCRD(group)
	serve := func(yes bool) {
		t.Helper()
		_, err := f.client.Resource(crds).Patch(t.Context(), crd.GetName(), types.JSONPatchType,
			fmt.Appendf(nil, `[{"op":"replace","path":"/spec/versions/1/served","value":%t}]`, yes), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	f.start(rule("size", fmt.Sprintf(`
resource: {group: %s, version: v1alpha1, resource: widgets}
condition: object.spec.?size.orValue(0) != 7
patch: {merge: {spec: {size: 7}}}`, group)), rule("mark", markRule))
	widget := `{apiVersion: %s/v1, kind: Widget, metadata: {name: w-%d}, spec: {size: 1}}`
	f.create(v1, widget, group, 0)
	f.eventually(15*time.Second, v1, "w-0", int64(7), "spec", "size")

	serve(false)
	f.wantReadyz(15*time.Second, group+"/v1alpha1/widgets: WaitingForResource: version not served (available: v1); parked: size", "\nready")
	f.create(v1, widget, group, 1)
	f.canary("meanwhile")
	f.settle("widgets")
	if size, _, _ := unstructured.NestedInt64(f.get(v1, "w-1").Object, "spec", "size"); size != 1 {
		t.Errorf("an object was changed by a rule on a version that is not served: size %d", size)
	}
	serve(true)
	f.eventually(15*time.Second, v1, "w-1", int64(7), "spec", "size")
	f.settle("widgets")
	if refused := slices.DeleteFunc(f.requests("widgets"), func(e controlplane.AuditEvent) bool { return e.ResponseStatus.Code != 404 }); len(refused) > 0 {
		t.Errorf("%d requests for what was not there", len(refused))
	}
	if got := logs.matching(`"widgets.`); len(got) > 10 {
		t.Errorf("%d lines:\n%s", len(got), strings.Join(got, ""))
	}
}
