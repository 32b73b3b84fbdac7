package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// Status is how an engine stands at a moment: what /readyz tells, and more, as
// data. It holds nothing that came out of a Secret, and no message of the API
// server. All lists are sorted, and none is null in JSON; times are RFC 3339.
type Status struct {
	// Version is that of the program; whoever asks for the status fills it in.
	Version string    `json:"version"`
	Time    time.Time `json:"time"` // when this was so

	Ready bool `json:"ready"` // as /readyz says
	// ReadySince is since when Ready has been what it is, as far as somebody looked.
	ReadySince time.Time `json:"readySince,omitzero"`
	// WaitingFor are the lines of /readyz that keep it from being ready.
	WaitingFor []string   `json:"waitingFor"`
	Leadership Leadership `json:"leadership"`
	Discovery  Discovery  `json:"discovery"`

	DryRun bool `json:"dryRun"` // nothing is written
	// Namespaces are those that the engine is limited to; none: all.
	Namespaces         []string `json:"namespaces"`
	ExcludedNamespaces []string `json:"excludedNamespaces"` // globs
	QueueDepth         int      `json:"queueDepth"`         // objects that wait to be looked at

	// RulesLoaded is when the rules were last put in force.
	RulesLoaded time.Time `json:"rulesLoaded"`
	// UnreadRules says why newer rules cannot be read; empty: they can.
	UnreadRules  string        `json:"unreadRules,omitempty"`
	InvalidRules []InvalidRule `json:"invalidRules"`

	Rules []RuleStatus `json:"rules"` // by name
	// Resources are those that have, or want, an informer.
	Resources   []ResourceStatus   `json:"resources"`
	Contentions []ContentionStatus `json:"contentions"` // by rule, resource and object
	Recent      []Activity         `json:"recent"`      // the latest first
	// Advice tells of rules that run, but may not do what their author expects.
	Advice []string `json:"advice"`
}

// Role is the part of an instance in the leader election.
type Role string

const (
	Alone   Role = "Alone"   // there is no election: this instance works
	Leader  Role = "Leader"  // this instance works
	Standby Role = "Standby" // another one does, or will
	Lost    Role = "Lost"    // the lease is lost: the process is about to end
)

// Leadership says who works.
type Leadership struct {
	Role Role `json:"role"`
	// Identity is this instance, Leader the one that holds the lease, as last
	// seen. Both are empty without an election, Leader while there is none.
	Identity string    `json:"identity,omitempty"`
	Leader   string    `json:"leader,omitempty"`
	Lease    string    `json:"lease,omitempty"` // namespace/name
	Since    time.Time `json:"since,omitzero"`  // of this instance's leading
	// Trouble says what is wrong with the lease at the moment; empty: nothing.
	Trouble string `json:"trouble,omitempty"`
}

// Discovery says whether the engine knows what the cluster serves.
type Discovery struct {
	Done bool `json:"done"` // it has succeeded at least once
	// Error is why the newest attempt failed; empty: it did not. What was known
	// before holds meanwhile.
	Error string `json:"error,omitempty"`
}

// ResourceStatus is a resource in one scope.
type ResourceStatus struct {
	Resource  string `json:"resource"`            // group/version/resource
	Namespace string `json:"namespace,omitempty"` // empty: the whole cluster
	// State is one of those of package gvr: Synced, Syncing, WaitingForResource,
	// Forbidden, Failing.
	State   gvr.State `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since,omitzero"` // of State
	Objects int       `json:"objects"`        // in the cache
	// Rules are those that are about the resource; with none, rules look it up.
	Rules []string `json:"rules"`
	// Consequence is what it means that the resource is not there; empty: nothing.
	Consequence string `json:"consequence,omitempty"`
}

// ContentionStatus is a Contended in JSON.
type ContentionStatus struct {
	Rule      string    `json:"rule"`
	Resource  string    `json:"resource"` // resource.group
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Fields    []string  `json:"fields"`   // that are set back
	Managers  []string  `json:"managers"` // who does it; none: it is not known
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"` // end of the present hold
	// Held says that the hold has not ended; if not, the rule is being tried again.
	Held  bool `json:"held"`
	Holds int  `json:"holds"` // so far
}

// InvalidRule is something wrong with a rule file.
type InvalidRule struct {
	Rule   string `json:"rule,omitempty"` // empty where the name is not known
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Check is under which ID `rectifier lint` reports it.
	Check   string `json:"check,omitempty"`
	Message string `json:"message"`
	// Excerpt is the source line, and below it a caret; empty where it is not known.
	Excerpt string `json:"excerpt,omitempty"`
	// Kept says that the last good version stays in force; if not, it is left out.
	Kept bool `json:"kept"`
}

