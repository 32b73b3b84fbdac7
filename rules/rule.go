package rules

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// Mode says what becomes of what a rule finds.
type Mode string

const (
	// Enforce writes the patch.
	Enforce Mode = "Enforce"
	// Audit reports what the patch would be and writes nothing. Other rules
	// do not see it.
	Audit Mode = "Audit"
)

// Rule is a compiled rule. It is immutable and safe for concurrent use.
type Rule struct {
	Name        string
	Description string
	Resources   []schema.GroupVersionResource // at least one, no duplicates
	Mode        Mode
	Pos         yamldoc.Position // where its name stands

	// RecheckAfter is how long after an evaluation of a matching object the
	// next one is due, even if nothing changes. 0: only changes count.
	RecheckAfter time.Duration
	// OptOut says that objects and Namespaces may ask to be left alone.
	OptOut bool
	// Lookups are what the rule reads beside the object.
	Lookups []*Lookup
	// NeedsNamespace says that the rule reads the object's Namespace: its
	// labels in the match block, or namespaceObject in CEL.
	NeedsNamespace bool
	// NamesNamespaces says that match.namespaces is given: such a rule cannot be
	// about cluster-scoped resources.
	NamesNamespaces bool
	// Secret says that the rule touches or looks up Secrets: what it computes
	// from them, errors included, is not to be shown.
	Secret bool
	// NeedsSchema says that the rule applies a configuration.
	NeedsSchema bool

	objectReads    *fieldset.Set // what its CEL reads of the object
	namespaceReads *fieldset.Set // and of the Namespace

	match     matcher
	variables []compiledVariable
	condition *expression.Program // nil: always true
	patches   []patchTemplate
	writes    []*Write // what the patches can change

	conditionReads *fieldset.Set // what of the object decides whether they are made
	patchReads     []reading     // what each is computed from
	needs          *fieldset.Set // what of the object Fields begins with

	event eventTemplate

	digest digest // of the spec that it was compiled from
}

type compiledVariable struct {
	name    string
	program *expression.Program
}

// Subresources returns the subresources that the rule writes, sorted; "" is
// the object itself.
func (r *Rule) Subresources() []string {
	var out []string
	for _, p := range r.patches {
		if !slices.Contains(out, p.subresource) {
			out = append(out, p.subresource)
		}
	}
	slices.Sort(out)
	return out
}

// Reads returns the fields of the object that the rule's expressions can read.
func (r *Rule) Reads() *fieldset.Set { return r.objectReads }

// Set is a set of compiled rules with distinct names. It is immutable and safe
// for concurrent use. The zero value is an empty set.
type Set struct {
	rules      []*Rule // by name
	byResource map[schema.GroupVersionResource][]*Rule
	resources  []schema.GroupVersionResource
	versions   map[schema.GroupResource][]schema.GroupVersionResource
	lookups    []*Lookup
	namespace  *fieldset.Set // what all rules together read of a Namespace
}

// Lookups returns what the rules look up, sorted by resource and index. Rules
// that use one index of one resource share an entry, which reads what they read
// together, and is optional if it is for all. The caller must not modify the
// slice.
func (s *Set) Lookups() []*Lookup { return s.lookups }

// newSet orders rules bytewise by name, which is the order of evaluation.
func newSet(rs []*Rule) *Set {
	s := &Set{
		rules:      slices.Clone(rs),
		byResource: map[schema.GroupVersionResource][]*Rule{},
		versions:   map[schema.GroupResource][]schema.GroupVersionResource{},
	}
	slices.SortFunc(s.rules, func(a, b *Rule) int { return strings.Compare(a.Name, b.Name) })
	for _, r := range s.rules {
		for _, gvr := range r.Resources {
			s.byResource[gvr] = append(s.byResource[gvr], r)
		}
	}
	s.resources = slices.SortedFunc(maps.Keys(s.byResource), compareResources)
	for _, gvr := range s.resources {
		s.versions[gvr.GroupResource()] = append(s.versions[gvr.GroupResource()], gvr)
	}
	s.lookups, s.namespace = lookupsOf(s.rules), namespaceReads(s.rules)
	return s
}

// namespaceReads is what rules read of a Namespace: in CEL, its labels, and
// whether it opts out.
func namespaceReads(rules []*Rule) *fieldset.Set {
	reads := fieldset.Empty()
	for _, r := range rules {
		reads = reads.Union(r.namespaceReads)
		if r.match.namespaceLabels != nil {
			reads = reads.Union(labelFields(r.match.namespaceLabels))
		}
		if r.OptOut {
			reads = reads.Union(optOutFields)
		}
	}
	return reads
}

// SameNamespace reports whether two states of a Namespace look the same to the
// rules.
func (s *Set) SameNamespace(old, object map[string]any) bool {
	return s.namespace.Digest(old) == s.namespace.Digest(object)
}

// All returns the rules in the order of evaluation. The caller must not modify
// the slice.
func (s *Set) All() []*Rule { return s.rules }

// Only returns the set of those rules whose names are given. Names that the set
// does not have are left out.
func (s *Set) Only(names ...string) *Set {
	return newSet(slices.DeleteFunc(slices.Clone(s.rules), func(r *Rule) bool { return !slices.Contains(names, r.Name) }))
}

// For returns the rules for one resource in the order of evaluation. The
// caller must not modify the slice.
func (s *Set) For(gvr schema.GroupVersionResource) []*Rule { return s.byResource[gvr] }

// Resources returns the resources that the rules name, sorted. The caller must
// not modify the slice.
func (s *Set) Resources() []schema.GroupVersionResource { return s.resources }

// Versions returns those of a resource that the rules name, sorted. The caller
// must not modify the slice.
func (s *Set) Versions(resource schema.GroupResource) []schema.GroupVersionResource {
	return s.versions[resource]
}

func compareResources(a, b schema.GroupVersionResource) int {
	return strings.Compare(ResourceName(a), ResourceName(b))
}

// ResourceName spells a GVR as Rectifier does everywhere, in logs, metrics and
// messages: group/version/resource, or version/resource for the core group.
func ResourceName(gvr schema.GroupVersionResource) string {
	if gvr.Group == "" {
		return gvr.Version + "/" + gvr.Resource
	}
	return gvr.Group + "/" + gvr.Version + "/" + gvr.Resource
}
