package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// ActivityKind says what has become of what rules found on an object.
type ActivityKind string

const (
	Fixed    ActivityKind = "Fixed"    // a change was accepted and kept
	WouldFix ActivityKind = "WouldFix" // a change was held back by DryRun
	Audited  ActivityKind = "Audited"  // a rule of mode Audit would change the object
	Failed   ActivityKind = "Failed"   // a rule failed on the object
	Held     ActivityKind = "Held"     // a rule gave way: see Contended
)

// Activity is something that rules have done, or would do, to one object.
type Activity struct {
	Kind  ActivityKind `json:"kind"`
	Time  time.Time    `json:"time"`  // the last time
	First time.Time    `json:"first"` // the same as Time if it happened once
	Times int          `json:"times"` // how often the same happened since First
	// Rules are sorted. A fix can be the work of several.
	Rules     []string `json:"rules"`
	Resource  string   `json:"resource"` // group/version/resource, as rules name it
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Reason    string   `json:"reason"` // that of the Event
	// Message is what the rules say of it; empty if they have no message of their
	// own, or if it may hold what comes from a Secret.
	Message string `json:"message,omitempty"`
	// Changes are what was, or would be, changed, without what is secret.
	Changes []FieldChange `json:"changes,omitempty"`
	// MoreChanges is how many are left out.
	MoreChanges int `json:"moreChanges,omitempty"`
}

const (
	// maxActivity is how many are remembered.
	maxActivity = 100
	// maxActivityMessage bounds what several rules have to say of one change.
	maxActivityMessage = 2048
)

// activity is an Activity in memory: it holds copies of what changed, cut to a
// size, and nothing of the object itself. It is rendered when somebody looks.
type activity struct {
	kind            ActivityKind
	last, first     time.Time
	times           int
	rules           []string
	resource        schema.GroupVersionResource
	namespace, name string
	reason, message string
	changes         changes
}

// same reports whether two are one thing that happened again.
func (a *activity) same(b *activity) bool {
	return a.kind == b.kind && a.name == b.name && a.namespace == b.namespace && a.resource == b.resource &&
		a.reason == b.reason && a.message == b.message && slices.Equal(a.rules, b.rules) &&
		slices.EqualFunc(a.changes.fields, b.changes.fields, func(x, y fieldChange) bool { return x.name == y.name })
}

// recentLog remembers the latest activity: a fixed number of entries of a
// bounded size, so that a storm of fixes costs no more than a few. What happens
// again moves up instead of pushing others out. It is safe for concurrent use.
type recentLog struct {
	shields shieldCache

	mu      sync.Mutex
	entries []*activity // oldest first; those in it are not modified
	fixes   map[ruleOn]time.Time
}

func (l *recentLog) add(a *activity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.first, a.times = a.last, 1
	if i := slices.IndexFunc(l.entries, a.same); i >= 0 {
		before := l.entries[i]
		a.first, a.times = before.first, before.times+1
		l.entries = slices.Delete(l.entries, i, i+1)
	}
	if len(l.entries) == maxActivity {
		l.entries = slices.Delete(l.entries, 0, 1)
	}
	l.entries = append(l.entries, a)
	if a.kind != Fixed {
		return
	}
	if l.fixes == nil {
		l.fixes = map[ruleOn]time.Time{}
	}
	for _, rule := range a.rules {
		l.fixes[ruleOn{rule, a.resource.GroupResource().String()}] = a.last
	}
}

// forgetRules forgets the fixes of rules that are gone, or are not about a resource
// any more. What they have done stays among the activity.
func (l *recentLog) forgetRules(set *rules.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.fixes, func(on ruleOn, _ time.Time) bool {
		r := set.Get(on.rule)
		return r == nil || !slices.ContainsFunc(r.Resources, func(resource schema.GroupVersionResource) bool {
			return resource.GroupResource().String() == on.resource
		})
	})
}

// lastFixes are when rules have last put something right.
func (l *recentLog) lastFixes() map[ruleOn]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.fixes)
}

// list returns what is remembered, the latest first.
func (l *recentLog) list() []Activity {
	l.mu.Lock()
	entries := slices.Clone(l.entries)
	l.mu.Unlock()
	out := make([]Activity, 0, len(entries))
	for _, a := range slices.Backward(entries) {
		fields, more := a.changes.render()
		out = append(out, Activity{
			Kind: a.kind, Time: a.last, First: a.first, Times: a.times, Rules: a.rules,
			Resource: rules.ResourceName(a.resource), Namespace: a.namespace, Name: a.name,
			Reason: a.reason, Message: a.message, Changes: fields, MoreChanges: more,
		})
	}
	return out
}

// activity makes an entry about the object of a decision.
func (d *decision) activity(kind ActivityKind, names []string, reason, message string) *activity {
	return &activity{
		kind: kind, last: time.Now(), rules: names, resource: d.resource, namespace: d.key.Namespace, name: d.key.Name,
		reason: reason, message: message,
	}
}

// noteChange remembers what rules have changed, or would, by one request.
func (d *decision) noteChange(kind ActivityKind, request *rules.Request, verdicts []rules.Verdict) {
	if len(verdicts) == 0 {
		return
	}
	var by []*rules.Rule
	var said []string
	for _, v := range verdicts {
		by = append(by, v.Rule)
		if message := d.message(v); message != v.Rule.DefaultMessage() {
			said = append(said, message)
		}
	}
	a := d.activity(kind, names(by), verdicts[0].Event.Reason, truncate(strings.Join(said, "; "), maxActivityMessage))
	a.changes = d.changesOf(request, verdicts)
	d.recent.add(a)
}

// noteAudit remembers what a rule of mode Audit would change. No value was
// computed for that, or sent: the fields are named.
func (d *decision) noteAudit(v rules.Verdict) {
	message := d.message(v)
	if message == v.Rule.DefaultMessage() {
		message = ""
	}
	a := d.activity(Audited, []string{v.Rule.Name}, v.Event.Reason, message)
	a.changes.names(d.shield().Fields(v))
	d.recent.add(a)
}

// noteProblem remembers that a rule has failed, or was held. The message may be told.
func (d *decision) noteProblem(r *rules.Rule, reason, message string) {
	kind := Failed
	if reason == reasonContended {
		kind = Held
	}
	d.recent.add(d.activity(kind, []string{r.Name}, reason, truncate(message, maxActivityMessage)))
}
