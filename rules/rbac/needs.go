package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/rules"
)

// Right is one verb on one resource or subresource.
type Right struct {
	Verb     string
	Resource schema.GroupResource
	// Subresource is empty for the resource itself.
	Subresource string
	// Namespace is where; empty: everywhere, and what is cluster-scoped too.
	Namespace string
	// Name is of the only object that is concerned; empty: all.
	Name string
}

// Need is a right, and who needs it.
type Need struct {
	Right
	// Rules are the names of the rules that do nothing without it or, where
	// Optional, lose something; sorted. Empty: it is for all of them alike.
	Rules []string
	// Optional: the rules work without it.
	Optional bool
	// Why tells what is lost without an optional right, and what it is for where
	// no rule says so; otherwise empty.
	Why string
}

// Target is the resource as kubectl names it: deployments.apps/scale.
func (r Right) Target() string {
	if r.Subresource == "" {
		return r.Resource.String()
	}
	return r.Resource.String() + "/" + r.Subresource
}

// Scope says where the right is needed.
func (r Right) Scope() string {
	if r.Namespace == "" {
		return "at cluster scope"
	}
	return "in namespace " + r.Namespace
}

// Parked is a rule that cannot run on a resource, most often because rights in
// namespaces do not suffice.
type Parked struct {
	Rule     string
	Resource schema.GroupVersionResource // that it is about
	Reason   string
}

func (p Parked) String() string {
	return fmt.Sprintf("rule %s on %s: parked: %s", p.Rule, rules.ResourceName(p.Resource), p.Reason)
}

// Resource is what is known of a resource without the cluster.
type Resource struct {
	ClusterScoped bool
	// Builtin says that Kubernetes serves it without a CRD: where the replicas
	// behind its /scale are is then known.
	Builtin bool
}

// Options say how the rules are run.
type Options struct {
	// Namespaces limits the engine to these; empty: the whole cluster.
	Namespaces []string
	// ReadOnly leaves out what writes: for --dry-run, and for diff.
	ReadOnly bool
	// Lease is of the leader election; the zero value: there is none.
	Lease types.NamespacedName
	// Authorize adds what `run --authorize` asks of the cluster: whose a token is,
	// and what its bearer may read. Both are cluster-scoped, whatever Namespaces.
	Authorize bool
	// Known tells of a resource what is known. Nil: nothing.
	Known func(schema.GroupVersionResource) Resource
}

// Needs are the rights that rules need.
type Needs struct {
	// All are sorted by namespace, group, resource, subresource, name and verb.
	All []Need
	// Parked are the rules that cannot run, such as those that need rights on the
	// cluster where Options limit the engine to namespaces; no right is needed for
	// them. Sorted by rule and then as the rule names its resources.
	Parked []Parked
}

// Resources that the engine uses for itself.
var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	crds       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	events     = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	leases     = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

	tokenReviews  = schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"}
	accessReviews = schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}
)

// What is lost without the optional rights.
const (
	whyNamespaces = "without it, opt-outs on Namespaces are not seen"
	whyCRDs       = "without it, CRDs that come and go are noticed ten seconds later"
	whyEvents     = "without it, objects do not tell by Events what was done to them"
)

// What rights are for that are needed, but by no rule.
const (
	whyLease     = "leader election"
	whyAuthorize = "who may read metrics and status (--authorize)"
)

// Watched lists the resources that rules need an informer for, sorted: those
// that they are about, those that they look up, and Namespaces. The slice is
// the caller's.
func Watched(set *rules.Set) []schema.GroupVersionResource {
	out := slices.Clone(set.Resources())
	for _, l := range set.Lookups() {
		out = append(out, l.Resource)
	}
	if slices.ContainsFunc(set.All(), func(r *rules.Rule) bool { return r.NeedsNamespace || r.OptOut }) {
		out = append(out, namespaces)
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int {
		return strings.Compare(rules.ResourceName(a), rules.ResourceName(b))
	})
	return slices.Compact(out)
}

// For returns what the engine needs to run the rules of a set.
func For(set *rules.Set, o Options) Needs {
	if o.Known == nil {
		o.Known = func(schema.GroupVersionResource) Resource { return Resource{} }
	}
	b := builder{Options: o, needs: map[Right]*reasons{}}
	for _, r := range set.All() {
		b.rule(r)
	}
	if len(b.needs) > 0 {
		b.engine()
	}
	return Needs{All: b.all(), Parked: b.parked}
}

// builder collects needs.
type builder struct {
	Options
	needs  map[Right]*reasons
	parked []Parked
}

// reasons are why there is a need: rules that cannot do without, and rules
// that only lose something.
type reasons struct {
	rules, losing map[string]bool
	why           string
}

func (b *builder) limited() bool { return len(b.Namespaces) > 0 }

// rule adds what one rule needs for those of its resources that it can run on.
func (b *builder) rule(r *rules.Rule) {
	runs := false
	for _, resource := range r.Resources {
		if why := b.parkedReason(r, resource); why != "" {
			b.parked = append(b.parked, Parked{r.Name, resource, why})
			continue
		}
		runs = true
		b.read(r, resource.GroupResource())
		if r.Mode == rules.Audit || b.ReadOnly {
			continue
		}
		for _, subresource := range r.Subresources() {
			b.add(r, Right{Verb: "patch", Resource: resource.GroupResource(), Subresource: subresource})
		}
	}
	if !runs {
		return
	}
	for _, l := range r.Lookups {
		b.read(r, l.Resource.GroupResource())
	}
	switch {
	case b.limited():
	case r.NeedsNamespace:
		b.read(r, namespaces.GroupResource())
	case r.OptOut:
		b.lose(r.Name, whyNamespaces, namespaces.GroupResource(), "list", "watch")
	}
	if b.readsReplicas(r) {
		b.read(r, crds)
	}
}

