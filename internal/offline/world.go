package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/rules"
)

// World is what there is beside the object at hand: it answers lookups and
// knows Namespaces, as caches do for the engine. What it was not given does
// not exist. It is built first and then only read, by any number of goroutines.
type World struct {
	catalog    *gvr.Catalog
	namespace  string // of objects that do not say
	byResource map[schema.GroupVersionResource][]map[string]any
	indexing   sync.Mutex
	indexes    map[indexKey]map[string][]map[string]any // by indexing
	namespaces map[string]map[string]any
	of         *interest // nil: in everything
}

type indexKey struct {
	resource schema.GroupVersionResource
	index    string
}

// NewWorld makes an empty world.
func NewWorld(catalog *gvr.Catalog, namespace string) *World {
	return &World{
		catalog: catalog, namespace: namespace,
		byResource: map[schema.GroupVersionResource][]map[string]any{},
		indexes:    map[indexKey]map[string][]map[string]any{},
		namespaces: map[string]map[string]any{},
	}
}

// Add adds all objects of a file. They are not copied, and must not change
// while the world is in use.
func (w *World) Add(file *manifest.File) {
	for _, o := range file.Objects() {
		w.AddObject(o.Value())
	}
}

// AddObject adds one object. Where its kind is not known for sure, it is found
// under every resource that it may be of.
func (w *World) AddObject(object map[string]any) {
	gvk := kindOf(object)
	if gvk.Group == "" && gvk.Kind == "Namespace" {
		w.namespaces[nameOf(object)] = object
	}
	for _, info := range w.catalog.Info(gvk) {
		if w.of != nil && !w.of.resources[info.Resource] {
			continue
		}
		seen := object
		if info.Namespaced && namespaceOf(object) == "" {
			seen = in(object, w.namespace)
		}
		w.byResource[info.Resource] = append(w.byResource[info.Resource], seen)
	}
}

// Namespace returns the Namespace of a name, nil if it was not given.
func (w *World) Namespace(name string) map[string]any { return w.namespaces[name] }

// Find implements rules.Lookups.
func (w *World) Find(q rules.Query) ([]map[string]any, error) {
	index := w.index(q)
	var out []map[string]any
	for _, key := range q.Keys() {
		for _, o := range index[key] {
			if q.Selects(o) {
				out = append(out, o)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b map[string]any) int {
		return cmp.Or(strings.Compare(namespaceOf(a), namespaceOf(b)), strings.Compare(nameOf(a), nameOf(b)))
	})
	return out, nil
}

// index returns the objects that a query is about by their keys, made when it is first
// needed.
func (w *World) index(q rules.Query) map[string][]map[string]any {
	at := indexKey{q.Resource, q.Index()}
	w.indexing.Lock()
	defer w.indexing.Unlock()
	index, ok := w.indexes[at]
	if !ok {
		index = map[string][]map[string]any{}
		for _, o := range w.byResource[q.Resource] {
			key := q.Key(o)
			index[key] = append(index[key], o)
		}
		w.indexes[at] = index
	}
	return index
}

// in is an object with a namespace; the object itself stays as it is.
func in(object map[string]any, namespace string) map[string]any {
	out := make(map[string]any, len(object))
	for k, v := range object {
		out[k] = v
	}
	meta := map[string]any{"namespace": namespace}
	for k, v := range metadataOf(object) {
		meta[k] = v
	}
	out["metadata"] = meta
	return out
}

func kindOf(object map[string]any) schema.GroupVersionKind {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(kind)
}

func metadataOf(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}

func nameOf(object map[string]any) string {
	name, _ := metadataOf(object)["name"].(string)
	return name
}

func namespaceOf(object map[string]any) string {
	namespace, _ := metadataOf(object)["namespace"].(string)
	return namespace
}

// describe names an object as people do: Kind namespace/name.
func describe(object map[string]any) string {
	name, namespace := nameOf(object), namespaceOf(object)
	if name == "" {
		name, _ = metadataOf(object)["generateName"].(string)
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s %s", kindOf(object).Kind, name)
}
