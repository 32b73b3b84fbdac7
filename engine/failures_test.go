package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var services = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// RTY-02: a field that cannot change costs one request for each version of the
// object, and one Warning that says so. Nothing is deleted and made again.
func TestWhatCannotChangeIsToldOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	f.create(jobs, `
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "r.example/c:1"}]}}}`)
	f.create(deployments, deploymentYAML, "deployment", "3", 3)
	f.create(services, `{apiVersion: v1, kind: Service, metadata: {name: service}, spec: {ports: [{port: 80}]}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: configmap}, immutable: true, data: {is: s3cr3t}}`)
	cases := []struct {
		name, resource, patch string
		gvr                   schema.GroupVersionResource
		want                  string
	}{
		{"job", "{group: batch, version: v1, resource: jobs}", `{merge: {spec: {template: {spec: {restartPolicy: OnFailure}}}}}`, jobs,
			"spec.template: FieldValueInvalid; field is immutable"},
		{"deployment", "{group: apps, version: v1, resource: deployments}", `{json: [{op: replace, path: /spec/selector/matchLabels, value: {app: other}}, {op: replace, path: /spec/template/metadata/labels, value: {app: other}}]}`, deployments,
			"spec.selector: FieldValueInvalid; field is immutable"},
		{"service", "{version: v1, resource: services}", `{merge: {spec: {clusterIP: 10.0.0.200}}}`, services,
			"spec.clusterIPs[0]: FieldValueInvalid; may not change once set"},
		{"configmap", "{version: v1, resource: configmaps}", `{merge: {data: {is: other}}}`, configmaps,
			"data: FieldValueForbidden; field is immutable"},
	}
	var set []string
	uids := map[string]string{}
	for _, tc := range cases {
		set = append(set, rule(tc.name, "resource: "+tc.resource+"\nmatch: {namespaces: [NS], names: ["+tc.name+"]}\npatch: "+tc.patch))
		uids[tc.name] = string(f.get(tc.gvr, tc.name).GetUID())
	}
	f.start(set...)
	for _, tc := range cases {
		f.wantEvent(tc.name, "Warning PatchRefused: rule "+tc.name+": the API server refuses the change: Invalid ("+tc.want+")")
	}
	for _, tc := range cases {
		f.settle(tc.gvr.Resource)
		if got := f.requestsAbout(tc.gvr.Resource, tc.name); len(got) != 1 {
			t.Errorf("%d requests to %s, want 1", len(got), tc.name)
		}
		for i := range 5 {
			f.merge(tc.gvr, tc.name, fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		}
		f.settle(tc.gvr.Resource)
		f.wantPaced(tc.gvr.Resource, tc.name, 5)
		f.wantTold(logs, tc.name, "Warning PatchRefused")
		if uid := string(f.get(tc.gvr, tc.name).GetUID()); uid != uids[tc.name] {
			t.Errorf("%s is another object now", tc.name)
		}
	}
}

