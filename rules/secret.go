package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// readsSecrets reports whether a rule is about Secrets or looks them up.
func readsSecrets(r *Rule) bool {
	for _, l := range r.Lookups {
		if isSecret(l.Resource) {
			return true
		}
	}
	for _, resource := range r.Resources {
		if isSecret(resource) {
			return true
		}
	}
	return false
}

// ReadsSecretData reports whether what the rule computes may come from data of
// Secrets: it looks Secrets up, or its expressions or the operations of its
// patches read what is secret of those that it is about.
func (r *Rule) ReadsSecretData() bool {
	if !r.Secret {
		return false
	}
	if slices.ContainsFunc(r.Lookups, func(l *Lookup) bool { return isSecret(l.Resource) }) || holdsSecrets(r.objectReads) {
		return true
	}
	return slices.ContainsFunc(r.patchReads, func(p reading) bool { return holdsSecrets(p.fields) })
}

// taints reports whether what a rule writes into objects of a resource may be
// data of Secrets where nobody expects it. Secrets themselves are known to hold it.
func taints(r *Rule, resource schema.GroupVersionResource) bool {
	return r.Secret && !isSecret(resource)
}

// isSecret reports whether what the rule computes is not to be shown.
func (s *scope) isSecret() bool { return s.rule.Secret || s.tainted }

func isSecret(resource schema.GroupVersionResource) bool {
	return resource.Group == "" && resource.Resource == "secrets"
}

// checkEvent refuses event messages that would publish data of Secrets: who
// may read Events is not who may read Secrets.
func (d *decoder) checkEvent(r *Rule, e eventSpec) {
	if !r.Secret || e.Message == nil {
		return
	}
	reads := r.eventReads()
	published := false
	for _, resource := range r.Resources {
		published = published || isSecret(resource) && holdsData(reads, objectName)
	}
	for _, l := range r.Lookups {
		published = published || isSecret(l.Resource) && holdsData(reads, lookupPrefix+l.Name)
	}
	if published {
		d.as(CheckSecretInEvent).fail(e.Message.node, "the message would publish data of a Secret: Events are readable by many")
	}
}

// eventReads is what the message of the rule's events is computed from.
func (r *Rule) eventReads() *expression.Analysis {
	reads := expression.NewAnalysis()
	for _, v := range r.variables {
		reads.Bind(variablePrefix+v.name, v.program)
	}
	for _, p := range r.event.message {
		if p.program != nil {
			reads.Read(p.program)
		}
	}
	return reads
}

// holdsData reports whether the fields of a Secret that are read include what
// is secret.
func holdsData(reads *expression.Analysis, name string) bool { return holdsSecrets(reads.Paths(name)) }

// holdsSecrets reports whether fields of a Secret include what is secret: data, or
// the last-applied annotation, which repeats it.
func holdsSecrets(set *fieldset.Set) bool {
	for _, secret := range []string{"data", "stringData"} {
		if !set.Field(secret).IsEmpty() {
			return true
		}
	}
	annotations := set.Field("metadata").Field("annotations")
	return annotations.IsWhole() || !annotations.Field(corev1.LastAppliedConfigAnnotation).IsEmpty()
}
