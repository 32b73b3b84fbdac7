package engine

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/rules"
)

// needs are the fields of objects that a policy cannot do without: those of its
// rules, and what the engine itself reads of objects that rules are about. Each is
// computed once. It is safe for concurrent use.
type needs struct {
	set     *rules.Set
	watched []schema.GroupVersionResource
	shield  func() *rules.Shield
	// versions are the resources of whose objects rules may read the resourceVersion,
	// which differs where nothing else does.
	versions map[schema.GroupVersionResource]bool

	mu    sync.Mutex
	known map[needOf]projection.Fields

	last atomic.Pointer[resourceSurvey]
}

// needOf is a resource as it is known.
type needOf struct {
	resource     schema.GroupVersionResource
	replicasPath string
}

func newNeeds(set *rules.Set) *needs {
	n := &needs{
		set: set, watched: watched(set), shield: sync.OnceValue(func() *rules.Shield { return rules.NewShield(set) }),
		versions: map[schema.GroupVersionResource]bool{}, known: map[needOf]projection.Fields{},
	}
	for _, resource := range n.watched {
		n.versions[resource] = n.of(resource, nil).Field("metadata").Field("resourceVersion") != nil
	}
	return n
}

// of are the fields of a resource whose replicas are at a path of the object; nil: it
// has none, or it is not known where.
func (n *needs) of(resource schema.GroupVersionResource, replicasPath []string) projection.Fields {
	at := needOf{resource, strings.Join(replicasPath, "\x00")}
	n.mu.Lock()
	defer n.mu.Unlock()
	fields, ok := n.known[at]
	if !ok {
		fields = projection.Fields{
			Set:           n.set.Fields(resource, replicasPath).Union(n.own(resource, replicasPath)...),
			ManagedFields: n.set.ReadsManagedFields(resource),
		}
		n.known[at] = fields
	}
	return fields
}

// byRule are the fields that one rule cannot do without, nor the engine if it runs.
func (n *needs) byRule(r *rules.Rule, resource schema.GroupVersionResource, replicasPath []string) projection.Fields {
	fields := projection.Fields{Set: r.Fields(resource, replicasPath), ManagedFields: r.ReadsManagedFields(resource)}
	if slices.Contains(r.Resources, resource) {
		fields.Set = fields.Set.Union(n.own(resource, replicasPath)...)
	}
	return fields
}

var (
	finalizers = fieldset.Of("metadata", "finalizers")
	eventBy    = fieldset.Of("reportingController").Union(fieldset.Of("reportingComponent"))
	secretData = fieldset.Of("data").Union(fieldset.Of("stringData"))
)

// own is what the engine reads of objects that rules are about: whether a write has
// released one that is being deleted (released), whether an Event is its own
// (ownEvent), and what must not be told. That is the data of Secrets, for copies of
// it (told, effect), and what stands where a rule has written that reads Secrets
// (cover), another version's rules included.
func (n *needs) own(resource schema.GroupVersionResource, replicasPath []string) []*fieldset.Set {
	if len(n.set.For(resource)) == 0 {
		return nil
	}
	out := []*fieldset.Set{finalizers}
	switch of := resource.GroupResource(); of {
	case coreEvents, newEvents:
		out = append(out, eventBy)
	case secretsResource:
		out = append(out, secretData)
	}
	shielded := cover{replicasPath: replicasPath}
	for _, w := range n.shield().Writes(resource.GroupResource()) {
		if path := shielded.pathOf(w); len(path) > 0 {
			out = append(out, fieldset.Of(path...))
		}
	}
	return out
}

// need is what a policy cannot do without of a resource as it is known.
func (e *Engine) need(p *policy, resource schema.GroupVersionResource, info gvr.Info) projection.Fields {
	fields := p.needs.of(resource, info.ReplicasPath)
	if e.opts.FullObjects {
		fields.Set = fieldset.Whole()
	}
	return fields
}

// keep is what informers keep of a resource: what the policies need that they serve.
func (e *Engine) keep(resource schema.GroupVersionResource, info gvr.Info) projection.Fields {
	var out projection.Fields
	for _, p := range e.served() {
		if fields := e.need(p, resource, info); !out.Covers(fields) {
			out = fields.Union(out)
		}
	}
	return out
}

// resourceSurvey is what is known of the resources that a policy reads, in one epoch
// of the informers. It is immutable.
type resourceSurvey struct {
	epoch uint64
	infos map[schema.GroupVersionResource]gvr.Info // without those that are not served, or not known
	// lacking are the rules that need fields which objects in the caches lack, with
	// the resource of those. Nil: there are none.
	lacking map[*rules.Rule]schema.GroupVersionResource
}

// survey is what is known of the resources now. Objects that are read before the
// epoch of the informers changes lack nothing but that.
func (e *Engine) survey(p *policy) *resourceSurvey {
	epoch := e.informers.Epoch()
	if s := p.needs.last.Load(); s != nil && s.epoch == epoch {
		return s
	}
	s := &resourceSurvey{epoch: epoch, infos: map[schema.GroupVersionResource]gvr.Info{}}
	for _, resource := range p.needs.watched {
		info, ok := e.informers.Info(resource)
		if ok {
			s.infos[resource] = info
		}
		if !e.informers.Holds(resource, e.need(p, resource, info)) {
			s.note(e, p, resource, info)
		}
	}
	p.needs.last.Store(s)
	return s
}

// note finds out which rules cannot do with what is held of a resource.
func (s *resourceSurvey) note(e *Engine, p *policy, resource schema.GroupVersionResource, info gvr.Info) {
	for _, r := range p.rules.All() {
		if _, noted := s.lacking[r]; noted || e.informers.Holds(resource, p.needs.byRule(r, resource, info.ReplicasPath)) {
			continue
		}
		if s.lacking == nil {
			s.lacking = map[*rules.Rule]schema.GroupVersionResource{}
		}
		s.lacking[r] = resource
	}
}

// lacks returns the resource of whose objects a rule lacks fields.
func (s *resourceSurvey) lacks(r *rules.Rule) (schema.GroupVersionResource, bool) {
	if s == nil {
		return schema.GroupVersionResource{}, false
	}
	resource, lacks := s.lacking[r]
	return resource, lacks
}