// What is too large is held for its version and told once, by whatever part of
// the API server it is turned away; it is no outage. When the object has become
// smaller, the change is made.
func TestWhatIsTooLargeIsToldOnce(t *testing.T) {
	t.Parallel()
	f := ownFixture(t, controlplane.Options{Audit: true})
	logs := f.captureLogs()
	text := func(n int) string { return strings.Repeat("x", n) }
	configMap := func(name string, n int) {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {text: %s}}`, name, text(n))
	}
	deployment := func(name string, n int) {
		f.create(deployments, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "r.example/web:1", args: [%s]}]}}`, name, text(n))
	}
	const aConfigMap, aDeployment = "{version: v1, resource: configmaps}", "{group: apps, version: v1, resource: deployments}"
	const second = `{json: [{op: add, path: /spec/template/spec/containers/0/args/1, value: "${object.spec.template.spec.containers[0].args[0]}"}]}`
	const once = "condition: object.spec.template.spec.containers[0].args.size() == 1\n"
	const shrunk = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"r.example/web:1","args":["small"]}]}}}}`
	cases := []struct {
		name, resource, spec string
		gvr                  schema.GroupVersionResource
		create               func(string, int)
		size, requests       int
		want, shrink         string
	}{
		{"annotations", aConfigMap, `patch: {merge: {metadata: {annotations: {copy: "${object.data.text + object.data.text}"}}}}`, configmaps, configMap, 200_000, 1,
			"Invalid (metadata.annotations: FieldValueTooLong)", `{"data":{"text":"small"}}`},
		{"data", aConfigMap, `patch: {merge: {data: {copy: "${object.data.text}"}}}`, configmaps, configMap, 600_000, 1,
			"Invalid (FieldValueTooLong)", `{"data":{"text":"small"}}`},
		{"request", aConfigMap, `patch: {merge: {data: {a: "${object.data.text}", b: "${object.data.text}", c: "${object.data.text}", d: "${object.data.text}"}}}`, configmaps, configMap, 900_000, 0,
			"/metadata: patch too large", `{"data":{"text":"small"}}`},
		{"stored", aDeployment, once + "patch: " + second, deployments, deployment, 900_000, 1,
			"the object or the request is too large", shrunk},
		{"sent", aDeployment, once + "patch: " + second, deployments, deployment, 1_300_000, 1,
			"the object or the request is too large", shrunk},
	}
	var set []string
	for _, tc := range cases {
		tc.create(tc.name, tc.size)
		set = append(set, rule(tc.name, "resource: "+tc.resource+"\nmatch: {namespaces: [NS], names: ["+tc.name+"]}\n"+tc.spec))
	}
	f.start(set...)
	for _, tc := range cases {
		f.wantEvent(tc.name, tc.want)
	}
	f.settle("deployments")
	for _, tc := range cases {
		f.wantTold(logs, tc.name, "Warning PatchRefused: rule "+tc.name+": the API server refuses the change: "+tc.want)
		if got := f.requestsAbout(tc.gvr.Resource, tc.name); len(got) != tc.requests {
			t.Errorf("%d requests to %s, want %d", len(got), tc.name, tc.requests)
		}
		f.merge(tc.gvr, tc.name, tc.shrink)
		f.wantEvent(tc.name, "Normal Rectified")
	}
}

// An exceeded quota is a denial that passes, not a missing permission.
func TestAQuotaThatIsExceeded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	f.create(quotas, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {services.loadbalancers: "0"}}}`)
	f.merge(quotas, "q", `{"status":{"hard":{"services.loadbalancers":"0"},"used":{"services.loadbalancers":"0"}}}`, "status")
	f.create(services, `{apiVersion: v1, kind: Service, metadata: {name: front}, spec: {ports: [{port: 80}]}}`)
	f.start(rule("expose", `
resource: {version: v1, resource: services}
condition: object.spec.type != 'LoadBalancer'
patch: {merge: {spec: {type: LoadBalancer}}}`))
	f.wantTold(logs, "front", "Warning PatchRefused: rule expose: the API server refuses the change: Forbidden")
	if _, body := f.readyz(); strings.Contains(body, "forbidden: patch") {
		t.Errorf("a quota is taken for a missing permission:\n%s", body)
	}
	f.merge(quotas, "q", `{"spec":{"hard":{"services.loadbalancers":"1"}}}`)
	f.merge(quotas, "q", `{"status":{"hard":{"services.loadbalancers":"1"}}}`, "status")
	f.eventually(soon, services, "front", "LoadBalancer", "spec", "type")
	f.wantTold(logs, "front", "Warning PatchRefused", "Normal Rectified")
	f.wantPaced("services", "front", 0)
}

// A ValidatingAdmissionPolicy answers as if the object were invalid. When it has
// gone, the change is made, though nothing has happened to the object.
func TestAPolicyThatDenies(t *testing.T) {
	t.Parallel()
	testcluster.RequireVersion(t, "1.30", "ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1")
	f := newFixture(t)
	logs := f.captureLogs()
	admission := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
	}
	policies, bindings := admission("validatingadmissionpolicies"), admission("validatingadmissionpolicybindings")
	for resource, y := range map[schema.GroupVersionResource]string{
		policies: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
  validations: [{expression: "!has(object.data.fixed)", messageExpression: "'s3cr3t: ' + object.data.fixed"}]`,
		bindings: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}`,
	} {
		u := f.object(y, f.ns)
		u.SetNamespace("")
		if _, err := f.client.Resource(resource).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = f.client.Resource(resource).Delete(context.WithoutCancel(t.Context()), f.ns, metav1.DeleteOptions{})
		})
	}
	f.configMap("probe", "denied")
	testcluster.Eventually(t, 30*time.Second, func() error { // a policy takes effect when it is compiled
		patch := func(body string) error {
			_, err := f.client.Resource(configmaps).Namespace(f.ns).Patch(t.Context(), "probe", "application/merge-patch+json", []byte(body), metav1.PatchOptions{})
			return err
		}
		if patch(`{"data":{"fixed":"yes"}}`) != nil {
			return nil
		}
		return fmt.Errorf("the policy is not in force; and %v", patch(`{"data":{"fixed":null}}`))
	})
	f.start(sets("mark", "fixed", "merge", "denied"))
	f.wantTold(logs, "denied", "Warning PatchRefused: rule mark: the API server refuses the change: Invalid")
	if err := f.client.Resource(bindings).Delete(t.Context(), f.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually(30*time.Second, configmaps, "denied", "yes", "data", "fixed")
	f.wantTold(logs, "denied", "Warning PatchRefused", "Normal Rectified")
	f.wantPaced("configmaps", "denied", 0)
	if leaks := logs.matching("s3cr3t"); len(leaks) > 0 {
		t.Errorf("published: %s", leaks)
	}
}

