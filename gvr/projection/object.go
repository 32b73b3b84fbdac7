package projection

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// Object is an object as a store keeps it: who it is, and the text of what is
// wanted of it. It is immutable and safe for concurrent use.
type Object struct {
	apiVersion, kind string
	namespace, name  string
	uid              types.UID
	resourceVersion  string
	text             string // JSON: the projected object, without the fields above
}

// Of reduces a whole object. It shares nothing with it.
func Of(u *unstructured.Unstructured, fields Fields) (*Object, error) {
	reduced := (&unstructured.Unstructured{Object: fields.Set.Union(kept).Project(u.Object)}).DeepCopy()
	if !fields.ManagedFields {
		unstructured.RemoveNestedField(reduced.Object, "metadata", "managedFields")
	}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion"} {
		unstructured.RemoveNestedField(reduced.Object, "metadata", field)
	}
	delete(reduced.Object, "apiVersion")
	delete(reduced.Object, "kind")
	text, err := json.Marshal(reduced.Object)
	if err != nil {
		return nil, fmt.Errorf("reduce an object: %w", err)
	}
	return &Object{
		apiVersion: u.GetAPIVersion(), kind: u.GetKind(), namespace: u.GetNamespace(), name: u.GetName(),
		uid: u.GetUID(), resourceVersion: u.GetResourceVersion(), text: string(text),
	}, nil
}

func (o *Object) Namespace() string       { return o.namespace }
func (o *Object) Name() string            { return o.name }
func (o *Object) UID() types.UID          { return o.uid }
func (o *Object) ResourceVersion() string { return o.resourceVersion }

// Same reports whether two states of one object differ in nothing that is kept of
// them, but for their resourceVersion.
func (o *Object) Same(other *Object) bool { return o.uid == other.uid && o.text == other.text }

// Bytes is about what the object takes in memory.
func (o *Object) Bytes() int {
	return 112 + len(o.namespace) + len(o.name) + len(o.uid) + len(o.resourceVersion) + len(o.text)
}

// Unstructured returns the object as the fields that are kept of it, parsed anew:
// it is the caller's.
func (o *Object) Unstructured() *unstructured.Unstructured {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(o.text), &object); err != nil {
		panic(fmt.Sprintf("an object was kept that cannot be parsed: %v", err)) // its text has been checked
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion(o.apiVersion)
	u.SetKind(o.kind)
	u.SetName(o.name)
	u.SetNamespace(o.namespace)
	u.SetUID(o.uid)
	u.SetResourceVersion(o.resourceVersion)
	return u
}

// GetObjectMeta implements metav1.ObjectMetaAccessor: informers and their stores
// ask for namespace, name and resourceVersion, and for nothing else.
func (o *Object) GetObjectMeta() metav1.Object { return meta{o: o} }

// meta is the metadata of an Object. What it does not define panics.
type meta struct {
	metav1.Object // nil
	o             *Object
}

func (m meta) GetNamespace() string       { return m.o.namespace }
func (m meta) GetName() string            { return m.o.name }
func (m meta) GetUID() types.UID          { return m.o.uid }
func (m meta) GetResourceVersion() string { return m.o.resourceVersion }
