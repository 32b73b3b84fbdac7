package importer

import (
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// The kinds that become rules.
const (
	admissionKind = "MutatingAdmissionPolicy"
	kyvernoKind   = "MutatingPolicy"
)

// policy is a policy of either kind, as it was read.
type policy struct {
	*reader
	kind, apiVersion  string
	name, description text
	match             matchResources
	conditions        []named
	variables         []named
	mutations         []mutation
	bindings          []*binding
}

// named is a named expression: a variable or a match condition.
type named struct{ name, expression text }

type mutation struct {
	apply      bool // applyConfiguration, otherwise jsonPatch
	expression text
}

type binding struct {
	*reader
	name       text
	policyName text
	match      matchResources
}

func (r *reader) newPolicy(kind string) *policy {
	return &policy{reader: r, kind: kind, apiVersion: scalarField(r.node, "apiVersion")}
}

// top reads the members that every object has; what is in status does not
// take part in admission.
func (r *reader) top(name, description *text, spec func(*yaml.Node)) {
	ignore := func(*yaml.Node) {}
	if _, m := yamldoc.Field(r.node, "metadata"); m != nil {
		r.metadata(m, name, description) // first, so that all findings bear the name
	}
	found := false
	r.fields(r.node, r.subject, map[string]func(*yaml.Node){
		"apiVersion": ignore, "kind": ignore, "metadata": ignore, "status": ignore,
		"spec": func(n *yaml.Node) { found = true; spec(n) },
	})
	if name.node == nil {
		r.lose(r.node, "metadata.name is missing")
	}
	if !found {
		r.lose(r.node, "spec is missing")
	}
}

func (r *reader) admissionPolicy() *policy {
	p := r.newPolicy(admissionKind)
	r.top(&p.name, &p.description, func(n *yaml.Node) { r.fields(n, "spec", p.commonFields()) })
	p.complete()
	return p
}

// commonFields reads the spec of a MutatingAdmissionPolicy.
func (p *policy) commonFields() map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"paramKind": func(n *yaml.Node) {
			p.lose(n, "paramKind: a rule has no parameters; write them into the policy, or read them with a lookup in the rule")
		},
		"matchConstraints": func(n *yaml.Node) { p.match = p.matchResources(n, "spec.matchConstraints") },
		"matchConditions":  func(n *yaml.Node) { p.conditions = p.nameds(n, "spec.matchConditions") },
		"variables":        func(n *yaml.Node) { p.variables = p.nameds(n, "spec.variables") },
		"mutations": func(n *yaml.Node) {
			for _, item := range p.list(n, "spec.mutations") {
				p.mutations = append(p.mutations, p.mutation(item))
			}
		},
		"failurePolicy": func(n *yaml.Node) {
			p.note(n, "failurePolicy: a rule refuses nothing; an expression that fails on an object is reported and changes nothing of it")
		},
		"reinvocationPolicy": func(n *yaml.Node) {
			p.note(n, "reinvocationPolicy: a rule is evaluated again whenever the object changes")
		},
	}
}

// complete reports what a policy must have.
func (p *policy) complete() {
	if p.match.node == nil && !p.lost {
		p.lose(p.node, "spec.matchConstraints is missing: no resource is named")
	}
	if len(p.mutations) == 0 && !p.lost {
		p.lose(p.node, "spec.mutations is missing: there is nothing to change")
	}
}

func (r *reader) nameds(n *yaml.Node, at string) []named {
	var out []named
	for _, item := range r.list(n, at) {
		var v named
		r.fields(item, at, map[string]func(*yaml.Node){
			"name":       func(n *yaml.Node) { r.text(n, at+".name", &v.name) },
			"expression": func(n *yaml.Node) { r.text(n, at+".expression", &v.expression) },
		})
		if v.name.node == nil || v.expression.node == nil {
			r.lose(item, "%s: a name and an expression are needed", at)
			continue
		}
		out = append(out, v)
	}
	return out
}

func (r *reader) mutation(n *yaml.Node) mutation {
	var patchType, apply, jsonPatch text
	expression := func(at string, into *text) func(*yaml.Node) {
		return func(n *yaml.Node) {
			r.fields(n, at, map[string]func(*yaml.Node){
				"expression": func(n *yaml.Node) { r.text(n, at+".expression", into) },
			})
		}
	}
	r.fields(n, "spec.mutations", map[string]func(*yaml.Node){
		"patchType":          func(n *yaml.Node) { r.text(n, "patchType", &patchType) },
		"applyConfiguration": expression("applyConfiguration", &apply),
		"jsonPatch":          expression("jsonPatch", &jsonPatch),
	})
	switch {
	case patchType.value == "ApplyConfiguration" && apply.node != nil && jsonPatch.node == nil:
		return mutation{true, apply}
	case patchType.value == "JSONPatch" && jsonPatch.node != nil && apply.node == nil:
		return mutation{false, jsonPatch}
	}
	r.lose(n, "a mutation is of patchType ApplyConfiguration with an applyConfiguration.expression, or of JSONPatch with a jsonPatch.expression")
	return mutation{}
}

func (r *reader) binding() *binding {
	b := &binding{reader: r}
	r.top(&b.name, nil, func(n *yaml.Node) {
		r.fields(n, "spec", map[string]func(*yaml.Node){
			"policyName": func(n *yaml.Node) { r.text(n, "spec.policyName", &b.policyName) },
			"paramRef": func(n *yaml.Node) {
				r.lose(n, "paramRef: a rule has no parameters; write them into the policy, or read them with a lookup in the rule")
			},
			"matchResources": func(n *yaml.Node) { b.match = r.matchResources(n, "spec.matchResources") },
		})
	})
	if b.policyName.node == nil && !r.lost {
		r.lose(r.node, "spec.policyName is missing")
	}
	return b
}
