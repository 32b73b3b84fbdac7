package chaos

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/connrotation"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

const rbacGroup = "rbac.authorization.k8s.io"

var (
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	clusterRoles = schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: "clusterroles"}
	bindings     = schema.GroupVersionResource{Group: rbacGroup, Version: "v1", Resource: "clusterrolebindings"}
)

// scaled is a rule that writes a subresource.
const scaled = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: scaled}
spec:
  resource: {group: apps, version: v1, resource: deployments}
  match: {namespaces: [NS]}
  condition: string(object.spec.replicas) != object.metadata.labels.replicas
  patch: {subresource: scale, merge: {spec: {replicas: "${int(object.metadata.labels.replicas)}"}}}
`

// annotated is the rule of a third resource: the canary, whose rights stay.
const annotated = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: annotated}
spec:
  resource: {version: v1, resource: secrets}
  match: {namespaces: [NS]}
  condition: object.metadata.annotations.is != object.metadata.annotations.want
  patch: {merge: {metadata: {annotations: {is: "${object.metadata.annotations.want}"}}}}
`

// role is the ClusterRole of a patient: what rules/rbac says that its rules need.
type role struct {
	*lab
	user  string
	needs []rbac.Need
}

// grant puts the role in force, but for some rights.
func (r *role) grant(without func(rbac.Right) bool) {
	r.Helper()
	var grants []any
	for _, n := range r.needs {
		if without != nil && without(n.Right) {
			continue
		}
		grants = append(grants, map[string]any{
			"apiGroups": []any{n.Resource.Group}, "verbs": []any{n.Verb},
			"resources": []any{strings.TrimSuffix(n.Resource.Resource+"/"+n.Subresource, "/")},
		})
	}
	for resource, content := range map[schema.GroupVersionResource]map[string]any{
		clusterRoles: {"kind": "ClusterRole", "rules": grants},
		bindings: {
			"kind":     "ClusterRoleBinding",
			"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": r.user},
			"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": r.user}},
		},
	} {
		content["apiVersion"], content["metadata"] = rbacGroup+"/v1", map[string]any{"name": r.user}
		_, err := r.client.Resource(resource).Apply(r.Context(), r.user, &unstructured.Unstructured{Object: content}, metav1.ApplyOptions{FieldManager: "test", Force: true})
		if err != nil {
			r.Fatalf("grant: %v", err)
		}
	}
}

