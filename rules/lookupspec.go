package rules

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// compileLookups checks and compiles what a rule looks up; env has the names
// that their templates may read. It returns the environment with the results.
func (d *decoder) compileLookups(env *expression.Env, lookups []lookup) (*expression.Env, []*Lookup) {
	templates := &templates{decoder: d, env: env, named: true}
	d.inLookup = true
	defer func() { d.inLookup = false }()
	var out []*Lookup
	for _, l := range lookups {
		d.part = Expression{Part: PartLookup, Name: l.Name.value}
		switch {
		case l.node == nil: // it is no mapping
			continue
		case lacks(l.node, lookup{}, "name"), lacks(l.node, lookup{}, "resource"):
			d.fail(l.node, "a lookup needs a name and a resource")
			continue
		case l.Name.node == nil:
			continue
		case !variableName.MatchString(l.Name.value):
			d.fail(l.Name.node, "%q is not a lookup name: letters, digits and _, not a digit first", l.Name.value)
			continue
		case slices.Contains(d.lookups, l.Name.value):
			d.fail(l.Name.node, "the lookup %q is given twice", l.Name.value)
			continue
		}
		compiled := &Lookup{Name: l.Name.value, Optional: l.Optional}
		if l.Resource != nil && l.Resource.node != nil {
			compiled.Resource = d.gvr(*l.Resource)
		}
		if l.Namespace != nil {
			compiled.Namespaced = true
			compiled.namespace = templates.namespace(l.Namespace.node)
		}
		if l.Where != nil {
			templates.where(compiled, l.Where.node)
		}
		if l.LabelSelector != nil {
			compiled.selector = templates.labelSelector(l.LabelSelector.node)
		}
		d.lookups = append(d.lookups, l.Name.value)
		out = append(out, compiled)
	}
	for _, l := range out {
		env = d.declare(lookupPrefix+l.Name, env, expression.ListOfDyn)
	}
	return env, out
}

// namespace compiles the namespace in which is looked up.
func (t *templates) namespace(n *yaml.Node) template {
	switch {
	case n.Kind != yaml.ScalarNode:
		t.fail(n, "namespace must be a string, not %s: leave it out for all namespaces", strictyaml.Describe(n))
		return constant{}
	case !t.wantString(n, "namespace"):
		return constant{}
	case n.Value == "":
		t.fail(n, "namespace is empty: leave it out for all namespaces")
		return constant{}
	}
	mark := len(t.problems)
	out := t.scalar(text{n.Value, n}, []string{"namespace"})
	if c, ok := out.(constant); ok && t.ok(mark) {
		if name, _ := c.value.(string); len(validation.IsDNS1123Label(name)) > 0 {
			t.fail(n, "%q is not the name of a namespace: an expression stands in ${…}", name)
		}
	}
	return out
}

// labelSelector compiles a selector of which parts, or all, may be computed. What
// is absent in it selects nothing: left out, it would select more.
func (t *templates) labelSelector(n *yaml.Node) template {
	if computed(n) {
		return t.compile(n, []string{"labelSelector"})
	}
	if n.Kind != yaml.MappingNode {
		t.fail(n, "labelSelector must be a mapping, or one ${…} that gives one, not %s", strictyaml.Describe(n))
		return constant{}
	}
	mark := len(t.problems)
	for _, p := range strictyaml.Pairs(n) {
		if !slices.Contains(selectorFields, p.Key.Value) {
			advice := suggest.DidYouMean(p.Key.Value, selectorFields)
			if advice == "" {
				advice = ": " + labelsAdvice
			}
			t.fail(p.Key, "unknown field %q in labelSelector%s", p.Key.Value, advice)
		}
	}
	parts := *t
	parts.keepAbsent = true
	parts.textAt = func(path []string) bool { return len(path) == 2 && path[0] == "matchLabels" }
	out := parts.compile(n, nil)
	if c, ok := out.(constant); ok && t.ok(mark) {
		if _, err := selectorOf(c.value); err != nil {
			t.fail(n, "bad label selector: %v", err)
		}
	}
	return out
}

var selectorFields = []string{"matchLabels", "matchExpressions"}

// where compiles the equalities of a lookup, sorted by path.
func (t *templates) where(l *Lookup, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		t.fail(n, "where must be a mapping of paths to values, not %s", strictyaml.Describe(n))
		return
	}
	clauses := map[string]template{}
	for _, p := range strictyaml.Pairs(n) {
		if !t.wantString(p.Key, "the key") {
			continue
		}
		if strings.Contains(p.Key.Value, "${") || slices.Contains(strings.Split(p.Key.Value, "."), "") {
			t.fail(p.Key, "%q is not a path such as spec.scaleTargetRef.name", p.Key.Value)
			continue
		}
		if strings.Contains(p.Key.Value, "/") {
			t.fail(p.Key, "%q: a key with dots cannot be part of a path; use labelSelector, or filter the list in CEL", p.Key.Value)
			continue
		}
		clause := t.compile(p.Value, []string{"where", p.Key.Value})
		if c, ok := clause.(constant); ok {
			if _, err := texts(c.value); err != nil {
				t.fail(p.Value, "where %s: %v", p.Key.Value, err)
			}
		}
		clauses[p.Key.Value] = clause
	}
	for _, path := range slices.Sorted(maps.Keys(clauses)) {
		l.Where = append(l.Where, path)
		l.where = append(l.where, clauses[path])
	}
}
