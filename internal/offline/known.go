package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// Known tells rules/lint about resources, from a catalogue and a source of
// schemas. It is safe for concurrent use.
type Known struct {
	Catalog *gvr.Catalog
	Types   openapi.Types
}

// Resource implements lint.Known.
func (k Known) Resource(ctx context.Context, resource schema.GroupVersionResource) (lint.Resource, bool) {
	kinds := k.Catalog.Kinds(resource)
	if len(kinds) == 0 {
		return lint.Resource{}, false
	}
	gvk := resource.GroupVersion().WithKind(kinds[0])
	for _, info := range k.Catalog.Info(gvk) {
		if info.Resource != resource {
			continue
		}
		out := lint.Resource{Kind: info.Kind, Namespaced: info.Namespaced, HasStatus: info.HasStatus, HasScale: info.HasScale, ReplicasPath: info.ReplicasPath, Preferred: info.Preferred}
		t, err := k.Types.Type(ctx, gvk)
		if errors.Is(err, openapi.ErrNoSchema) {
			// The catalogue takes any version of a built-in kind; all that there are
			// have a schema.
			return lint.Resource{}, false
		}
		if err == nil {
			out.Schema = t
		}
		return out, true
	}
	return lint.Resource{}, false
}

// Spelling implements lint.Known.
func (k Known) Spelling(resource schema.GroupVersionResource) (schema.GroupVersionResource, bool) {
	names := append([]string{resource.Resource}, gvr.ResourceCandidates(resource.Resource)...)
	for _, name := range names {
		meant := resource
		meant.Resource = strings.ToLower(name)
		if meant != resource && len(k.Catalog.Kinds(meant)) > 0 {
			return meant, true
		}
	}
	// Of several groups the oldest name counts: events are in core first.
	for _, b := range builtinResources() {
		if b.Group != resource.Group && slices.Contains(names, b.Resource) {
			return b.WithVersion(resource.Version), true
		}
	}
	var same []string
	for _, b := range builtinResources() {
		if b.Group == resource.Group {
			same = append(same, b.Resource)
		}
	}
	if near := suggest.Closest(resource.Resource, same); near != "" {
		resource.Resource = near
		return resource, true
	}
	return schema.GroupVersionResource{}, false
}

// Versions implements lint.Known.
func (k Known) Versions(resource schema.GroupResource) []string {
	var out []string
	for _, v := range commonVersions() {
		if _, ok := k.Resource(context.Background(), resource.WithVersion(v)); ok {
			out = append(out, v)
		}
	}
	return out
}

// Complete implements lint.Known: the groups of Kubernetes itself have no
// resources of others.
func (k Known) Complete(group string) bool {
	return slices.ContainsFunc(openapi.BuiltinKinds(), func(gvk schema.GroupVersionKind) bool { return gvk.Group == group })
}

// builtinResources are those of Kubernetes itself, sorted by group: the core
// group is the first.
var builtinResources = sync.OnceValue(func() []schema.GroupResource {
	catalog, err := gvr.NewCatalog()
	if err != nil {
		return nil // without CRDs there is nothing to be wrong
	}
	var out []schema.GroupResource
	for _, gvk := range openapi.BuiltinKinds() {
		if !catalog.Known(gvk.GroupKind()) {
			continue
		}
		if gr := catalog.Info(gvk)[0].Resource.GroupResource(); !slices.Contains(out, gr) {
			out = append(out, gr)
		}
	}
	return out
})

// commonVersions are the names that versions of nearly all resources have, the
// newest first.
var commonVersions = sync.OnceValue(func() []string {
	var out []string
	for major := 1; major <= 3; major++ {
		out = append(out, fmt.Sprintf("v%d", major))
		for _, stage := range []string{"alpha", "beta"} {
			for minor := 1; minor <= 5; minor++ {
				out = append(out, fmt.Sprintf("v%d%s%d", major, stage, minor))
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return out
})