// readsReplicas reports whether a rule writes a /scale of which only a CRD
// tells where its replicas are.
func (b *builder) readsReplicas(r *rules.Rule) bool {
	return !b.limited() && slices.Contains(r.Subresources(), "scale") &&
		slices.ContainsFunc(r.Resources, func(resource schema.GroupVersionResource) bool { return !b.Known(resource).Builtin })
}

// parkedReason says why a rule cannot run on a resource, whatever is granted, or
// with rights in namespaces only; empty: it can. The engine parks it for the
// same reasons.
func (b *builder) parkedReason(r *rules.Rule, resource schema.GroupVersionResource) string {
	if b.Known(resource).ClusterScoped && r.NamesNamespaces {
		return "it has match.namespaces, but the resource is cluster-scoped"
	}
	if !b.limited() {
		return ""
	}
	if b.Known(resource).ClusterScoped {
		return "the resource is cluster-scoped: a Role cannot grant it"
	}
	for _, l := range r.Lookups {
		if b.Known(l.Resource).ClusterScoped {
			return fmt.Sprintf("it looks up %s, which is cluster-scoped: a Role cannot grant it", rules.ResourceName(l.Resource))
		}
	}
	switch {
	case r.NeedsNamespace:
		return "it reads Namespaces, which are cluster-scoped: a Role cannot grant it"
	case slices.Contains(r.Subresources(), "scale") && !b.Known(resource).Builtin:
		return "it writes /scale, and only its CRD tells where the replicas are: CRDs are cluster-scoped, and a Role cannot grant them"
	}
	return ""
}

// engine adds what the engine needs whatever the rules are.
func (b *builder) engine() {
	if !b.limited() {
		b.lose("", whyCRDs, crds, "list", "watch")
	}
	if !b.ReadOnly {
		b.lose("", whyEvents, events, "create", "patch")
	}
	if b.Authorize {
		for _, reviews := range []schema.GroupResource{tokenReviews, accessReviews} {
			b.at(Right{Verb: "create", Resource: reviews}).why = whyAuthorize
		}
	}
	if b.Lease.Name == "" {
		return
	}
	// A right to create cannot be limited to a name.
	for _, n := range []Right{{Verb: "create"}, {Verb: "get", Name: b.Lease.Name}, {Verb: "update", Name: b.Lease.Name}} {
		n.Resource, n.Namespace = leases, b.Lease.Namespace
		b.at(n).why = whyLease
	}
}

func (b *builder) read(r *rules.Rule, resource schema.GroupResource) {
	b.add(r, Right{Verb: "list", Resource: resource})
	b.add(r, Right{Verb: "watch", Resource: resource})
}

// add notes that a rule cannot do without something.
func (b *builder) add(r *rules.Rule, n Right) {
	for _, n.Namespace = range b.scopes() {
		// There is an informer in every namespace, whatever the rules match
		// there; what they leave alone, they do not write.
		if n.Verb == "patch" && n.Namespace != "" && !r.MayMatchIn(n.Namespace) {
			continue
		}
		b.at(n).rules[r.Name] = true
	}
}

// lose notes that something is lost without; no rule: for all of them.
func (b *builder) lose(rule, why string, resource schema.GroupResource, verbs ...string) {
	for _, verb := range verbs {
		for _, namespace := range b.scopes() {
			at := b.at(Right{Verb: verb, Resource: resource, Namespace: namespace})
			at.why = why
			if rule != "" {
				at.losing[rule] = true
			}
		}
	}
}

// scopes are the namespaces in which there are informers; "" is all.
func (b *builder) scopes() []string {
	if b.limited() {
		return slices.Compact(slices.Sorted(slices.Values(b.Namespaces)))
	}
	return []string{""}
}

func (b *builder) at(n Right) *reasons {
	if b.needs[n] == nil {
		b.needs[n] = &reasons{rules: map[string]bool{}, losing: map[string]bool{}}
	}
	return b.needs[n]
}

func (b *builder) all() []Need {
	out := make([]Need, 0, len(b.needs))
	for right, because := range b.needs {
		n := Need{Right: right, Rules: slices.Sorted(maps.Keys(because.rules))}
		if len(n.Rules) == 0 {
			n.Rules, n.Why = slices.Sorted(maps.Keys(because.losing)), because.why
			n.Optional = n.Why != whyLease && n.Why != whyAuthorize
		}
		out = append(out, n)
	}
	slices.SortFunc(out, compare)
	return out
}

func compare(a, b Need) int {
	return cmp.Or(
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Resource.Group, b.Resource.Group),
		strings.Compare(a.Resource.Resource, b.Resource.Resource),
		strings.Compare(a.Subresource, b.Subresource),
		strings.Compare(a.Name, b.Name),
		verbRank(a.Verb)-verbRank(b.Verb),
	)
}

// verbs in the order in which people write them.
var verbs = []string{"get", "list", "watch", "create", "update", "patch"}

func verbRank(verb string) int { return slices.Index(verbs, verb) }
