package rules

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules/expression"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// secrets tells which expressions of a rule compute with data of Secrets. Nil:
// none does.
type secrets struct {
	rule     *Rule
	resource schema.GroupVersionResource // of the object
	tainted  bool                        // the object itself may hold it
}

func (s *scope) secrets() *secrets {
	if !s.isSecret() {
		return nil
	}
	return &secrets{s.rule, s.in.Resource, s.tainted}
}

// holds reports whether one of the programs reads data of a Secret.
func (s *secrets) holds(programs ...*expression.Program) bool {
	if s == nil || len(programs) == 0 {
		return false
	}
	if s.tainted {
		return true
	}
	reads := expression.NewAnalysis()
	for _, v := range s.rule.variables {
		reads.Bind(variablePrefix+v.name, v.program)
	}
	for _, p := range programs {
		reads.Read(p)
	}
	if isSecret(s.resource) && holdsData(reads, objectName) {
		return true
	}
	for _, l := range s.rule.Lookups {
		if isSecret(l.Resource) && holdsData(reads, lookupPrefix+l.Name) {
			return true
		}
	}
	return false
}

// mask hides a value. A bool is shown: the verdict tells as much.
func mask(v any) any {
	switch v.(type) {
	case nil, bool:
		return v
	}
	return Masked
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// redacted is an object without data of Secrets; the keys stay.
func redacted(resource schema.GroupVersionResource, object map[string]any) map[string]any {
	if !isSecret(resource) {
		return object
	}
	out, _ := redactedAt(resource, nil, object).(map[string]any)
	return out
}

// redactedAt is the value at a path of an object without data of Secrets.
func redactedAt(resource schema.GroupVersionResource, path patch.Pointer, v any) any {
	if !isSecret(resource) {
		return v
	}
	if len(path) > 0 && (path[0] == "data" || path[0] == "stringData") ||
		len(path) > 2 && path[0] == "metadata" && path[1] == "annotations" && path[2] == corev1.LastAppliedConfigAnnotation {
		return maskLeaves(v)
	}
	fields, ok := v.(map[string]any)
	if !ok || len(path) > 2 {
		return v
	}
	out := maps.Clone(fields)
	for key := range out {
		out[key] = redactedAt(resource, append(path[:len(path):len(path)], key), out[key])
	}
	return out
}

// maskLeaves hides all but the keys of maps.
func maskLeaves(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = maskLeaves(v[key])
		}
		return out
	}
	return Masked
}

// masked is a query without its values.
func masked(q *Query) *Query {
	out := &Query{Lookup: q.Lookup, Values: make([][]string, len(q.Values))}
	if q.Namespaced {
		out.Namespace = string(Masked)
	}
	for i := range out.Values {
		out.Values[i] = []string{string(Masked)}
	}
	return out
}
