package offline_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }

const podTemplate = `{metadata: {labels: {a: b}}, spec: {restartPolicy: Always, containers: [{name: a, image: a}]}}`

// statefulSetHistory is a case that older servers judge otherwise.
const statefulSetHistory = "stateful set history"

// What lint calls immutable is refused by the API server, and what it says
// nothing of is taken.
func TestTheServerRefusesWhatLintCallsImmutable(t *testing.T) {
	client := testcluster.Dynamic(t)
	namespace := testcluster.Namespace(t)
	job := strings.Replace(podTemplate, "Always", "Never", 1)
	for _, tc := range []struct {
		name, resource string // group/version/resource
		object         string
		patch          string
		immutable      bool
	}{
		{"deployment selector", "apps/v1/deployments", "spec: {selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: c}}}}", true},
		{"deployment template", "apps/v1/deployments", "spec: {selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {template: {metadata: {labels: {c: d}}}}", false},
		{"daemon set selector", "apps/v1/daemonsets", "spec: {selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: c}}}}", true},
		{"replica set selector", "apps/v1/replicasets", "spec: {selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: c}}}}", true},
		{"stateful set service", "apps/v1/statefulsets", "spec: {serviceName: a, selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {serviceName: b}", true},
		{"stateful set policy", "apps/v1/statefulsets", "spec: {selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {podManagementPolicy: Parallel}", true},
		{"stateful set replicas", "apps/v1/statefulsets", "spec: {selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {replicas: 3, minReadySeconds: 3}", false},
		{statefulSetHistory, "apps/v1/statefulsets", "spec: {selector: {matchLabels: {a: b}}, template: " + podTemplate + "}", "spec: {revisionHistoryLimit: 3, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}", false},
		{"job template", "batch/v1/jobs", "spec: {template: " + job + "}", "spec: {template: {metadata: {labels: {c: d}}}}", true},
		{"job completion mode", "batch/v1/jobs", "spec: {template: " + job + "}", "spec: {completionMode: Indexed}", true},
		{"job ttl", "batch/v1/jobs", "spec: {template: " + job + "}", "spec: {ttlSecondsAfterFinished: 3, parallelism: 2, backoffLimit: 2, suspend: true}", false},
		{"pod priority", "v1/pods", "spec: {containers: [{name: a, image: a}]}", "spec: {hostNetwork: true}", true},
		{"pod deadline", "v1/pods", "spec: {containers: [{name: a, image: a}]}", "spec: {activeDeadlineSeconds: 3}", false},
		{"service address", "v1/services", "spec: {ports: [{port: 80}]}", "spec: {clusterIP: 10.0.0.77}", true},
		{"service type", "v1/services", "spec: {ports: [{port: 80}]}", "spec: {type: NodePort, sessionAffinity: ClientIP}", false},
		{"claim class", "v1/persistentvolumeclaims", "spec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}", "spec: {storageClassName: b}", true},
		{"secret type", "v1/secrets", "type: Opaque", "type: example.io/other", true},
		{"storage class policy", "storage.k8s.io/v1/storageclasses", "provisioner: a.example.io", "reclaimPolicy: Retain", true},
		{"storage class provisioner", "storage.k8s.io/v1/storageclasses", "provisioner: a.example.io", "provisioner: b.example.io", true},
		{"storage class parameters", "storage.k8s.io/v1/storageclasses", "provisioner: a.example.io", "parameters: {a: b}", true},
		{"storage class expansion", "storage.k8s.io/v1/storageclasses", "provisioner: a.example.io", "allowVolumeExpansion: true", false},
		{"csi driver", "storage.k8s.io/v1/csidrivers", "spec: {attachRequired: true}", "spec: {attachRequired: false}", true},
		{"ingress class", "networking.k8s.io/v1/ingressclasses", "spec: {controller: example.io/a}", "spec: {controller: example.io/b}", true},
		{"role of a binding", "rbac.authorization.k8s.io/v1/rolebindings", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}", "roleRef: {name: edit}", true},
		{"role of a cluster binding", "rbac.authorization.k8s.io/v1/clusterrolebindings", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}", "roleRef: {name: edit}", true},
		{"priority", "scheduling.k8s.io/v1/priorityclasses", "value: 3", "value: 4", true},
		{"preemption", "scheduling.k8s.io/v1/priorityclasses", "value: 3", "preemptionPolicy: Never", true},
		{"runtime class", "node.k8s.io/v1/runtimeclasses", "handler: a", "handler: b", true},
		{"endpoint slice", "discovery.k8s.io/v1/endpointslices", "{addressType: IPv4, endpoints: []}", "addressType: IPv6", true},
		{"controller revision", "apps/v1/controllerrevisions", "{revision: 1, data: {a: b}}", "data: {a: c}", true},
		{"volume source", "v1/persistentvolumes", "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}", "spec: {hostPath: {path: /b}}", true},
		{"volume policy", "v1/persistentvolumes", "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}", "spec: {persistentVolumeReclaimPolicy: Delete}", false},
		{"volume attachment", "storage.k8s.io/v1/volumeattachments", "spec: {attacher: a.example.io, nodeName: a, source: {persistentVolumeName: a}}", "spec: {nodeName: b}", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == statefulSetHistory {
				testcluster.RequireVersion(t, "1.34", "revisionHistoryLimit of a StatefulSet may be changed")
			}
			known, gvr := widgets(t), resource(tc.resource)
			about, ok := known.Resource(t.Context(), gvr)
			if !ok {
				t.Fatalf("%s is not known", gvr)
			}
			var patch map[string]any
			if err := yaml.Unmarshal([]byte(tc.patch), &patch); err != nil {
				t.Fatal(err)
			}
			if found := findsImmutable(t, known, tc.resource, patch); found != tc.immutable {
				t.Errorf("lint says immutable: %v", found)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			object.SetGroupVersionKind(gvr.GroupVersion().WithKind(about.Kind))
			object.SetGenerateName("a-")
			var in dynamic.ResourceInterface = client.Resource(gvr)
			if about.Namespaced {
				in = client.Resource(gvr).Namespace(namespace)
			}
			created, err := in.Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := in.Delete(context.Background(), created.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Logf("not deleted: %v", err)
				}
			})
			body, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			_, err = in.Patch(t.Context(), created.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
			if tc.immutable && !apierrors.IsInvalid(err) {
				t.Errorf("the server says %v", err)
			}
			if !tc.immutable && err != nil {
				t.Errorf("the server refuses it: %v", err)
			}
		})
	}
}

func findsImmutable(t *testing.T, known lint.Known, name string, patch map[string]any) bool {
	t.Helper()
	gvr := resource(name)
	rule, err := yaml.Marshal(map[string]any{
		"apiVersion": rules.APIVersion, "kind": rules.Kind, "metadata": map[string]any{"name": "r"},
		"spec": map[string]any{
			"resource": map[string]any{"group": gvr.Group, "version": gvr.Version, "resource": gvr.Resource},
			"patch":    map[string]any{"merge": patch},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range lint.Run(known, rules.Source{Name: "rule.yaml", Data: rule}).Findings {
		switch f.Check.ID {
		case "immutable-field":
			found = true
		case "cel-type", "patch-field", "resource-name", "status-subresource":
			t.Errorf("%s: %v", f.Check.ID, f.Problem)
		}
	}
	return found
}
