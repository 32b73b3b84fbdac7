package engine

import (
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// A key in the queue, or in what is remembered, must not keep the text of the whole
// object alive.
func TestKeysHoldNoObject(t *testing.T) {
	e := &Engine{}
	o, err := projection.Of(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a-name", "namespace": "a-namespace", "uid": "u", "resourceVersion": "1"},
	}}, projection.Fields{})
	if err != nil {
		t.Fatal(err)
	}
	var key Key
	e.enqueue(configmaps.GroupResource(), o, func(k Key) { key = k })
	if key.Name != "a-name" || key.Namespace != "a-namespace" {
		t.Fatalf("the key is %v", key)
	}
	if unsafe.StringData(key.Name) == unsafe.StringData(o.Name()) {
		t.Error("the key shares the memory of the object")
	}
}
