package projection

import (
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What many objects have in common is kept once: what kind they are of, and their
// namespaces.

// typeMeta is apiVersion and kind. There is usually one for all objects of a kind;
// two with the same content are equal nevertheless.
type typeMeta struct {
	apiVersion, kind       string
	anyAPIVersion, anyKind any // the same, as values of a map
	gvk                    schema.GroupVersionKind
	// standard says that client-go's decoder is to be asked, because it makes
	// something else of the kind than an Unstructured, or an error.
	standard bool
	whole    bool // as standard, if the object is an answer
}

func (t *typeMeta) equal(other *typeMeta) bool {
	return t == other || t.apiVersion == other.apiVersion && t.kind == other.kind
}

// table keeps a bounded number of things by name. When it is full it starts again:
// who has a thing of before keeps it.
type table[T any] struct {
	mu    sync.RWMutex
	items map[string]*T
	make  func(name string) *T
}

const tableSize = 10_000

func (t *table[T]) get(name []byte) *T {
	t.mu.RLock()
	item, ok := t.items[string(name)]
	t.mu.RUnlock()
	if ok {
		return item
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if item, ok := t.items[string(name)]; ok {
		return item
	}
	if t.items == nil || len(t.items) >= tableSize {
		t.items = map[string]*T{}
	}
	item = t.make(string(name))
	t.items[string(name)] = item
	return item
}

var (
	namespaces = table[string]{make: func(name string) *string { return &name }}
	// kinds are by apiVersion and kind, with a space between.
	kinds = table[typeMeta]{make: func(name string) *typeMeta {
		i := strings.LastIndexByte(name, ' ')
		return newTypeMeta(name[:i], name[i+1:])
	}}
)

// typeOf returns that of an apiVersion and a kind.
func typeOf(apiVersion, kind string) *typeMeta {
	if strings.ContainsRune(kind, ' ') {
		return newTypeMeta(apiVersion, kind)
	}
	return kinds.get([]byte(apiVersion + " " + kind))
}

// typeOf is the same for what was scanned. All objects of a Projector are of one
// kind, so the last is nearly always right.
func (p *Projector) typeOf(apiVersion, kind []byte) *typeMeta {
	last := p.last.Load()
	if last != nil && string(kind) == last.kind && string(apiVersion) == last.apiVersion {
		return last
	}
	t := typeOf(string(apiVersion), string(kind))
	p.last.Store(t)
	return t
}

// standardScheme has the kinds that client-go's dynamic client decodes into types of
// their own.
var standardScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}()

func newTypeMeta(apiVersion, kind string) *typeMeta {
	t := &typeMeta{apiVersion: apiVersion, kind: kind, anyAPIVersion: apiVersion, anyKind: kind}
	gv, err := schema.ParseGroupVersion(apiVersion)
	t.gvk = gv.WithKind(kind)
	t.standard = err != nil || gv.Version == "" || kind == "" || kind == "Table" || standardScheme.Recognizes(t.gvk)
	t.whole = t.standard || kind == "Scale" || kind == "Status"
	return t
}
