package offline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/fieldset"
)

// NeverRests reports whether a rule does not come to a fixed point on objects
// that are made up of what it reads: it prepends a prefix, counts, appends. It
// is a finding, not a proof: a rule that it says nothing of may still not come
// to rest on other objects, which is then found at run time, before any write.
func NeverRests(r *rules.Rule, catalog *gvr.Catalog, types openapi.Types) bool {
	for _, resource := range r.Resources {
		for _, leaf := range []any{"probe", int64(1), true} {
			object, _ := sample(r.Reads(), leaf).(map[string]any)
			if object == nil {
				object = map[string]any{}
			}
			meta, _ := object["metadata"].(map[string]any)
			if meta == nil {
				meta = map[string]any{}
				object["metadata"] = meta
			}
			meta["name"], meta["namespace"] = "probe", "probe"
			delete(meta, "deletionTimestamp")
			in := rules.Input{Resource: resource, Object: object, Now: time.Unix(0, 0), Lookups: NewWorld(catalog, "probe"),
				NamespaceObject: map[string]any{"metadata": map[string]any{"name": "probe", "labels": map[string]any{}}}}
			for _, kind := range catalog.Kinds(resource) {
				object["apiVersion"], object["kind"] = resource.GroupVersion().String(), kind
				if t, err := types.Type(context.Background(), resource.GroupVersion().WithKind(kind)); err == nil {
					in.Schema = t
				}
			}
			for _, v := range rules.Evaluate([]*rules.Rule{r}, in).Verdicts {
				if errors.As(v.Err, new(*rules.NotConvergingError)) {
					return true
				}
			}
		}
	}
	return false
}

// sample makes a value that has the fields of a set, each with the same leaf.
func sample(s *fieldset.Set, leaf any) any {
	if s.IsEmpty() || s.IsWhole() {
		return leaf
	}
	names := s.Names()
	if len(names) == 0 {
		if items := s.Items(); !items.IsEmpty() {
			return []any{sample(items, leaf)}
		}
		return leaf
	}
	out := make(map[string]any, len(names))
	for _, name := range slices.Sorted(slices.Values(names)) {
		out[name] = sample(s.Field(name), leaf)
	}
	return out
}
