package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

var users atomic.Int64

// fixture is a namespace on the real API server, and a user who may do nothing
// but what the test grants.
type fixture struct {
	*testing.T
	cp       *controlplane.ControlPlane
	ns, user string
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t, testcluster.Start(t), testcluster.Namespace(t), fmt.Sprintf("reader-%d", users.Add(1))}
}

// grant binds a Role in the namespace, or a ClusterRole.
func (f *fixture) grant(inCluster bool, rights ...rbacv1.PolicyRule) {
	f.Helper()
	admin, err := kubernetes.NewForConfig(f.cp.AdminConfig())
	if err != nil {
		f.Fatal(err)
	}
	meta := metav1.ObjectMeta{GenerateName: f.ns + "-"}
	subjects := []rbacv1.Subject{{Kind: "User", Name: f.user}}
	if inCluster {
		role, err := admin.RbacV1().ClusterRoles().Create(f.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rights}, metav1.CreateOptions{})
		if err == nil {
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
			_, err = admin.RbacV1().ClusterRoleBindings().Create(f.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		}
		if err != nil {
			f.Fatal(err)
		}
		return
	}
	role, err := admin.RbacV1().Roles(f.ns).Create(f.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rights}, metav1.CreateOptions{})
	if err == nil {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
		_, err = admin.RbacV1().RoleBindings(f.ns).Create(f.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
}

func right(group, resource, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: strings.Fields(verbs), ResourceNames: names}
}

