package controlplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
)

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.io/web:1}]}
`

const autoscalerYAML = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: team}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 5
`

func TestControllersWork(t *testing.T) {
	if _, err := binaries.Find(controllerManager); err != nil {
		t.Skip("kube-controller-manager is optional: ", err)
	}
	c := start(t, Options{ControllerManager: true})
	client, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	create := func(gvr schema.GroupVersionResource, namespace, manifest string) {
		t.Helper()
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(gvr).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(resource string) int {
		group := schema.GroupVersionResource{Group: "", Version: "v1", Resource: resource}
		list, err := client.Resource(group).Namespace("team").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}

	create(namespaces, "", "{apiVersion: v1, kind: Namespace, metadata: {name: team}}")
	create(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "team", deploymentYAML)
	eventually(t, "the Deployment has its 2 pods", func() bool { return count("pods") == 2 })
	create(schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, "team", autoscalerYAML)
	eventually(t, "the autoscaler has raised them to 3", func() bool { return count("pods") == 3 })
	if err := client.Resource(namespaces).Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace and all in it are gone", func() bool {
		list, err := client.Resource(namespaces).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=team"})
		return err == nil && len(list.Items) == 0
	})
}
