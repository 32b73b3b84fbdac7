package live

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// Known tells rules/lint about a cluster's resources.
type Known struct{ *Cluster }

var _ lint.Known = Known{}

// Types are the schemas of the kinds that the cluster serves.
func (c *Cluster) Types() openapi.Types { return c.types }

// Resource implements lint.Known.
func (k Known) Resource(ctx context.Context, resource schema.GroupVersionResource) (lint.Resource, bool) {
	info, _, ok := k.Info(ctx, resource)
	if !ok {
		return lint.Resource{}, false
	}
	out := lint.Resource{Kind: info.Kind, Namespaced: info.Namespaced, HasStatus: info.HasStatus, HasScale: info.HasScale, ReplicasPath: info.ReplicasPath}
	if versions := k.Versions(resource.GroupResource()); versions[0] != resource.Version && !k.builtin.Known(schema.GroupKind{Group: resource.Group, Kind: info.Kind}) {
		out.Preferred = versions[0]
	}
	if t, err := k.types.Type(ctx, resource.GroupVersion().WithKind(info.Kind)); err == nil {
		out.Schema = t
	}
	return out, true
}

// Spelling implements lint.Known.
func (k Known) Spelling(resource schema.GroupVersionResource) (schema.GroupVersionResource, bool) {
	spelled := func(group, version string) (schema.GroupVersionResource, bool) {
		a := ParseArgument(resource.Resource)
		a.hasGroup, a.group, a.version = group != "*", group, version
		for _, r := range k.resources {
			if a.matches(r) && r.info.Resource != resource {
				return r.info.Resource, true
			}
		}
		return schema.GroupVersionResource{}, false
	}
	if meant, ok := spelled(resource.Group, resource.Version); ok {
		return meant, true
	}
	if meant, ok := spelled(resource.Group, ""); ok { // another version: the preferred one comes first
		return meant, true
	}
	if meant, ok := spelled("*", ""); ok {
		return meant, true
	}
	// A plural that nobody uses, such as gatewaies.
	for _, candidate := range gvr.ResourceCandidates(resource.Resource) {
		meant := resource
		meant.Resource = candidate
		if _, _, ok := k.Info(context.Background(), meant); ok && meant != resource {
			return meant, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// Complete implements lint.Known: discovery names all resources of a group,
// unless one of its versions could not be asked.
func (k Known) Complete(group string) bool {
	for gv := range k.failed {
		if gv.Group == group {
			return false
		}
	}
	return true
}

// schemaReason tells why a schema is not known without the server's message.
func schemaReason(err error) string {
	if errors.Is(err, openapi.ErrNoSchema) {
		return err.Error()
	}
	return (&readError{err}).Error()
}
