package gvr

import (
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// traffic sees what a client asks for and in which encoding it is answered.
type traffic struct {
	next   http.RoundTripper
	paged  bool                 // no streamed lists, and pages of two
	modify func(*http.Response) // of answers in protobuf; may be nil
	mu     sync.Mutex
	seen   map[string][]string // by path: WATCH or LIST, and the subtype of the content
}

func (s *traffic) config(t testing.TB) *rest.Config {
	s.seen = map[string][]string{}
	config := rest.CopyConfig(testcluster.Start(t).AdminConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { s.next = next; return s })
	return config
}

func (s *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if s.paged && !query.Has("watch") && (query.Has("resourceVersion") || query.Has("continue")) {
		r = r.Clone(r.Context())
		query.Del("resourceVersion") // pages come from etcd only
		query.Set("limit", "2")
		r.URL.RawQuery = query.Encode()
	}
	if s.paged && query.Has("sendInitialEvents") {
		refusal := httptest.NewRecorder()
		writeStatus(refusal, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return refusal.Result(), nil
	}
	resp, err := s.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	verb := "LIST "
	if isWatch(r) {
		verb = "WATCH "
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	_, subtype, _ := strings.Cut(media, "/")
	s.mu.Lock()
	s.seen[r.URL.Path] = append(s.seen[r.URL.Path], verb+strings.TrimPrefix(subtype, "vnd.kubernetes."))
	s.mu.Unlock()
	if s.modify != nil && media == kruntime.ContentTypeProtobuf {
		s.modify(resp)
	}
	return resp, nil
}

// of returns what was seen of a resource.
func (s *traffic) of(gvr schema.GroupVersionResource) []string {
	path := "/apis/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource
	if gvr.Group == "" {
		path = "/api/" + gvr.Version + "/" + gvr.Resource
	}
	return s.at(path)
}

func (s *traffic) at(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen[path])
}

// jsonClient is an Options.NewClient that reads JSON, whatever the kind.
func jsonClient(t testing.TB) func(schema.GroupVersionResource, *projection.Projector) (dynamic.Interface, error) {
	c, err := newClients(testcluster.Start(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return func(gvr schema.GroupVersionResource, p *projection.Projector) (dynamic.Interface, error) {
		return c.forResource(gvr, p.Serializer())
	}
}

// watchableResources are all that the server has.
func watchableResources(t testing.TB) (gvrs []schema.GroupVersionResource) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testcluster.Start(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "watch") && !strings.HasSuffix(gv.Group, ".example.com") {
				gvrs = append(gvrs, gv.WithResource(r.Name))
			}
			kind, ok := projection.BuiltinKind(gv.WithResource(r.Name))
			if ok && !strings.Contains(r.Name, "/") && kind.Kind != r.Kind {
				t.Errorf("%s are taken for %s, and are %s", r.Name, kind.Kind, r.Kind)
			}
		}
	}
	return gvrs
}

// objectsOfAllKinds are what tells the encodings apart.
const objectsOfAllKinds = `
- {resource: v1/configmaps, kind: ConfigMap, data: {a: "", "b.c": "two\nlines \"x\" é"}, binaryData: {bin: AAH/, none: ""}}
- {resource: v1/configmaps, kind: ConfigMap, metadata: {name: empty}, immutable: false}
- {resource: v1/secrets, kind: Secret, type: Opaque, data: {password: aHVudGVyMg==, none: ""}}
- {resource: v1/services, kind: Service, spec: {ports: [{port: 80, targetPort: http, name: a}, {port: 81, targetPort: 8081, name: b}], selector: {a: b}}}
- {resource: v1/serviceaccounts, kind: ServiceAccount, automountServiceAccountToken: false}
- {resource: v1/pods, kind: Pod, spec: {automountServiceAccountToken: false, terminationGracePeriodSeconds: 0, tolerations: [{operator: Exists, tolerationSeconds: 0, effect: NoExecute}], volumes: [{name: e, emptyDir: {sizeLimit: 1.5Gi}}, {name: c, configMap: {name: x, optional: true, items: [{key: a, path: b, mode: 256}]}}, {name: p, projected: {sources: [{secret: {name: z}}]}}], containers: [{name: a, image: x, env: [{name: A}, {name: B, value: b}, {name: C, valueFrom: {configMapKeyRef: {name: x, key: k}}}], resources: {limits: {cpu: 500m, memory: 1e9}, requests: {cpu: "0.1"}}, livenessProbe: {httpGet: {port: http, path: /}, initialDelaySeconds: 0}, readinessProbe: {exec: {command: [a]}}, securityContext: {runAsUser: 0, privileged: false}}]}}
- {resource: v1/persistentvolumeclaims, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
- {resource: v1/limitranges, kind: LimitRange, spec: {limits: [{type: Container, default: {cpu: 100m}}]}}
- {resource: v1/events, kind: Event, involvedObject: {kind: Pod, name: a, namespace: NAMESPACE}, reason: R, type: Normal, firstTimestamp: "2026-10-01T10:11:12Z", eventTime: "2026-10-01T10:11:12.000120Z", action: a, reportingComponent: c, reportingInstance: i}
- {resource: apps/v1/deployments, kind: Deployment, spec: {replicas: 0, selector: {matchLabels: {a: b}}, strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}}}
- {resource: apps/v1/statefulsets, kind: StatefulSet, spec: {serviceName: s, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}
- {resource: apps/v1/daemonsets, kind: DaemonSet, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}}}
- {resource: apps/v1/controllerrevisions, kind: ControllerRevision, revision: 1, data: {spec: {a: 1, b: [1.5, null]}}}
- {resource: batch/v1/cronjobs, kind: CronJob, spec: {schedule: "* * * * *", suspend: false, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: x}]}}}}}}
- {resource: batch/v1/jobs, kind: Job, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: x}]}}}}
- {resource: networking.k8s.io/v1/networkpolicies, kind: NetworkPolicy, spec: {podSelector: {}, ingress: [{}], egress: [{ports: [{port: 53, protocol: UDP}, {port: dns}], to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}}
- {resource: networking.k8s.io/v1/ingresses, kind: Ingress, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}, rules: [{host: a.example.com, http: {paths: [{pathType: Prefix, path: /, backend: {service: {name: a, port: {name: x}}}}]}}]}}
- {resource: rbac.authorization.k8s.io/v1/roles, kind: Role, rules: null}
- {resource: rbac.authorization.k8s.io/v1/roles, kind: Role, metadata: {name: empty}, rules: []}
- {resource: rbac.authorization.k8s.io/v1/roles, kind: Role, metadata: {name: full}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
- {resource: rbac.authorization.k8s.io/v1/rolebindings, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}}
- {resource: autoscaling/v2/horizontalpodautoscalers, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1500m}}}]}}
- {resource: policy/v1/poddisruptionbudgets, kind: PodDisruptionBudget, spec: {minAvailable: 50%, selector: {}}}
- {resource: coordination.k8s.io/v1/leases, kind: Lease, spec: {holderIdentity: "", leaseTransitions: 0, acquireTime: "2026-10-01T10:11:12.000000Z", renewTime: "2026-10-01T10:11:12.123456Z"}}
- {resource: discovery.k8s.io/v1/endpointslices, kind: EndpointSlice, addressType: IPv4, endpoints: [], ports: []}
- {resource: discovery.k8s.io/v1/endpointslices, kind: EndpointSlice, metadata: {name: full}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}], ports: [{port: 80}]}
`

// createAllKinds creates them and returns functions that change and delete them.
func createAllKinds(t *testing.T) (change, deleteAll func()) {
	t.Helper()
	namespace := testcluster.Namespace(t)
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(objectsOfAllKinds, "NAMESPACE", namespace)), &objects); err != nil {
		t.Fatal(err)
	}
	var all []func(patch bool)
	for _, object := range objects {
		parts := strings.Split(object["resource"].(string), "/")
		gvr := schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}
		if len(parts) == 3 {
			gvr = schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
		}
		delete(object, "resource")
		u := &unstructured.Unstructured{Object: object}
		u.SetAPIVersion(gvr.GroupVersion().String())
		if u.GetName() == "" {
			u.SetName("a")
		}
		client := testcluster.Dynamic(t).Resource(gvr).Namespace(namespace)
		if _, err := client.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", gvr, err)
		}
		all = append(all, func(patch bool) {
			var err error
			if patch {
				_, err = client.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"é\n\"","b":""},"finalizers":["example.com/x"]}}`), metav1.PatchOptions{})
			} else {
				// First it is being deleted, then it is gone.
				if err = client.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}); err == nil {
					_, err = client.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				}
			}
			if err != nil {
				t.Errorf("%s: %v", gvr, err)
			}
		})
	}
	do := func(patch bool) func() {
		return func() {
			for _, f := range all {
				f(patch)
			}
		}
	}
	return do(true), do(false)
}

// Everything that the real API server has is the same from protobuf as from JSON.
func TestProtobufIsReadAsJSONOnRealServer(t *testing.T) {
	testcluster.RequireVersion(t, "1.35", "a server of which protobuf is read")
	whole := projection.Fields{Set: fieldset.Whole(), ManagedFields: true}
	some := projection.Fields{Set: fieldset.Keys("spec").Union(fieldset.Of("metadata", "annotations", "a"), fieldset.Of("metadata", "finalizers"), fieldset.Keys("data"),
		fieldset.Of("rules", fieldset.Elem, "verbs"), fieldset.Of("spec", "template", "spec", "containers"), fieldset.Presence("status"))}
	definition, widgets := customResource(t)
	createCRD(t, definition)
	createWidget(t, widgets, testcluster.Namespace(t), "w")
	for _, tt := range []struct {
		name   string
		paged  bool
		fields projection.Fields
	}{{"streamed, whole", false, whole}, {"paged, some", true, some}} {
		t.Run(tt.name, func(t *testing.T) {
			change, deleteAll := createAllKinds(t)
			all := append(watchableResources(t), widgets)
			s := &traffic{paged: tt.paged}
			fields := func(schema.GroupVersionResource, Info) projection.Fields { return tt.fields }
			m, _, _ := run(t, Options{Config: s.config(t), Fields: fields}, all...)
			reference, _, _ := run(t, Options{Config: testcluster.Start(t).AdminConfig(), Fields: fields, NewClient: jsonClient(t)}, all...)
			for _, step := range []func(){func() {}, change, deleteAll} {
				step()
				testcluster.Eventually(t, 60*time.Second, func() error { return sameStores(m, reference, all) })
			}

			protobuf, pages := 0, 0
			for _, gvr := range all {
				want := "protobuf"
				if _, ok := projection.BuiltinKind(gvr); !ok || gvr.Resource == "statefulsets" && tt.fields.IsWhole() {
					want = "json"
				} else {
					protobuf++
				}
				seen := s.of(gvr)
				if gvr == crdResource {
					continue // the Manager has a watch of its own
				}
				if !tt.paged && !slices.Equal(seen, []string{"WATCH " + want}) {
					t.Errorf("%s: %q", gvr, seen)
				}
				pages = max(pages, len(seen)-1)
				if tt.paged && (seen[0] != "LIST "+want || seen[len(seen)-1] != "WATCH "+want) {
					t.Errorf("%s: %q", gvr, seen)
				}
			}
			if tt.paged && pages < 3 {
				t.Errorf("no more than %d pages", pages)
			}
			if protobuf < 40 {
				t.Errorf("only %d resources came as protobuf", protobuf)
			}
		})
	}
}

// sameStores compares what two Managers have, and what the server has.
func sameStores(m, reference *Manager, all []schema.GroupVersionResource) error {
	for _, gvr := range all {
		if !m.Synced(gvr) || !reference.Synced(gvr) {
			return fmt.Errorf("%s: not synced", gvr)
		}
		want, got := byName(reference.List(gvr)), byName(m.List(gvr))
		if !reflect.DeepEqual(want, got) {
			return fmt.Errorf("%s (-want +got):\n%s", gvr, cmp.Diff(want, got))
		}
	}
	return nil
}

func byName(objects []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for _, o := range objects {
		out[o.GetNamespace()+"/"+o.GetName()] = o.Object
	}
	return out
}
