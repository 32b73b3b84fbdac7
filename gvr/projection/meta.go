package projection

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// objectMeta is the metadata of an Object: its identity. Whoever asks for more, or
// wants to modify it, panics: it would be told that there is none.
type objectMeta Object

func (m *objectMeta) GetNamespace() string       { return (*Object)(m).Namespace() }
func (m *objectMeta) GetName() string            { return (*Object)(m).Name() }
func (m *objectMeta) GetUID() types.UID          { return (*Object)(m).UID() }
func (m *objectMeta) GetResourceVersion() string { return (*Object)(m).ResourceVersion() }

func (m *objectMeta) SetNamespace(string)       { panic(immutable) }
func (m *objectMeta) SetName(string)            { panic(immutable) }
func (m *objectMeta) SetUID(types.UID)          { panic(immutable) }
func (m *objectMeta) SetResourceVersion(string) { panic(immutable) }

func (m *objectMeta) GetGenerateName() string                       { panic(notKept) }
func (m *objectMeta) GetGeneration() int64                          { panic(notKept) }
func (m *objectMeta) GetSelfLink() string                           { panic(notKept) }
func (m *objectMeta) GetCreationTimestamp() metav1.Time             { panic(notKept) }
func (m *objectMeta) GetDeletionTimestamp() *metav1.Time            { panic(notKept) }
func (m *objectMeta) GetDeletionGracePeriodSeconds() *int64         { panic(notKept) }
func (m *objectMeta) GetLabels() map[string]string                  { panic(notKept) }
func (m *objectMeta) GetAnnotations() map[string]string             { panic(notKept) }
func (m *objectMeta) GetFinalizers() []string                       { panic(notKept) }
func (m *objectMeta) GetOwnerReferences() []metav1.OwnerReference   { panic(notKept) }
func (m *objectMeta) GetManagedFields() []metav1.ManagedFieldsEntry { panic(notKept) }

func (m *objectMeta) SetGenerateName(string)                       { panic(immutable) }
func (m *objectMeta) SetGeneration(int64)                          { panic(immutable) }
func (m *objectMeta) SetSelfLink(string)                           { panic(immutable) }
func (m *objectMeta) SetCreationTimestamp(metav1.Time)             { panic(immutable) }
func (m *objectMeta) SetDeletionTimestamp(*metav1.Time)            { panic(immutable) }
func (m *objectMeta) SetDeletionGracePeriodSeconds(*int64)         { panic(immutable) }
func (m *objectMeta) SetLabels(map[string]string)                  { panic(immutable) }
func (m *objectMeta) SetAnnotations(map[string]string)             { panic(immutable) }
func (m *objectMeta) SetFinalizers([]string)                       { panic(immutable) }
func (m *objectMeta) SetOwnerReferences([]metav1.OwnerReference)   { panic(immutable) }
func (m *objectMeta) SetManagedFields([]metav1.ManagedFieldsEntry) { panic(immutable) }

const (
	immutable = "projection: an Object is immutable"
	notKept   = "projection: of the metadata of an Object only its identity can be asked for"
)