// create makes an object; NS stands for the namespace.
func (f *fixture) create(resource schema.GroupVersionResource, namespaced bool, text string) *unstructured.Unstructured {
	f.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NS", f.ns)), &u.Object); err != nil {
		f.Fatal(err)
	}
	client := testcluster.Dynamic(f).Resource(resource)
	namespace := f.ns
	if !namespaced {
		namespace = ""
	}
	var created *unstructured.Unstructured
	var err error
	if namespace == "" {
		created, err = client.Create(f.Context(), u, metav1.CreateOptions{})
	} else {
		created, err = client.Namespace(namespace).Create(f.Context(), u, metav1.CreateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
	return created
}

// connect connects as the user. Rights take a moment to arrive: try says when
// they have.
func (f *fixture) connect() *Cluster {
	f.Helper()
	config, err := f.cp.User(f.user)
	if err != nil {
		f.Fatal(err)
	}
	c, err := Connect(f.Context(), config)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

func (f *fixture) load(texts ...string) *rules.Set {
	f.Helper()
	set, problems := rules.Load(rules.Source{Name: "r.yaml", Data: []byte(strings.ReplaceAll(strings.Join(texts, "---\n"), "NS", f.ns))})
	for _, p := range problems {
		f.Fatal(p.Detail())
	}
	return set
}

// requests are those of the user so far, as "verb resource[/name]". The last one
// must be there.
func (f *fixture) requests(last string) []string {
	f.Helper()
	var out []string
	testcluster.Eventually(f, 10*time.Second, func() error {
		out = nil
		events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.User.Username == f.user })
		for _, e := range events {
			text := e.Verb + " " + e.ObjectRef.Resource
			if e.ObjectRef.Resource == "" {
				text = e.Verb + " " + strings.SplitN(e.RequestURI, "?", 2)[0]
			} else if e.ObjectRef.Name != "" {
				text += "/" + e.ObjectRef.Name
			}
			out = append(out, text)
		}
		if err == nil && !slices.Contains(out, last) {
			err = fmt.Errorf("%s is not among %v", last, out)
		}
		return err
	})
	return out
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configmaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

func configMapRule(name, spec string) string {
	return "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n  resource: {version: v1, resource: configmaps}\n  " + strings.TrimSpace(spec) + "\n"
}

// What rules need beside the object is read once, in the smallest scope, page
// by page; and nothing else is asked of the server.
func TestEvaluateOnlyReads(t *testing.T) {
	defer func(size int64) { pageSize = size }(pageSize)
	pageSize = 2
	f := newFixture(t)
	for i := range 5 {
		f.create(secrets, true, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: s%d, labels: {odd: %q}}}", i, fmt.Sprint(i%2)))
	}
	f.create(configmaps, true, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}`)
	f.grant(false, right("", "configmaps", "get"), right("", "secrets", "list"))
	f.grant(true, right("", "namespaces", "get", f.ns))
	c := f.connect()
	set := f.load(
		configMapRule("a", `
  lookups: [{name: all, resource: {version: v1, resource: secrets}, namespace: "${object.metadata.namespace}"}]
  condition: lookups.all.map(s, s.metadata.name) == ['s0', 's1', 's2', 's3', 's4'] && lookups.all.all(s, s.kind == 'Secret' && !has(s.metadata.managedFields))
  patch: {merge: {data: {all: "x"}}}`),
		configMapRule("b", `
  lookups: [{name: all, resource: {version: v1, resource: secrets}, namespace: NS}, {name: odd, resource: {version: v1, resource: secrets}, namespace: NS, labelSelector: {matchLabels: {odd: "1"}}}, {name: one, resource: {version: v1, resource: secrets}, namespace: NS, where: {metadata.name: s3}}]
  condition: lookups.all.size() == 5 && lookups.odd.map(s, s.metadata.name) == ['s1', 's3'] && lookups.one.size() == 1 && namespaceObject.metadata.name == 'NS'
  patch: {merge: {data: {odd: "x"}}}`),
		configMapRule("c", `
  lookups: [{name: none, resource: {group: example.io, version: v1, resource: things}, optional: true}]
  condition: lookups.none.size() == 0
  patch: {merge: {data: {none: "x"}}}`),
	)
	info, _, ok := c.Info(t.Context(), configmaps)
	if !ok {
		t.Fatal("no configmaps")
	}
	var object map[string]any
	testcluster.Eventually(t, 10*time.Second, func() (err error) { // the rights take a moment
		object, err = c.Get(t.Context(), info, f.ns, "c")
		return err
	})
	result := c.Evaluate(t.Context(), set.For(configmaps), info, object, time.Now())
	for _, v := range result.Verdicts {
		if v.Outcome != rules.Patch || v.Trace == nil {
			t.Errorf("%s: %s %s %v", v.Rule.Name, v.Outcome, v.Reason, v.Err)
		}
	}
	if len(result.Verdicts) != 3 || len(result.Notes) > 0 {
		t.Errorf("%d verdicts, notes %q", len(result.Verdicts), result.Notes)
	}
	count := map[string]int{}
	for _, r := range f.requests("get namespaces/" + f.ns) {
		verb, what, _ := strings.Cut(r, " ")
		if verb != "get" && verb != "list" {
			t.Errorf("it sends %s", r)
		}
		if !strings.HasPrefix(what, "/") && r != "get configmaps/c" {
			count[r]++
		}
	}
	// Three pages of all, two of those with the label, one of the one by name.
	want := map[string]int{"get namespaces/" + f.ns: 1, "list secrets": 5, "list secrets/s3": 1}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("requests (-want +got)\n%s", diff)
	}
}

// What may not be read is not known, and says so; a Role that names an object
// is enough to look that up.
func TestWhatMayNotBeReadIsNotKnown(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, true, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {rectifier.dev/skip: d}}, data: {a: b}}`)
	f.create(secrets, true, `{apiVersion: v1, kind: Secret, metadata: {name: mine}, stringData: {pw: c2VjcmV0}}`)
	f.grant(false, right("", "configmaps", "get"), right("", "secrets", "list get", "mine"))
	c := f.connect()
	set := f.load(
		configMapRule("a", "lookups: [{name: pods, resource: {version: v1, resource: pods}, namespace: NS}]\n  condition: lookups.pods.size() == 0\n  patch: {merge: {data: {a: x}}}"),
		configMapRule("b", "lookups: [{name: s, resource: {version: v1, resource: secrets}, namespace: NS, where: {metadata.name: mine}}]\n  condition: lookups.s.size() == 1\n  patch: {merge: {data: {b: x}}}"),
		configMapRule("c", "condition: namespaceObject.metadata.name == 'x'\n  patch: {merge: {data: {c: x}}}"),
		configMapRule("d", "patch: {merge: {data: {d: x}}}"),
		configMapRule("e", "patch: {applyConfiguration: {data: {e: x}}}"),
		configMapRule("f", "lookups: [{name: s, resource: {version: v1, resource: secrets}}]\n  condition: lookups.s.size() == 1\n  patch: {merge: {data: {f: x}}}"),
	)
	info, _, _ := c.Info(t.Context(), configmaps)
	var object map[string]any
	testcluster.Eventually(t, 10*time.Second, func() (err error) {
		object, err = c.Get(t.Context(), info, f.ns, "c")
		return err
	})
	result := c.Evaluate(t.Context(), set.For(configmaps), info, object, time.Now())
	var got []string
	for _, v := range result.Verdicts {
		text := fmt.Sprintf("%s %s %s", v.Rule.Name, v.Outcome, v.Reason)
		if v.Err != nil {
			text += v.Err.Error()
		}
		got = append(got, strings.ReplaceAll(text, f.ns, "NS"))
	}
	want := []string{
		"a Error lookup pods of v1/pods is not known: list pods in NS: Forbidden (HTTP 403)",
		"b Patch ",
		`c Error the Namespace "NS" is not known`,
		"d Skip the object has the annotation rectifier.dev/skip",
		"e Patch ",
		"f Error lookup s of v1/secrets is not known: list secrets: Forbidden (HTTP 403)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if note := `the Namespace "` + f.ns + `" cannot be read, so opt-outs on it are not seen: get namespaces ` + f.ns + `: Forbidden (HTTP 403)`; !slices.Equal(result.Notes, []string{note}) {
		t.Errorf("notes %q", result.Notes)
	}
	if _, err := c.Get(t.Context(), info, f.ns, "nope"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get what is not there: %v", err)
	}
	pods, _, _ := c.Info(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	if _, err := c.Get(t.Context(), pods, f.ns, "nope"); err == nil || errors.Is(err, ErrNotFound) || !strings.HasSuffix(err.Error(), "Forbidden (HTTP 403)") {
		t.Errorf("get what may not be read: %v", err)
	}
}

