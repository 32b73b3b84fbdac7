package importer

import (
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// kyvernoPolicy reads Kyverno's MutatingPolicy: a MutatingAdmissionPolicy that
// needs no binding, with fields of its own. It has no parameters.
func (r *reader) kyvernoPolicy() *policy {
	p := r.newPolicy(kyvernoKind)
	autogen := true // what Kyverno does unless it is told not to
	r.top(&p.name, &p.description, func(n *yaml.Node) {
		known := p.commonFields()
		delete(known, "paramKind")
		known["autogen"] = func(n *yaml.Node) { autogen = p.autogen(n) }
		known["evaluation"] = p.evaluation
		known["webhookConfiguration"] = func(n *yaml.Node) {
			p.note(n, "webhookConfiguration: a rule has no webhook")
		}
		known["targetMatchConstraints"] = func(n *yaml.Node) {
			p.lose(n, "targetMatchConstraints: a rule changes the object that it matches, not others")
		}
		r.fields(n, "spec", known)
	})
	p.complete()
	if autogen && p.onlyPods() {
		p.drop(p.match.node, "autogen: for a policy on pods Kyverno makes rules for their controllers too (unless autogen.podControllers.controllers is []): only the pods are carried over")
	}
	return p
}

// autogen reads what Kyverno shall generate from the policy. It returns false
// if that has been said, or reported.
func (p *policy) autogen(n *yaml.Node) (byDefault bool) {
	byDefault = true
	p.fields(n, "spec.autogen", map[string]func(*yaml.Node){
		"podControllers": func(n *yaml.Node) {
			p.fields(n, "spec.autogen.podControllers", map[string]func(*yaml.Node){
				"controllers": func(n *yaml.Node) {
					byDefault = false
					if len(p.list(n, "spec.autogen.podControllers.controllers")) > 0 {
						p.drop(n, "autogen: what Kyverno generates for the controllers of pods is not carried over: write a policy on them")
					}
				},
			})
		},
		"mutatingAdmissionPolicy": func(n *yaml.Node) {
			p.note(n, "autogen.mutatingAdmissionPolicy: how admission is done does not matter to a rule")
		},
	})
	return byDefault
}

func (p *policy) evaluation(n *yaml.Node) {
	p.fields(n, "spec.evaluation", map[string]func(*yaml.Node){
		"mode": func(n *yaml.Node) {
			if n.Value != "Kubernetes" {
				p.lose(n, "evaluation.mode %s: a rule acts on Kubernetes objects", n.Value)
			}
		},
		"admission":  p.whenEvaluated("admission"),
		"background": p.whenEvaluated("background"),
		"mutateExisting": func(n *yaml.Node) {
			if _, v := yamldoc.Field(n, "enabled"); v == nil || v.Value != "true" {
				p.whenEvaluated("mutateExisting")(n)
			}
		},
	})
}

func (p *policy) whenEvaluated(field string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		p.note(n, "evaluation.%s: a rule always acts on the objects that exist", field)
	}
}

// onlyPods reports whether the policy is one that Kyverno generates others from.
func (p *policy) onlyPods() bool {
	found := false
	for _, rule := range p.match.rules {
		for _, res := range rule.resources {
			found = true
			if res.value != "pods" {
				return false
			}
		}
	}
	return found
}