// RTY-05: in a Namespace that is going, objects that are not yet deleted are
// patched, those that are being deleted are left alone, and Events, which cannot
// be written any more, fail nothing and are not logged one by one.
func TestANamespaceThatIsTerminating(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	for i := range 10 {
		f.configMap(fmt.Sprintf("here-%d", i))
	}
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: going, finalizers: [example.io/hold]}, data: {there: already}}`)
	if err := f.client.Resource(configmaps).Namespace(f.ns).Delete(t.Context(), "going", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Without kube-controller-manager, nothing in it is deleted.
	if err := f.client.Resource(namespaces).Delete(t.Context(), f.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, soon, func() error { // admission sees it by a watch of its own
		_, err := f.client.Resource(configmaps).Namespace(f.ns).Create(t.Context(), f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {generateName: probe-}}`), metav1.CreateOptions{})
		if err == nil {
			return fmt.Errorf("the Namespace still takes new objects")
		}
		return nil
	})
	f.start(rule("mark", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: ["here-*", going]}
condition: object.data[?'fixed'] != optional.of('yes')
patch: {merge: {data: {fixed: "yes"}}}`))
	for i := range 10 {
		f.eventually(soon, configmaps, fmt.Sprintf("here-%d", i), "yes", "data", "fixed")
	}
	f.settle("configmaps")
	if accepted, all := f.writes("configmaps"); accepted != 10 || all != 10 {
		t.Errorf("%d requests, %d accepted; want 10", all, accepted)
	}
	testcluster.Eventually(t, soon, func() error {
		if refused := f.answered("events", 403); refused != 10 {
			return fmt.Errorf("%d of 10 Events have been refused", refused)
		}
		return nil
	})
	if got := f.eventsOn("here-0"); len(got) != 0 {
		t.Errorf("there are Events: %q", got)
	}
	if failed := append(logs.matching("Sync failed"), logs.matching("Event")...); len(failed) > 0 {
		t.Errorf("it is taken for a failure:\n%s", strings.Join(failed, ""))
	}
	f.merge(configmaps, "going", `{"metadata":{"finalizers":null}}`)
}

// RTY-01: what was to be done in a Namespace that was deleted before is dropped:
// nothing is tried twice, held, told or remembered.
func TestANamespaceThatIsDeletedFirst(t *testing.T) {
	t.Parallel()
	testcluster.RequireControllerManager(t)
	f := ownFixture(t, controlplane.Options{Audit: true, ControllerManager: true})
	logs := f.captureLogs()
	f.ns = "brief"
	namespace := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: brief}}`)
	namespace.SetNamespace("")
	if _, err := f.client.Resource(namespaces).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const n = 30
	for i := range n {
		f.configMap(fmt.Sprintf("brief-%d", i))
	}
	gone := make(chan struct{})
	var waiting atomic.Int32
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps/") {
			waiting.Add(1)
			select {
			case <-gone:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
	f.startAs(config, Options{}, rule("mark", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: ["brief-*"]}
condition: object.data[?'fixed'] != optional.of('yes')
patch: {merge: {data: {fixed: "yes"}}}`))
	testcluster.Eventually(t, soon, func() error {
		if waiting.Load() == 0 {
			return fmt.Errorf("nothing is written yet")
		}
		return nil
	})
	if err := f.client.Resource(namespaces).Delete(t.Context(), f.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, time.Minute, func() error {
		_, err := f.client.Resource(namespaces).Get(t.Context(), f.ns, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Namespace is still there (%v)", err)
		}
		return nil
	})
	close(gone)
	testcluster.Eventually(t, time.Minute, func() error {
		f.engine.objects.mu.Lock()
		defer f.engine.objects.mu.Unlock()
		if queued, states := f.queued(), len(f.engine.objects.states); queued > 0 || states > 0 {
			return fmt.Errorf("%d keys are queued, %d objects remembered", queued, states)
		}
		return nil
	})
	f.settle("configmaps")
	for _, e := range f.requests("configmaps") {
		if e.ResponseStatus.Code != http.StatusNotFound {
			t.Errorf("a %s of %s was answered with %d", e.Verb, e.ObjectRef.Name, e.ResponseStatus.Code)
		}
	}
	if _, all := f.writes("configmaps"); all == 0 || all > n {
		t.Errorf("%d requests for %d objects", all, n)
	}
	if told := append(logs.matching("Rule failed"), logs.matching("Sync failed")...); len(told) > 0 {
		t.Errorf("it is taken for a failure:\n%s", strings.Join(told, ""))
	}
}
