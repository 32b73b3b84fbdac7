package rules_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules"
)

// inventObject makes a Deployment, more or less.
func inventObject(c *chooser) map[string]any {
	scalar := func() any {
		return pick[any](c, int64(1), int64(3), "x", "3", "", true, false, 0.5, "a b", "é")
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := c.IntN(8); {
		case n == 0 && depth > 0:
			list := []any{}
			for range c.IntN(4) {
				list = append(list, value(depth-1))
			}
			return list
		case n <= 2 && depth > 0:
			m := map[string]any{}
			for range c.IntN(3) {
				m[pick(c, specFields...)] = value(depth - 1)
			}
			return m
		}
		return scalar()
	}
	meta := map[string]any{"name": pick(c, "web", "other"), "namespace": "shop", "uid": "u", "resourceVersion": "7"}
	for _, key := range []string{"labels", "annotations"} {
		if c.chance(60) {
			texts := map[string]any{}
			for range c.IntN(3) {
				texts[pick(c, metaKeys...)] = pick(c, "x", "y", "")
			}
			meta[key] = texts
		}
	}
	if c.chance(5) {
		meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	if c.chance(5) {
		meta["annotations"] = map[string]any{"rectifier.dev/skip": pick(c, "*", "r0", "r1,r2")}
	}
	spec := map[string]any{}
	for _, key := range specFields {
		switch {
		case c.chance(50):
		case key == "replicas":
			spec[key] = int64(c.IntN(4))
		case key == "paused":
			spec[key] = c.chance(50)
		default:
			spec[key] = value(2)
		}
	}
	if c.chance(60) {
		containers := []any{map[string]any{"name": "c", "image": "i"}}
		if c.chance(50) {
			containers = append(containers, map[string]any{"name": "d", "image": "j", "args": []any{"x"}})
		}
		spec["template"] = map[string]any{"spec": map[string]any{"containers": containers}}
	}
	object := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
	if c.chance(40) {
		object["status"] = map[string]any{"replicas": int64(c.IntN(3)), "a": value(1)}
	}
	return object
}

// inventedConfigMaps answers lookups.
type inventedConfigMaps map[string][]map[string]any

func (w inventedConfigMaps) Find(q rules.Query) ([]map[string]any, error) {
	found, known := w[q.Keys()[0]]
	if !known {
		return nil, errors.New("not known")
	}
	return found, nil
}

// inventInput makes an object, and what is around it.
func inventInput(t testing.TB, c *chooser) rules.Input {
	in := rules.Input{
		Resource: deployments, Object: inventObject(c), Schema: deploymentType(t), Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		NamespaceObject: map[string]any{"metadata": map[string]any{"name": "shop", "labels": map[string]any{"env": "prod"}}},
		ReplicasPath:    []string{"spec", "replicas"}, HasStatus: true, Explain: true,
	}
	if c.chance(80) {
		in.Lookups = inventedConfigMaps{"shop\x00a": nil, "shop\x00x": {{"metadata": map[string]any{"name": "x", "namespace": "shop"}, "data": map[string]any{"a": "1"}}}}
	}
	return in
}

func deploymentType(t testing.TB) *openapi.Type {
	t.Helper()
	typ, err := openapi.Builtin().Type(context.Background(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	return typ
}