// Where a custom resource keeps its replicas is in its CRD.
func TestCustomResources(t *testing.T) {
	f := newFixture(t)
	group := strings.ReplaceAll(f.ns, "-", "") + ".example.io"
	crd := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wdgt]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`
	f.create(crds, false, strings.ReplaceAll(crd, "GROUP", group))
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	t.Cleanup(func() {
		_ = testcluster.Dynamic(t).Resource(crds).Delete(context.Background(), "widgets."+group, metav1.DeleteOptions{})
	})
	var c *Cluster
	testcluster.Eventually(t, 30*time.Second, func() error {
		c = f.connect()
		if _, reason, ok := c.Info(t.Context(), widgets); !ok {
			return errors.New(reason)
		}
		return nil
	})
	info, _, _ := c.Info(t.Context(), widgets)
	if info.ReplicasPath != nil || !info.HasScale || info.HasStatus || !info.Namespaced {
		t.Errorf("without the right to read CRDs: %+v", info)
	}
	set := f.load("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: a}\nspec:\n  resource: {group: " + group + ", version: v1, resource: widgets}\n  patch: {subresource: scale, merge: {spec: {replicas: 3}}}\n")
	if why := c.Parked(t.Context(), set.All()[0], info); why != rules.ErrReplicasUnknown.Error() {
		t.Errorf("parked: %q", why)
	}
	f.grant(true, right("apiextensions.k8s.io", "customresourcedefinitions", "get"))
	testcluster.Eventually(t, 10*time.Second, func() error {
		c = f.connect()
		if info, _, _ = c.Info(t.Context(), widgets); !slices.Equal(info.ReplicasPath, []string{"spec", "size"}) {
			return fmt.Errorf("with it: %+v", info)
		}
		return nil
	})
	if why := c.Parked(t.Context(), set.All()[0], info); why != "" {
		t.Errorf("parked: %q", why)
	}
	if found, err := c.Resources(ParseArgument("wdgt."+group), func(schema.GroupResource) bool { return false }); err != nil || !slices.Equal(found, []schema.GroupVersionResource{widgets}) {
		t.Errorf("by its short name: %v, %v", found, err)
	}
	var known lint.Resource
	testcluster.Eventually(t, 30*time.Second, func() error { // schemas are published later
		var ok bool
		if known, ok = (Known{c}).Resource(t.Context(), widgets); !ok || known.Kind != "Widget" || known.Schema == nil || known.ReplicasPath == nil {
			return fmt.Errorf("to lint: %+v, %v", known, ok)
		}
		return nil
	})
	root, definitions, err := known.Schema.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	spec := definitions[root].Properties["spec"]
	if _, ok := spec.Properties["size"]; !ok {
		t.Errorf("the schema of %s has no spec.size", root)
	}
}

// Built-in resources, as the real API server describes them.
func TestDiscoveryOfTheRealServer(t *testing.T) {
	f := newFixture(t)
	c := f.connect()
	for argument, want := range map[string]string{
		"deploy": "apps/v1/deployments", "deployments.v1.apps": "apps/v1/deployments", "svc": "v1/services", "ns": "v1/namespaces", "no": "v1/nodes",
		"hpa": "autoscaling/v2/horizontalpodautoscalers", "Ingress": "networking.k8s.io/v1/ingresses", "ev": "v1/events", "crd": "apiextensions.k8s.io/v1/customresourcedefinitions",
	} {
		found, err := c.Resources(ParseArgument(argument), func(schema.GroupResource) bool { return false })
		if err != nil || rules.ResourceName(found[0]) != want {
			t.Errorf("%s: %v, %v", argument, found, err)
		}
	}
	info, _, ok := c.Info(t.Context(), deployments)
	if !ok || !info.HasScale || !info.HasStatus || !info.Namespaced || info.Kind != "Deployment" || len(info.ReplicasPath) != 2 {
		t.Errorf("%+v, %v", info, ok)
	}
	if known, ok := (Known{c}).Resource(t.Context(), deployments); !ok || known.Schema == nil {
		t.Error("Deployments have no schema")
	}
	if names := c.Names(); !slices.Contains(names, "deployments") || !slices.Contains(names, "events.events.k8s.io") || slices.Contains(names, "bindings") {
		t.Errorf("names %v", names)
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, err = Connect(t.Context(), &rest.Config{Host: "http://" + address})
	if err == nil || !strings.HasPrefix(err.Error(), "read what the cluster serves: ") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}
