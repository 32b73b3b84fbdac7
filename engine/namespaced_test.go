package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

const rbacGroup = "rbac.authorization.k8s.io"

func rbacResource(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: resource}
}

// in is the fixture as it works in another namespace, which is made if it is not
// there.
func (f *fixture) in(namespace string) *fixture {
	f.Helper()
	u := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, namespace)
	u.SetNamespace("")
	if _, err := f.client.Resource(namespaces).Create(f.Context(), u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		f.Fatal(err)
	}
	g := *f
	g.ns = namespace
	return &g
}

// grantRoles gives the fixture's user just what rules/rbac says that these rules
// need in some namespaces.
func (f *fixture) grantRoles(names []string, ruleYAML ...string) {
	f.Helper()
	set := f.options(nil, Options{}, ruleYAML...).Rules
	needs := rbac.For(set, rbac.Options{Namespaces: names, Known: func(resource schema.GroupVersionResource) rbac.Resource {
		return rbac.Resource{ClusterScoped: gvr.ClusterScoped(schema.GroupKind{Kind: map[string]string{"nodes": "Node", "namespaces": "Namespace"}[resource.Resource]}), Builtin: true}
	}})
	for _, r := range rbac.Roles(needs, f.user, types.NamespacedName{}) {
		if r.Namespace == "" {
			f.Fatalf("a ClusterRole is needed: %+v", r.Grants)
		}
		var grants []any
		for _, g := range r.Grants {
			grants = append(grants, map[string]any{
				"apiGroups": []any{g.Resource.Group},
				"resources": []any{strings.TrimSuffix(g.Resource.Resource+"/"+g.Subresource, "/")},
				"verbs":     anys(g.Verbs),
			})
		}
		f.bind(r.Namespace, r.Name, grants)
	}
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// bind makes a Role, and binds it to the fixture's user.
func (f *fixture) bind(namespace, name string, grants []any) {
	f.Helper()
	for gvr, u := range map[schema.GroupVersionResource]map[string]any{
		rbacResource("roles"): {"kind": "Role", "rules": grants},
		rbacResource("rolebindings"): {
			"kind":     "RoleBinding",
			"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "Role", "name": name},
			"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": f.user}},
		},
	} {
		u["apiVersion"], u["metadata"] = rbacGroup+"/v1", map[string]any{"name": name}
		if _, err := f.client.Resource(gvr).Namespace(namespace).Create(f.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

// startIn runs an engine that is limited to namespaces, as a user who may do
// what is granted and no more.
func (f *fixture) startIn(names []string, ruleYAML ...string) {
	f.Helper()
	config, err := f.cp.User(f.user)
	if err != nil {
		f.Fatal(err)
	}
	f.startAs(config, Options{Namespaces: names}, ruleYAML...)
}

// wantNothingBeyond fails the test if the engine's user asked for anything that is not
// in one of the namespaces, but for what the cluster serves and what the user may.
func (f *fixture) wantNothingBeyond(names ...string) {
	f.Helper()
	f.stop() // a watch is in the audit log when it has ended
	events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return e.User.Username == f.user && e.ObjectRef.Resource != "" && e.ObjectRef.Resource != "selfsubjectaccessreviews"
	})
	if err != nil {
		f.Fatal(err)
	}
	if len(events) == 0 {
		f.Error("the engine asked for nothing at all")
	}
	for _, e := range events {
		if !slices.Contains(names, e.ObjectRef.Namespace) {
			f.Errorf("the engine sent a %s to %s (%d)", e.Verb, e.RequestURI, e.ResponseStatus.Code)
		}
	}
}

const markRule = `
resource: {version: v1, resource: configmaps}
match: {excludeNames: [kube-root-ca.crt]}
patch: {merge: {data: {fixed: "yes"}}}`

