package rbac_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

// rule writes a rule file with a spec in YAML.
func rule(name, spec string) string {
	return "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

func load(t *testing.T, files ...string) *rules.Set {
	t.Helper()
	var sources []rules.Source
	for i, f := range files {
		sources = append(sources, rules.Source{Name: fmt.Sprintf("%d.yaml", i), Data: []byte(f)})
	}
	set, problems := rules.Load(sources...)
	for _, p := range problems {
		t.Fatal(p.Detail())
	}
	return set
}

// known is a small Kubernetes.
func known(resource schema.GroupVersionResource) rbac.Resource {
	return rbac.Resource{
		ClusterScoped: slices.Contains([]string{"nodes", "namespaces", "storageclasses", "clusterroles", "clusterthings"}, resource.Resource),
		Builtin:       !strings.Contains(resource.Group, ".example"),
	}
}

// lines gives each need on a line: what, where, for whom.
func lines(needs []rbac.Need) []string {
	var out []string
	for _, n := range needs {
		line := n.Verb + " " + n.Target()
		if n.Name != "" {
			line += " " + n.Name
		}
		if n.Namespace != "" {
			line += " in " + n.Namespace
		}
		if n.Optional {
			line += " optional"
		}
		if len(n.Rules) > 0 {
			line += ": " + strings.Join(n.Rules, " ")
		}
		out = append(out, line)
	}
	return out
}

const configmaps = "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {a: b}}}"

// always is what the engine uses whatever the rules are.
var always = []string{
	"list customresourcedefinitions.apiextensions.k8s.io optional", "watch customresourcedefinitions.apiextensions.k8s.io optional",
	"create events.events.k8s.io optional", "patch events.events.k8s.io optional",
}

func TestNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		rules   []string
		options rbac.Options
		want    []string // without always where the whole cluster is meant
		parked  []string
	}{
		"nothing": {},
		"the object": {rules: []string{rule("a", configmaps+"\noptOut: Forbidden")}, want: []string{
			"list configmaps: a", "watch configmaps: a", "patch configmaps: a"}},
		"Namespaces for opt-outs": {rules: []string{rule("a", configmaps)}, want: []string{
			"list configmaps: a", "watch configmaps: a", "patch configmaps: a", "list namespaces optional: a", "watch namespaces optional: a"}},
		"Namespaces for a selector, and for opt-outs of others": {
			rules: []string{rule("a", configmaps), rule("b", configmaps+"\nmatch: {namespaceSelector: {matchLabels: {x: z}}}")},
			want: []string{"list configmaps: a b", "watch configmaps: a b", "patch configmaps: a b",
				"list namespaces: b", "watch namespaces: b"}},
		"subresources": {rules: []string{rule("a", `
resource: {group: apps, version: v1, resource: deployments}
optOut: Forbidden
patches:
- {subresource: scale, merge: {spec: {replicas: 1}}}
- {merge: {metadata: {labels: {a: b}}}}`), rule("b", `
resource: {group: apps, version: v1, resource: deployments}
optOut: Forbidden
patch: {subresource: status, merge: {status: {x: 1}}}`)}, want: []string{
			"list deployments.apps: a b", "watch deployments.apps: a b", "patch deployments.apps: a",
			"patch deployments.apps/scale: a", "patch deployments.apps/status: b"}},
		"Audit writes nothing": {rules: []string{rule("a", configmaps+"\nmode: Audit\noptOut: Forbidden")}, want: []string{
			"list configmaps: a", "watch configmaps: a"}},
		"two versions are one resource": {rules: []string{rule("a", `
resources:
- {group: acme.example, version: v1, resource: things}
- {group: acme.example, version: v2, resource: things}
optOut: Forbidden
patch: {merge: {spec: {a: b}}}`)}, want: []string{
			"list things.acme.example: a", "watch things.acme.example: a", "patch things.acme.example: a"}},
		"lookups, also of what is written": {rules: []string{rule("a", `
resource: {version: v1, resource: configmaps}
optOut: Forbidden
lookups:
- {name: others, resource: {version: v1, resource: configmaps}}
- {name: secrets, optional: true, resource: {version: v1, resource: secrets}}
condition: lookups.others.size() > lookups.secrets.size()
patch: {merge: {data: {a: b}}}`)}, want: []string{
			"list configmaps: a", "watch configmaps: a", "patch configmaps: a", "list secrets: a", "watch secrets: a"}},
		"the scale of a custom resource needs its CRD": {rules: []string{rule("a", `
resource: {group: acme.example, version: v1, resource: things}
optOut: Forbidden
patch: {subresource: scale, merge: {spec: {replicas: 1}}}`)}, want: []string{
			"list things.acme.example: a", "watch things.acme.example: a", "patch things.acme.example/scale: a",
			"list customresourcedefinitions.apiextensions.k8s.io: a", "watch customresourcedefinitions.apiextensions.k8s.io: a"}},
		"read only": {rules: []string{rule("a", configmaps+"\noptOut: Forbidden")}, options: rbac.Options{ReadOnly: true}, want: []string{
			"list configmaps: a", "watch configmaps: a",
			"list customresourcedefinitions.apiextensions.k8s.io optional", "watch customresourcedefinitions.apiextensions.k8s.io optional"}},
		"a lease": {rules: []string{rule("a", configmaps+"\noptOut: Forbidden")},
			options: rbac.Options{Lease: types.NamespacedName{Namespace: "system", Name: "rectifier"}}, want: []string{
				"list configmaps: a", "watch configmaps: a", "patch configmaps: a",
				"create leases.coordination.k8s.io in system", "get leases.coordination.k8s.io rectifier in system", "update leases.coordination.k8s.io rectifier in system"}},
		"namespaces": {rules: []string{rule("a", configmaps)}, options: rbac.Options{Namespaces: []string{"t2", "t1", "t2"}}, want: []string{
			"list configmaps in t1: a", "watch configmaps in t1: a", "patch configmaps in t1: a", "create events.events.k8s.io in t1 optional", "patch events.events.k8s.io in t1 optional",
			"list configmaps in t2: a", "watch configmaps in t2: a", "patch configmaps in t2: a", "create events.events.k8s.io in t2 optional", "patch events.events.k8s.io in t2 optional"}},
		// There is an informer in each namespace, but writes only where a rule matches.
		"namespaces that a rule leaves alone": {rules: []string{rule("a", configmaps+"\nmatch: {namespaces: [t1, 'u*'], excludeNamespaces: [u2]}")}, options: rbac.Options{Namespaces: []string{"t1", "t2", "u1", "u2"}, ReadOnly: false}, want: []string{
			"list configmaps in t1: a", "watch configmaps in t1: a", "patch configmaps in t1: a", "create events.events.k8s.io in t1 optional", "patch events.events.k8s.io in t1 optional",
			"list configmaps in t2: a", "watch configmaps in t2: a", "create events.events.k8s.io in t2 optional", "patch events.events.k8s.io in t2 optional",
			"list configmaps in u1: a", "watch configmaps in u1: a", "patch configmaps in u1: a", "create events.events.k8s.io in u1 optional", "patch events.events.k8s.io in u1 optional",
			"list configmaps in u2: a", "watch configmaps in u2: a", "create events.events.k8s.io in u2 optional", "patch events.events.k8s.io in u2 optional"}},
		"what Roles cannot grant": {
			rules: []string{
				rule("about", "resources: [{version: v1, resource: nodes}, {version: v1, resource: secrets}]\npatch: {merge: {metadata: {labels: {a: b}}}}"),
				rule("looks-up", configmaps+"\nlookups: [{name: classes, resource: {group: storage.k8s.io, version: v1, resource: storageclasses}}]\ncondition: lookups.classes.size() > 0"),
				rule("reads", configmaps+"\ncondition: namespaceObject.metadata.name != 'x'"),
				rule("scales", "resource: {group: acme.example, version: v1, resource: things}\npatch: {subresource: scale, merge: {spec: {replicas: 1}}}"),
			},
			options: rbac.Options{Namespaces: []string{"t"}},
			want: []string{"list secrets in t: about", "watch secrets in t: about", "patch secrets in t: about",
				"create events.events.k8s.io in t optional", "patch events.events.k8s.io in t optional"},
			parked: []string{
				"rule about on v1/nodes: parked: the resource is cluster-scoped: a Role cannot grant it",
				"rule looks-up on v1/configmaps: parked: it looks up storage.k8s.io/v1/storageclasses, which is cluster-scoped: a Role cannot grant it",
				"rule reads on v1/configmaps: parked: it reads Namespaces, which are cluster-scoped: a Role cannot grant it",
				"rule scales on acme.example/v1/things: parked: it writes /scale, and only its CRD tells where the replicas are: CRDs are cluster-scoped, and a Role cannot grant them",
			}},
		"only parked rules need nothing": {
			rules:   []string{rule("a", "resource: {version: v1, resource: nodes}\npatch: {merge: {metadata: {labels: {a: b}}}}")},
			options: rbac.Options{Namespaces: []string{"t"}, Lease: types.NamespacedName{Namespace: "t", Name: "l"}},
			parked:  []string{"rule a on v1/nodes: parked: the resource is cluster-scoped: a Role cannot grant it"}},
		"match.namespaces on a cluster-scoped resource": {
			rules:  []string{rule("a", "resource: {version: v1, resource: nodes}\nmatch: {namespaces: [x]}\npatch: {merge: {metadata: {labels: {a: b}}}}")},
			parked: []string{"rule a on v1/nodes: parked: it has match.namespaces, but the resource is cluster-scoped"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Known = known
			got := rbac.For(load(t, tc.rules...), tc.options)
			var parked []string
			for _, p := range got.Parked {
				parked = append(parked, p.String())
			}
			if diff := cmp.Diff(tc.parked, parked); diff != "" {
				t.Errorf("parked (-want +got):\n%s", diff)
			}
			want := tc.want
			if len(tc.options.Namespaces) == 0 && len(want) > 0 && !tc.options.ReadOnly {
				for _, line := range always {
					if !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(w, strings.TrimSuffix(line, " optional")+":") }) {
						want = append(want, line)
					}
				}
			}
			gotLines := lines(got.All)
			slices.Sort(want)
			slices.Sort(gotLines)
			if diff := cmp.Diff(want, gotLines); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

// What is not known counts as a custom resource that is namespaced.
func TestWithoutKnowledge(t *testing.T) {
	set := load(t, rule("a", "resource: {version: v1, resource: nodes}\noptOut: Forbidden\npatch: {merge: {metadata: {labels: {a: b}}}}"))
	got := rbac.For(set, rbac.Options{Namespaces: []string{"t"}})
	if len(got.Parked) > 0 || got.All[0].Target() != "nodes" {
		t.Errorf("got %+v", got)
	}
}

var everything = []string{
	rule("scale", "resource: {group: apps, version: v1, resource: deployments}\npatch: {subresource: scale, merge: {spec: {replicas: 1}}}"),
	rule("audit", "resource: {group: apps, version: v1, resource: deployments}\nmode: Audit\npatch: {merge: {metadata: {labels: {a: b}}}}"),
	rule("secrets", "resource: {version: v1, resource: secrets}\npatch: {merge: {metadata: {labels: {a: b}}}}"),
	rule("roles", "resource: {group: rbac.authorization.k8s.io, version: v1, resource: clusterroles}\npatch: {merge: {metadata: {labels: {a: b}}}}"),
	rule("reads", configmaps+"\nmatch: {namespaceSelector: {matchLabels: {a: b}}}"),
}

func TestRolesInYAML(t *testing.T) {
	set := load(t, everything...)
	options := rbac.Options{Known: known, Lease: types.NamespacedName{Namespace: "system", Name: "yes"}}
	got, err := rbac.YAML(rbac.Roles(rbac.For(set, options), "rectifier", types.NamespacedName{Namespace: "system", Name: "on"}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# What ` + "`rectifier run`" + ` needs for its rules, and no more. Made by ` + "`rectifier rbac`" + `.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: rectifier
rules:
  # list, watch, patch: reads
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [list, watch, patch]
  # list, watch: reads
  - apiGroups: [""]
    resources: [namespaces]
    verbs: [list, watch]
  # list, watch, patch: secrets
  - apiGroups: [""]
    resources: [secrets]
    verbs: [list, watch, patch]
  # list, watch: optional: without it, CRDs that come and go are noticed ten seconds later
  - apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    verbs: [list, watch]
  # list, watch: audit, scale
  - apiGroups: [apps]
    resources: [deployments]
    verbs: [list, watch]
  # patch: scale
  - apiGroups: [apps]
    resources: [deployments/scale]
    verbs: [patch]
  # create, patch: optional: without it, objects do not tell by Events what was done to them
  - apiGroups: [events.k8s.io]
    resources: [events]
    verbs: [create, patch]
  # list, watch, patch: roles
  - apiGroups: [rbac.authorization.k8s.io]
    resources: [clusterroles]
    verbs: [list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: rectifier
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: rectifier
subjects:
  - kind: ServiceAccount
    name: "on"
    namespace: system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: rectifier
  namespace: system
rules:
  # create: leader election
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  # get, update: leader election
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: ["yes"]
    verbs: [get, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: rectifier
  namespace: system
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: rectifier
subjects:
  - kind: ServiceAccount
    name: "on"
    namespace: system
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if none, err := rbac.YAML(nil); err != nil || len(none) != 0 {
		t.Errorf("no roles: %q, %v", none, err)
	}
}

// Whatever the rules are: the role grants each need and nothing else, no entry
// has a '*', YAML and JSON say the same, and the order of files does not count.
func TestARoleGrantsJustTheNeeds(t *testing.T) {
	for _, options := range []rbac.Options{
		{}, {ReadOnly: true}, {Namespaces: []string{"b", "a"}},
		{Namespaces: []string{"a"}, Lease: types.NamespacedName{Namespace: "a", Name: "l"}},
		{Lease: types.NamespacedName{Namespace: "a", Name: "l"}},
	} {
		options.Known = known
		needs := rbac.For(load(t, everything...), options)
		roles := rbac.Roles(needs, "r", types.NamespacedName{})
		want := map[rbac.Right]bool{}
		for _, n := range needs.All {
			want[n.Right] = true
		}
		got := map[rbac.Right]bool{}
		for _, r := range parse(t, roles) {
			for _, p := range r.Rules {
				for right := range granted(t, r.Namespace, p) {
					got[right] = true
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-needed +granted):\n%s", options, diff)
		}
		turned := slices.Clone(everything)
		slices.Reverse(turned)
		again := rbac.Roles(rbac.For(load(t, turned...), options), "r", types.NamespacedName{})
		if diff := cmp.Diff(roles, again); diff != "" {
			t.Errorf("%+v: the order of files counts:\n%s", options, diff)
		}
	}
}

// parse reads roles as Kubernetes does, from YAML and from JSON.
func parse(t *testing.T, roles []rbac.Role) []rbacv1.Role {
	t.Helper()
	text, err := rbac.YAML(roles)
	if err != nil {
		t.Fatal(err)
	}
	var fromYAML []rbacv1.Role
	for doc := range strings.SplitSeq(string(text), "---\n") {
		var r rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(doc), &r); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		fromYAML = append(fromYAML, r)
	}
	list, err := rbac.List(roles)
	if err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON rbacv1.RoleList
	if err := json.Unmarshal(text, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromYAML, fromJSON.Items); diff != "" {
		t.Errorf("YAML and JSON differ:\n%s", diff)
	}
	return fromYAML
}

func granted(t *testing.T, namespace string, p rbacv1.PolicyRule) map[rbac.Right]bool {
	t.Helper()
	for _, part := range slices.Concat(p.APIGroups, p.Resources, p.Verbs) {
		if strings.Contains(part, "*") {
			t.Errorf("a role with a '*': %v", p)
		}
	}
	names := p.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	out := map[rbac.Right]bool{}
	for _, group := range p.APIGroups {
		for _, resource := range p.Resources {
			resource, subresource, _ := strings.Cut(resource, "/")
			for _, verb := range p.Verbs {
				for _, name := range names {
					out[rbac.Right{Verb: verb, Resource: schema.GroupResource{Group: group, Resource: resource}, Subresource: subresource, Namespace: namespace, Name: name}] = true
				}
			}
		}
	}
	return out
}

func TestLongCommentsAreWrapped(t *testing.T) {
	var files []string
	for i := range 40 {
		files = append(files, rule(fmt.Sprintf("a-rule-with-a-long-name-%02d", i), configmaps))
	}
	text, err := rbac.YAML(rbac.Roles(rbac.For(load(t, files...), rbac.Options{}), "r", types.NamespacedName{}))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if len(line) > 110 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	for i := range 40 {
		if !strings.Contains(string(text), fmt.Sprintf("a-rule-with-a-long-name-%02d", i)) {
			t.Errorf("rule %d is not named", i)
		}
	}
}

func TestWarnings(t *testing.T) {
	got := rbac.For(load(t, everything...), rbac.Options{Known: known}).Warnings()
	want := []string{
		"roles: may change clusterroles.rbac.authorization.k8s.io at cluster scope; the API server still refuses to grant what the identity does not have itself (escalate and bind are not given here)",
		"secrets: may change every Secret at cluster scope",
		"secrets: may read every Secret at cluster scope",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	needs := rbac.For(load(t, everything...), rbac.Options{Known: known})
	for _, without := range needs.All {
		got, err := rbac.Missing(t.Context(), needs, func(_ context.Context, r rbac.Right) (bool, error) { return r != without.Right, nil })
		if diff := cmp.Diff([]rbac.Need{without}, got); err != nil || diff != "" {
			t.Errorf("without %s %s: %v\n%s", without.Verb, without.Target(), err, diff)
		}
	}
	failure := errors.New("away")
	if _, err := rbac.Missing(t.Context(), needs, func(context.Context, rbac.Right) (bool, error) { return false, failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
