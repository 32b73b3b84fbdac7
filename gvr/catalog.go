package gvr

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalog knows resources without a cluster: the built-in kinds of Kubernetes 1.37 and the CRDs that it was given.
// It is immutable, and safe for concurrent use.
type Catalog struct {
	crds map[schema.GroupKind]crd
}

// NewCatalog makes a Catalog from CRD manifests (apiextensions.k8s.io/v1) as decoded from YAML or JSON. The maps are
// not kept. A manifest that is not a usable CRD, and a second one for the same kind, is an error that names it.
func NewCatalog(crds ...map[string]any) (*Catalog, error) {
	c := &Catalog{crds: map[schema.GroupKind]crd{}}
	for _, manifest := range crds {
		definition, err := parseCRD(manifest)
		if err != nil {
			return nil, err
		}
		gk := schema.GroupKind{Group: definition.resource.Group, Kind: definition.kind}
		if other, ok := c.crds[gk]; ok {
			return nil, fmt.Errorf("read CRD %q: kind %s is already defined by %q", definition.resource, gk, other.resource)
		}
		c.crds[gk] = definition
	}
	return c, nil
}

// Known says whether the catalog knows the kind for sure, in some version.
func (c *Catalog) Known(gk schema.GroupKind) bool {
	if _, ok := c.crds[gk]; ok {
		return true
	}
	_, ok := builtinKinds[gk]
	return ok
}

// Info returns what the resource behind a kind may be, the likeliest first.
//
// For a kind that is Known it is exactly one, or none if a CRD does not serve the version (the versions of built-in
// kinds are not checked). For any other it is a guess: one Info for each of ResourceCandidates, taken to be
// namespaced, without subresources and without ReplicasPath.
func (c *Catalog) Info(gvk schema.GroupVersionKind) []Info {
	if definition, ok := c.crds[gvk.GroupKind()]; ok {
		if info, served := definition.info(gvk.Version); served {
			return []Info{info}
		}
		return nil
	}
	if b, ok := builtinKinds[gvk.GroupKind()]; ok {
		resource := gvk.GroupVersion().WithResource(b.resource)
		return []Info{{
			Resource:     resource,
			Kind:         gvk.Kind,
			Namespaced:   b.namespaced,
			HasStatus:    b.hasStatus,
			HasScale:     b.hasScale,
			ReplicasPath: builtinReplicasPath(resource.GroupResource()),
		}}
	}
	var guesses []Info
	for _, resource := range ResourceCandidates(gvk.Kind) {
		guesses = append(guesses, Info{
			Resource:   gvk.GroupVersion().WithResource(resource),
			Kind:       gvk.Kind,
			Namespaced: true,
		})
	}
	return guesses
}

// Kinds returns the kinds whose resource this surely is, sorted: one for all but freak cases, none for a resource that is
// not known.
func (c *Catalog) Kinds(resource schema.GroupVersionResource) []string {
	var kinds []string
	for gk, definition := range c.crds {
		if definition.resource == resource.GroupResource() {
			kinds = append(kinds, gk.Kind)
		}
	}
	for gk, b := range builtinKinds {
		if gk.Group == resource.Group && b.resource == resource.Resource {
			kinds = append(kinds, gk.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}
