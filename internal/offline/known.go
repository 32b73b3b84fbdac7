package offline

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
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
		out := lint.Resource{Kind: info.Kind, Namespaced: info.Namespaced, HasStatus: info.HasStatus, HasScale: info.HasScale, ReplicasPath: info.ReplicasPath}
		if t, err := k.Types.Type(ctx, gvk); err == nil {
			out.Schema = t
		}
		return out, true
	}
	return lint.Resource{}, false
}

// Spelling implements lint.Known.
func (k Known) Spelling(resource schema.GroupVersionResource) (schema.GroupVersionResource, bool) {
	for _, candidate := range gvr.ResourceCandidates(resource.Resource) {
		meant := resource
		meant.Resource = strings.ToLower(candidate)
		if meant != resource && len(k.Catalog.Kinds(meant)) > 0 {
			return meant, true
		}
	}
	return schema.GroupVersionResource{}, false
}