// takeRights takes rights away and gives them back, one kind after the other and
// all at once. Connections are cut each time: a watch that is open is not asked
// again.
func takeRights(t *trial) {
	const n, cuts = 100, 5
	l := t.own(controlplane.Options{})
	l.logs = &logLines{}
	connections := connrotation.NewDialer((&net.Dialer{}).DialContext)
	r := &role{lab: l}
	p := l.start(func(o *engine.Options) {
		r.user = fmt.Sprintf("limited-%d", labs.Add(1))
		limited, err := l.cp.User(r.user)
		if err != nil {
			l.Fatal(err)
		}
		o.Config.TLSClientConfig = limited.TLSClientConfig
		o.Config.Dial = connections.DialContext
		r.needs = rbac.For(o.Rules, rbac.Options{Known: func(schema.GroupVersionResource) rbac.Resource { return rbac.Resource{Builtin: true} }}).All
		r.grant(nil)
	}, follow, scaled, annotated)
	p.user = r.user
	p.createDeployment()
	p.createSecret()
	p.drift(n, "start")
	p.allRight(2*time.Minute, n, "start")
	p.scaledTo(1)
	before := p.rest()

	is := func(resource, verb, subresource string) func(rbac.Right) bool {
		return func(r rbac.Right) bool {
			return r.Resource.Resource == resource && r.Verb == verb && r.Subresource == subresource
		}
	}
	for i, cut := range []struct {
		what    string
		without func(rbac.Right) bool
		// told is what readiness says; one of them. works are the resources that are
		// right all the same.
		told  []string
		works []string
	}{
		// The watch goes on from where it was: a list is not needed for it.
		{"list configmaps", is("configmaps", "list", ""), []string{"v1/configmaps: synced", "v1/configmaps: Forbidden: list configmaps at cluster scope; parked: follow"}, []string{"deployments", "secrets"}},
		{"watch configmaps", is("configmaps", "watch", ""), []string{"v1/configmaps: Forbidden: watch configmaps at cluster scope; parked: follow"}, []string{"deployments", "secrets"}},
		{"patch configmaps", is("configmaps", "patch", ""), []string{"v1/configmaps: forbidden: patch configmaps in namespace " + l.ns + "; parked: follow"}, []string{"deployments", "secrets"}},
		{"patch deployments/scale", is("deployments", "patch", "scale"), []string{"apps/v1/deployments: forbidden: patch deployments/scale in namespace " + l.ns + "; parked: scaled"}, []string{"configmaps", "secrets"}},
		{"everything", func(rbac.Right) bool { return true }, []string{"v1/configmaps: Forbidden: "}, nil},
	} {
		r.grant(cut.without)
		connections.CloseAll()
		want := fmt.Sprintf("without-%d", i)
		replicas := 2 + i
		p.drift(n, want)
		p.merge(deployments, l.ns, "web", fmt.Sprintf(`{"metadata":{"labels":{"replicas":"%d"}}}`, replicas))
		p.merge(secrets, l.ns, "canary", fmt.Sprintf(`{"metadata":{"annotations":{"want":%q}}}`, want))
		testcluster.Eventually(l, time.Minute, func() (err error) {
			for _, told := range cut.told {
				if err = p.ready(told); err == nil {
					break
				}
			}
			return err
		})
		if slices.Contains(cut.works, "secrets") {
			p.annotated(want)
		}
		if slices.Contains(cut.works, "deployments") {
			p.scaledTo(replicas)
		}
		if slices.Contains(cut.works, "configmaps") {
			p.allRight(20*time.Second, n, want)
		}
		r.grant(nil)
		back := time.Now()
		p.allRight(time.Minute, n, want)
		p.scaledTo(replicas)
		p.annotated(want)
		p.saw("without %s: all right %.1f s after it was back", cut.what, time.Since(back).Seconds())
	}
	took := time.Since(before.at)
	for _, resource := range []string{"deployments.apps", "secrets", "configmaps"} {
		p.writes(schema.ParseGroupResource(resource).Resource)
		p.wantLines(fmt.Sprintf("resource=%q version", resource), 5*(2+int(took/time.Minute))) // at most 5 a minute
	}
	p.wantLines("Not allowed to write", 4*cuts)
	p.judge(before, bounds{
		// Three resources, Namespaces and CRDs, each with its back-off.
		"list *": cuts * (2 + attemptsWithin(took/5)), "watch *": cuts * (2 + attemptsWithin(took/5)), "stream *": 4 * cuts,
		"discovery": 2 * (int(took/(10*time.Second)) + 1 + 2*cuts),
		// What may not be written costs a request now and then, not one for each object: those of all workers when the
		// right is taken away, and when it is time to try again.
		"patch configmaps": cuts*n + 4*engine.DefaultWorkers, "patch deployments": 2*cuts + 10, "patch secrets": 2 * cuts,
		"create selfsubjectaccessreviews": 4 * engine.DefaultWorkers, "create events": anyNumber, "patch events": anyNumber,
	})
}

func (p *patient) createDeployment() {
	p.Helper()
	p.create(deployments, p.ns, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "labels": map[string]any{"replicas": "1"}},
		"spec": map[string]any{
			"replicas": int64(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "registry.example/web:1"}}}},
		},
	}})
}

func (p *patient) createSecret() {
	p.Helper()
	p.create(secrets, p.ns, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "canary", "annotations": map[string]any{"is": "", "want": "start"}},
	}})
}

func (p *patient) scaledTo(replicas int) {
	p.Helper()
	p.field(deployments, "web", int64(replicas), "spec", "replicas")
}

func (p *patient) annotated(want string) {
	p.Helper()
	p.field(secrets, "canary", want, "metadata", "annotations", "is")
}

// field waits until a field has a value.
func (p *patient) field(resource schema.GroupVersionResource, name string, want any, path ...string) {
	p.Helper()
	testcluster.Eventually(p, time.Minute, func() error {
		u, err := p.client.Resource(resource).Namespace(p.ns).Get(p.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...); got != want {
			return fmt.Errorf("%s of %s is %v, not %v", strings.Join(path, "."), name, got, want)
		}
		return nil
	})
}
