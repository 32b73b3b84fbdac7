package testcluster_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name},
		"data":     map[string]any{"key": "value"},
	}}
}

func TestARequestIsInTheAuditLog(t *testing.T) {
	cluster := testcluster.Start(t)
	namespace := testcluster.Namespace(t)
	maps := testcluster.Dynamic(t).Resource(configMaps).Namespace(namespace)
	if _, err := maps.Create(t.Context(), configMap("seen"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "seen", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	var events []controlplane.AuditEvent
	testcluster.Eventually(t, 10*time.Second, func() (err error) {
		events, err = cluster.AuditEvents(func(e *controlplane.AuditEvent) bool {
			return e.ObjectRef.Namespace == namespace && e.ObjectRef.Resource == "configmaps"
		})
		if err == nil && len(events) < 2 {
			err = fmt.Errorf("%d of 2 requests are logged", len(events))
		}
		return err
	})
	if len(events) != 2 {
		t.Fatalf("%d events for 2 requests: %+v", len(events), events)
	}
	create, get := events[0], events[1]
	if create.Verb != "create" || create.ResponseStatus.Code != 201 || create.User.Username != "admin" || create.ObjectRef.Name != "seen" {
		t.Errorf("the create is logged as %+v", create)
	}
	if create.Stage != "ResponseComplete" || create.RequestReceivedTimestamp.IsZero() {
		t.Errorf("stage %q, received %s", create.Stage, create.RequestReceivedTimestamp)
	}
	if len(create.RequestObject) == 0 || len(create.ResponseObject) == 0 {
		t.Errorf("a write is logged without its objects")
	}
	if get.Verb != "get" || get.ResponseStatus.Code != 200 || len(get.ResponseObject) != 0 {
		t.Errorf("the get is logged as %+v", get)
	}
}

func TestAUserWithoutRightsIsRefused(t *testing.T) {
	cluster := testcluster.Start(t)
	namespace := testcluster.Namespace(t)
	config, err := cluster.User("nobody", "strangers")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(configMaps).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("want 403, got %v", err)
	}
}

func TestNamespacesDiffer(t *testing.T) {
	if first, second := testcluster.Namespace(t), testcluster.Namespace(t); first == second {
		t.Fatalf("twice %s", first)
	}
}
