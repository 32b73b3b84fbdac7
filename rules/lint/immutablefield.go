package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// immutableField finds writes to fields that the API server refuses to change
// on objects that exist: rules are about no others.
var immutableField = &Check{
	ID: "immutable-field", Severity: Warning, Summary: "A patch changes a field that the server does not change on existing objects",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			p.eachTarget(one, func(t *target) {
				if t.subresource != "" || t.op == "test" || t.value != nil && t.value.kind == mapping && len(t.value.entries) == 0 {
					return
				}
				if t.shape != nil && t.shape.immutable() {
					report(t.at, fmt.Sprintf("%s cannot be changed: its schema says self == oldSelf, so the server refuses another value than the one that is there", t.name()))
				}
				if reason := immutable(one.gvr.GroupResource(), t.path); reason != "" {
					report(t.at, fmt.Sprintf("%s of %s cannot be changed: %s", t.name(), one.gvr.Resource, reason))
				}
			})
		})
	},
}

// immutable says why what is written to a built-in kind cannot be changed, or
// nothing. It says so at the outermost place of which nothing can be changed,
// and nowhere below.
func immutable(resource schema.GroupResource, path []string) string {
	for _, f := range immutableFields[resource] {
		if f.fixes(path) && !f.fixes(path[:len(path)-1]) {
			return f.reason
		}
	}
	return ""
}

// fixes reports whether nothing at a path, or below it, can be changed.
func (f fixedField) fixes(path []string) bool {
	return matchesPath(f.path, path) && !slices.ContainsFunc(f.except, func(except string) bool {
		steps := strings.Split(except, ".")
		return matchesPath(except, path) || len(path) < len(steps) && matchesPath(strings.Join(steps[:len(path)], "."), path)
	})
}

// matchesPath reports whether a path begins with a pattern; * is any step.
func matchesPath(pattern string, path []string) bool {
	steps := strings.Split(pattern, ".")
	if len(path) < len(steps) {
		return false
	}
	for i, step := range steps {
		if step != "*" && path[i] != "*" && step != path[i] {
			return false
		}
	}
	return true
}