// RBC-02: Roles in the namespaces are enough, lookups included, and nothing is
// asked beyond them. What would need more is parked, and says why.
func TestRolesInNamespacesAreEnough(t *testing.T) {
	f := newFixture(t)
	b, elsewhere := f.in(f.ns+"-b"), f.in(f.ns+"-c")
	works := []string{rule("mark", markRule), strings.Replace(expectedReplicas(t), "match: {namespaces: [NS]}", "match: {}", 1)}
	parked := []string{
		rule("node", `
resource: {version: v1, resource: nodes}
match: {names: [nowhere]}
patch: {merge: {metadata: {labels: {a: b}}}}`),
		rule("selector", `
resource: {version: v1, resource: configmaps}
match: {namespaceSelector: {matchLabels: {team: shop}}}
patch: {merge: {data: {selected: "yes"}}}`),
		rule("namespace-read", `
resource: {version: v1, resource: configmaps}
condition: namespaceObject != null
patch: {merge: {data: {selected: "yes"}}}`),
		rule("node-lookup", `
resource: {version: v1, resource: configmaps}
lookups: [{name: nodes, resource: {version: v1, resource: nodes}}]
condition: lookups.nodes.size() == 0
patch: {merge: {data: {selected: "yes"}}}`),
	}
	names := []string{f.ns, b.ns}
	f.grantRoles(names, slices.Concat(works, parked)...)
	for _, g := range []*fixture{f, b, elsewhere} {
		g.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
		g.create(deployments, deploymentYAML, "web", "5", 3)
		g.create(deployments, deploymentYAML, "scaled", "5", 3)
		g.create(hpas, hpaYAML, "scaled", "scaled")
	}
	f.startIn(names, slices.Concat(works, parked)...)
	for _, g := range []*fixture{f, b} {
		g.eventually(soon, configmaps, "c", "yes", "data", "fixed")
		g.eventually(soon, deployments, "web", int64(5), "spec", "replicas")
	}
	list := strings.Join(names, ",")
	f.wantReadyz(soon, "\nready",
		"v1/configmaps in "+f.ns+": synced", "v1/configmaps in "+b.ns+": synced", "autoscaling/v2/horizontalpodautoscalers in "+b.ns+": synced",
		"v1/nodes: Forbidden: cluster-scoped, which is not read with --namespace "+list+"; parked: node",
		"rule selector on v1/configmaps: parked: it reads Namespaces, which are not available: with --namespace "+list,
		"rule namespace-read on v1/configmaps: parked: it reads Namespaces, which are not available: with --namespace "+list,
		"rule node-lookup on v1/configmaps: parked: it looks up v1/nodes, which is not available: cluster-scoped, which is not read with --namespace "+list)
	f.settle("configmaps")
	for _, g := range []*fixture{f, b, elsewhere} {
		if data := g.get(configmaps, "c").Object["data"]; g == elsewhere && data != nil || g != elsewhere && data.(map[string]any)["selected"] != nil {
			t.Errorf("%s: %v", g.ns, data)
		}
		if n, _, _ := unstructured.NestedInt64(g.get(deployments, "scaled").Object, "spec", "replicas"); n != 3 {
			t.Errorf("%s: a Deployment with an autoscaler was scaled to %d", g.ns, n)
		}
	}
	f.writes("configmaps")
	f.wantNothingBeyond(names...)
}