// Status tells how the engine stands. It may be called at any time, by several
// at once. It reads what is in memory: no request is sent for it.
func (e *Engine) Status() Status {
	now := time.Now()
	resources := e.informers.Status() // once: it counts what is in the caches, and all below is of one moment
	lines, ready := e.readinessLines(resources)
	p := e.policy.Load()
	s := Status{
		Time: now, Ready: ready, ReadySince: e.readySince.get(), WaitingFor: []string{},
		Leadership: e.leadership(),
		Discovery:  Discovery{Done: e.informers.Discovered(), Error: e.informers.DiscoveryError()},
		DryRun:     e.opts.DryRun, Namespaces: listed(e.opts.Namespaces), ExcludedNamespaces: listed(e.opts.ExcludeNamespaces),
		QueueDepth:  e.queue.Len(),
		UnreadRules: p.unread, RulesLoaded: p.loaded, InvalidRules: invalidRules(p.problems),
		Resources: e.resourceStatuses(p.rules, resources), Contentions: e.contentionStatuses(now),
		Recent: e.recent.list(), Advice: listed(e.advice()),
	}
	for _, l := range lines {
		if l.mark == "-" {
			s.WaitingFor = append(s.WaitingFor, l.text)
		}
	}
	s.Rules = e.ruleStatuses(p, resources, s.Contentions)
	return s
}

// listed is a list of its own that is not null in JSON.
func listed(words []string) []string { return append([]string{}, words...) }

func (e *Engine) leadership() Leadership {
	if e.election == nil {
		return Leadership{Role: Alone}
	}
	l := e.election
	l.mu.Lock()
	defer l.mu.Unlock()
	out := Leadership{Role: Standby, Identity: l.identity, Leader: l.holder, Lease: l.name.String(), Since: l.acquired, Trouble: l.trouble}
	switch {
	case l.lost != nil:
		out.Role, out.Trouble = Lost, l.lost.Error()
	case !l.acquired.IsZero():
		out.Role = Leader
	case l.trouble == "" && (l.contact.IsZero() || time.Since(l.contact) > l.lease):
		out.Trouble = "it has not been seen"
	}
	return out
}

// leads reports whether this instance is the one that works.
func (l Leadership) leads() bool { return l.Role == Alone || l.Role == Leader }

func (e *Engine) resourceStatuses(set *rules.Set, resources []gvr.Status) []ResourceStatus {
	out := []ResourceStatus{}
	for _, s := range resources {
		r := ResourceStatus{
			Resource: rules.ResourceName(s.Resource), Namespace: s.Namespace, State: s.State, Reason: s.Reason,
			Since: s.Since, Objects: s.Objects, Rules: listed(names(set.For(s.Resource))),
		}
		if s.State != gvr.Synced && s.State != gvr.Syncing {
			r.Consequence = e.meaning(s)
		}
		out = append(out, r)
	}
	return out
}

func (e *Engine) contentionStatuses(now time.Time) []ContentionStatus {
	out := []ContentionStatus{}
	for _, c := range e.Contentions() {
		out = append(out, ContentionStatus{
			Rule: c.Rule, Resource: c.Resource.String(), Namespace: c.Namespace, Name: c.Name,
			Fields: listed(c.Fields), Managers: listed(c.Managers),
			Since: c.Since, Until: c.Until, Held: now.Before(c.Until), Holds: c.Holds,
		})
	}
	return out
}

func invalidRules(problems []*rules.Problem) []InvalidRule {
	out := []InvalidRule{}
	for _, p := range problems {
		out = append(out, InvalidRule{
			Rule: p.Rule, File: p.Pos.File, Line: p.Pos.Line, Column: p.Pos.Column,
			Check: p.Check, Message: p.Msg, Excerpt: p.Excerpt(), Kept: p.Kept,
		})
	}
	return out
}

// readySince remembers since when the engine is ready, or is not. It is safe for
// concurrent use.
type readySince struct {
	mu     sync.Mutex
	ready  bool
	since  time.Time // zero: nobody has looked yet
	looked time.Time
}

// observe notes what is so now. changed is asked when readiness came, if it did:
// nobody may have looked since.
func (r *readySince) observe(ready bool, now time.Time, changed func() time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.since.IsZero() || r.ready != ready:
		at := now
		if came := changed(); ready && !came.IsZero() && came.Before(now) {
			at = came
		}
		if at.Before(r.looked) {
			at = r.looked
		}
		r.ready, r.since = ready, at
	}
	r.looked = now
}

func (r *readySince) get() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since
}

// lastChange is when a resource last changed its state, or this instance began
// to lead.
func (e *Engine) lastChange() time.Time {
	at := e.leadership().Since
	for _, s := range e.informers.States() {
		at = slices.MaxFunc([]time.Time{at, s.Since}, time.Time.Compare)
	}
	return at
}