// What a rule looks up in all namespaces is looked up in those that the engine is
// limited to, and nowhere else.
func TestLookupsStayInTheNamespaces(t *testing.T) {
	f := newFixture(t)
	b, elsewhere := f.in(f.ns+"-b"), f.in(f.ns+"-c")
	count := rule("count", `
resource: {version: v1, resource: configmaps}
match: {names: [counter]}
lookups:
- {name: everywhere, resource: {version: v1, resource: secrets}, labelSelector: {matchLabels: {counted: NS}}}
- {name: elsewhere, resource: {version: v1, resource: secrets}, namespace: "${object.data.look}", labelSelector: {matchLabels: {counted: NS}}}
patch: {merge: {data: {all: "${string(lookups.everywhere.size())}", there: "${string(lookups.elsewhere.size())}"}}}`)
	names := []string{f.ns, b.ns}
	f.grantRoles(names, count)
	secret := `{apiVersion: v1, kind: Secret, metadata: {name: s-%d, labels: {counted: %s}}}`
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: counter}, data: {look: %s}}`, elsewhere.ns)
	for i, g := range []*fixture{f, b, elsewhere} {
		g.create(secrets, secret, i, f.ns)
	}
	f.startIn(names, count)
	f.eventually(soon, configmaps, "counter", "2", "data", "all")
	f.eventually(soon, configmaps, "counter", "0", "data", "there")
	b.create(secrets, secret, 7, f.ns)
	f.eventually(soon, configmaps, "counter", "3", "data", "all")
	f.wantNothingBeyond(names...)
}

// A Role that is there in one namespace only: that one works, and the other one is
// named, with what is missing, until its Role comes.
func TestARoleInOneNamespaceOnly(t *testing.T) {
	f := newFixture(t)
	b := f.in(f.ns + "-b")
	mark := rule("mark", markRule)
	names := []string{f.ns, b.ns}
	f.grantRoles(names[:1], mark)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	b.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	logs := captureLogs(t)
	f.startIn(names, mark)
	f.eventually(soon, configmaps, "c", "yes", "data", "fixed")
	f.wantReadyz(soon, "\nready", "v1/configmaps in "+f.ns+": synced",
		fmt.Sprintf("v1/configmaps in %s: Forbidden: list configmaps in namespace %q; parked: mark", b.ns, b.ns))
	f.canary("meanwhile")
	f.grantRoles(names[1:], mark)
	b.eventually(40*time.Second, configmaps, "c", "yes", "data", "fixed")
	f.wantReadyz(soon, "v1/configmaps in "+b.ns+": synced")
	if got := logs.matching(`"configmaps"`); len(got) > 6 {
		t.Errorf("%d lines:\n%s", len(got), strings.Join(got, ""))
	}
	f.wantNothingBeyond(names...)
}

// A namespace of --namespace need not be there at the start, and may come back.
func TestALimitedNamespaceThatComesAndGoes(t *testing.T) {
	f := newFixture(t)
	late := f.ns + "-late"
	f.grant("configmaps", "list", "watch", "patch")
	f.startIn([]string{f.ns, late}, rule("mark", markRule))
	f.canary("before")
	f.wantReadyz(soon, "v1/configmaps in "+late+": synced", "\nready")
	for round := range 2 {
		b := f.in(late)
		b.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
		b.eventually(soon, configmaps, "c", "yes", "data", "fixed")
		b.vanish()
		f.canary(fmt.Sprintf("gone-%d", round))
		f.wantReadyz(soon, "v1/configmaps in "+late+": synced, 0 objects", "\nready")
	}
	f.wantNothingBeyond(f.ns, late)
}

// vanish deletes the fixture's namespace and all ConfigMaps in it, as
// kube-controller-manager would.
func (f *fixture) vanish() {
	f.Helper()
	must := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	must(f.client.Resource(namespaces).Delete(f.Context(), f.ns, metav1.DeleteOptions{}))
	must(f.client.Resource(configmaps).Namespace(f.ns).DeleteCollection(f.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	u, err := f.client.Resource(namespaces).Get(f.Context(), f.ns, metav1.GetOptions{})
	must(err)
	unstructured.RemoveNestedField(u.Object, "spec", "finalizers")
	_, err = f.client.Resource(namespaces).Update(f.Context(), u, metav1.UpdateOptions{}, "finalize")
	must(err)
	testcluster.Eventually(f, soon, func() error {
		if _, err := f.client.Resource(namespaces).Get(f.Context(), f.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Namespace is still there: %v", err)
		}
		return nil
	})
}

// A rule that is about other namespaces than the engine is limited to is no
// error, but it is not silent either.
func TestARuleThatMatchesInNoneOfTheNamespaces(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	there := []string{rule("mark", markRule), rule("elsewhere", `
resource: {version: v1, resource: configmaps}
match: {namespaces: ["other-*"]}
patch: {merge: {data: {elsewhere: "yes"}}}`), rule("left-out", `
resource: {version: v1, resource: configmaps}
match: {excludeNamespaces: ["*"]}
patch: {merge: {data: {elsewhere: "yes"}}}`)}
	f.grantRoles([]string{f.ns}, there...)
	logs := captureLogs(t)
	f.startIn([]string{f.ns}, there...)
	f.eventually(soon, configmaps, "c", "yes", "data", "fixed")
	f.wantReadyz(soon, "\nready",
		"[!] rule elsewhere: it matches in none of --namespace "+f.ns,
		"[!] rule left-out: it matches in none of --namespace "+f.ns)
	if _, body := f.readyz(); strings.Contains(body, "rule mark") {
		t.Errorf("a rule that matches is told of:\n%s", body)
	}
	if got := logs.matching("it matches in none of"); len(got) != 2 {
		t.Errorf("%d lines, want one for each rule:\n%s", len(got), strings.Join(got, ""))
	}
}

// SEC-02: whichever field of a rule holds a namespace, none reaches one that
// the engine is not limited to, whatever the engine's user may do.
func TestNoFieldReachesAnotherNamespace(t *testing.T) {
	f := newFixture(t)
	other := f.in(f.ns + "-other")
	for _, g := range []*fixture{f, other} {
		g.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {points: %s}}`, other.ns)
		g.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}`)
	}
	target := f.get(configmaps, "c")
	const on = "\nresource: {version: v1, resource: configmaps}\n"
	set := func(path, value string) string {
		return on + fmt.Sprintf("match: {names: [c]}\npatch: {merge: {metadata: {%s: %q}}}", path, value)
	}
	// A rule that reaches what it should not writes its KEY to c, and one that is
	// refused does not load.
	tests := []struct {
		name, spec string
		refused    bool
	}{
		{"match.namespaces", on + "match: {namespaces: [" + other.ns + "]}\npatch: {merge: {data: {KEY: x}}}", false},
		{"match.namespaces, a pattern", on + "match: {namespaces: ['*'], excludeNamespaces: [NS]}\npatch: {merge: {data: {KEY: x}}}", false},
		{"match.fieldSelector", on + "match: {fieldSelector: metadata.namespace=" + other.ns + "}\npatch: {merge: {data: {KEY: x}}}", false},
		{"match.namespaceSelector", on + "match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + other.ns + "}}}\npatch: {merge: {data: {KEY: x}}}", false},
		{"merge of metadata.namespace", set("namespace", other.ns), true},
		{"merge of metadata.name", set("name", "kube-root-ca.crt"), true},
		{"merge of metadata.uid", set("uid", string(target.GetUID())), true},
		{"merge of a computed key", on + "match: {names: [c]}\npatch: {merge: {metadata: {\"${'name' + 'space'}\": \"${object.data.points}\"}}}", false},
		{"merge of computed metadata", on + "match: {names: [c]}\npatch: {merge: {metadata: \"${{'namespace': object.data.points}}\"}}", true},
		{"json of metadata.namespace", on + "match: {names: [c]}\npatch: {json: [{op: replace, path: /metadata/namespace, value: " + other.ns + "}]}", true},
		{"json of a computed path", on + "match: {names: [c]}\npatch: {json: [{op: replace, path: \"${'/metadata/' + 'namespace'}\", value: " + other.ns + "}]}", false},
		{"json, a move", on + "match: {names: [c]}\npatch: {json: [{op: move, from: /data/points, path: /metadata/namespace}]}", true},
		{"json of the whole object", on + "match: {names: [c]}\npatch: {json: [{op: replace, path: '', value: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: " + other.ns + "}}}]}", true},
		{"applyConfiguration", on + "match: {names: [c]}\npatch: {applyConfiguration: {metadata: {namespace: " + other.ns + "}}}", true},
		{"lookup in a namespace", on + "match: {names: [c]}\nlookups: [{name: found, resource: {version: v1, resource: secrets}, namespace: " + other.ns + "}]\ncondition: lookups.found.size() > 0\npatch: {merge: {data: {KEY: x}}}", false},
		{"lookup in a computed namespace", on + "match: {names: [c]}\nlookups: [{name: found, resource: {version: v1, resource: secrets}, namespace: \"${object.data.points}\"}]\ncondition: lookups.found.size() > 0\npatch: {merge: {data: {KEY: x}}}", false},
		{"lookup by a field", on + "match: {names: [c]}\nlookups: [{name: found, resource: {version: v1, resource: secrets}, where: {metadata.namespace: \"${object.data.points}\"}}]\ncondition: lookups.found.size() > 0\npatch: {merge: {data: {KEY: x}}}", false},
		{"lookup in all namespaces", on + "match: {names: [c]}\nlookups: [{name: found, resource: {version: v1, resource: secrets}}]\ncondition: lookups.found.exists(s, s.metadata.namespace == object.data.points)\npatch: {merge: {data: {KEY: x}}}", false},
		{"lookup of the Namespace", on + "match: {names: [c]}\nlookups: [{name: found, resource: {version: v1, resource: namespaces}}]\ncondition: lookups.found.size() > 0\npatch: {merge: {data: {KEY: x}}}", false},
		{"namespaceObject", on + "match: {names: [c]}\ncondition: namespaceObject != null\npatch: {merge: {data: {KEY: x}}}", false},
	}
	var loaded []string
	for i, test := range tests {
		y := "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + fmt.Sprintf("rule-%d", i) + "}\nspec:" + strings.NewReplacer("\n", "\n  ", "KEY", fmt.Sprintf("rule-%d", i)).Replace(test.spec) + "\n"
		_, problems := rules.Load(rules.Source{Name: "rule.yaml", Data: []byte(y)})
		switch {
		case test.refused != (len(problems) > 0):
			t.Errorf("%s: refused: %v, want %v (%v)", test.name, len(problems) > 0, test.refused, problems)
		case !test.refused:
			loaded = append(loaded, y)
		}
	}
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.startAs(config, Options{Namespaces: []string{f.ns}}, append(loaded, rule("mark", markRule))...)
	f.eventually(soon, configmaps, "c", "yes", "data", "fixed")
	f.canary("last")
	f.settle("configmaps")
	for _, g := range []*fixture{f, other} {
		data := g.get(configmaps, "c").Object["data"].(map[string]any)
		for i, test := range tests {
			if data[fmt.Sprintf("rule-%d", i)] != nil {
				t.Errorf("%s reaches another namespace", test.name)
			}
		}
		if g == other && data["fixed"] != nil {
			t.Error("the other namespace was written")
		}
	}
	f.wantNothingBeyond(f.ns)
}
