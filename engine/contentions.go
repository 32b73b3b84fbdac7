package engine

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/rules"
)

const (
	// maxHistories is how many objects are remembered at once. At the default
	// rate of writes, fewer are written within the default window.
	maxHistories = 50_000

	// sweepInterval is how often those are looked for that can be forgotten.
	sweepInterval = time.Minute
)

// contentions remembers what rules have written to objects lately, and which
// of them are held for an object because somebody keeps setting that back.
//
// It goes by uid: an object that leaves the cache and comes back is known, and
// one that is created again is another one. Only objects that were written
// within the window, or are fought about, cost anything. It is safe for
// concurrent use.
type contentions struct {
	Contention
	metrics *metrics

	mu      sync.Mutex
	policy  *policy // whose rules are remembered
	objects map[types.UID]*history
	fights  map[Key]*history // those with a fight whose object is there
	swept   time.Time
}

// author is a rule as the policy of a generation has it.
type author struct {
	rule       string
	generation uint64
}

func newContentions(c Contention, m *metrics, p *policy) *contentions {
	return &contentions{Contention: c, metrics: m, policy: p, objects: map[types.UID]*history{}, fights: map[Key]*history{}}
}

// knows reports whether an object, which is there, was written lately.
func (t *contentions) knows(key Key, uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.objects[uid]
	if f := t.fights[key]; f != nil && f != h {
		t.hide(f) // of a former object of that name
	}
	if h == nil {
		return false
	}
	t.show(h)
	return true
}

// wrote notes an accepted write of a rule. newest is the latest time in the
// managedFields of the answer.
func (t *contentions) wrote(key Key, uid types.UID, by author, change uint64, newest string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outdated(by) {
		return
	}
	t.sweep(now)
	h := t.objects[uid]
	if h == nil {
		t.makeRoom()
		h = &history{key: key}
		t.objects[uid] = h
	}
	h.newest = strings.Clone(newest) // not the whole answer
	r := h.of(by.rule)
	if r == nil {
		r = &record{rule: by.rule}
		h.records = append(h.records, r)
	}
	r.forget(now.Add(-t.Window))
	r.writes = append(r.writes, write{now, change})
	if f := r.fight; f != nil && f.tried.IsZero() && f.about(change) {
		f.tried = now
	}
}

// free leaves out the rules that are held for an object, and says when it has to
// be looked at again because of its fights (zero: never). Fights that are over
// end, and are returned.
func (t *contentions) free(uid types.UID, all []*rules.Rule, now time.Time) (free []*rules.Rule, due time.Time, over []Contended) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.objects[uid]
	if h == nil {
		return all, due, nil
	}
	for _, r := range h.records {
		if r.fight == nil {
			continue
		}
		if r.fight.over(now, t.Window) {
			over = append(over, h.contended(r))
			t.end(h, r)
			continue
		}
		if end := r.fight.ends(now, t.Window); due.IsZero() || end.Before(due) {
			due = end
		}
	}
	held := func(r *rules.Rule) bool {
		f := h.fightOf(r.Name)
		return f != nil && now.Before(f.until)
	}
	if slices.ContainsFunc(all, held) {
		all = slices.DeleteFunc(slices.Clone(all), held)
	}
	return all, due, over
}

// giveWay decides whether a rule, which is not held, must not make a change to
// an object because it has made it too often. The fight with the hold that
// begins then is returned.
func (t *contentions) giveWay(uid types.UID, by author, change uint64, now time.Time) (fight, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.objects[uid]
	if h == nil || t.outdated(by) {
		return fight{}, false
	}
	r := h.of(by.rule)
	if r == nil {
		return fight{}, false
	}
	r.forget(now.Add(-t.Window))
	f := r.fight
	again := f != nil && f.about(change) && !f.tried.IsZero() && !f.over(now, t.Window)
	if again && f.capped && len(r.writes) < t.Count {
		again = false // a change now and then may be what somebody wants
	}
	many := len(r.writes) >= t.Cap
	if !again && !many && r.count(change) < t.Count {
		return fight{}, false
	}
	if f == nil {
		f = &fight{since: now, wait: t.firstHold}
		r.fight = f
		t.count(h, by.rule, 1)
	} else {
		f.wait = min(2*f.wait, maxContentionHold)
	}
	if !again {
		f.change, f.capped = change, many
	}
	f.holds++
	f.until, f.tried = now.Add(f.wait), time.Time{}
	r.writes = nil
	t.metrics.contentions.WithLabelValues(by.rule, h.key.Resource.String()).Inc()
	t.show(h)
	return *f, true
}

// name notes which fields a fight is about, and with whom.
func (t *contentions) name(uid types.UID, rule string, fields, managers []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.objects[uid]; h != nil && h.fightOf(rule) != nil {
		f := h.fightOf(rule)
		f.fields, f.managers = fields, managers
	}
}

// list returns the fights about objects that are there.
func (t *contentions) list() []Contended {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Contended
	for _, h := range t.fights {
		for _, r := range h.records {
			if r.fight != nil {
				out = append(out, h.contended(r))
			}
		}
	}
	return out
}

// newest is the latest time in the managedFields when an object was last written.
func (t *contentions) newest(uid types.UID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.objects[uid]; h != nil {
		return h.newest
	}
	return ""
}

// gone notes that an object is not there any more. What is known of it stays
// for a while: its uid may come back.
func (t *contentions) gone(key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.fights[key]; h != nil {
		t.hide(h)
	}
}

// follow forgets what rules have written that are others in the policy that comes
// into force, or are gone. Decisions that were made by them before may still be
// under way: what they have to say is not taken any more.
func (t *contentions) follow(next *policy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.policy.generation
	t.policy = next
	t.drop(func(r *record) bool { return next.changedSince(r.rule, before) })
}

// outdated reports whether a rule has changed or gone since.
func (t *contentions) outdated(by author) bool { return t.policy.changedSince(by.rule, by.generation) }

// sweep forgets now and then what has expired.
func (t *contentions) sweep(now time.Time) {
	if now.Sub(t.swept) < min(sweepInterval, t.Window) {
		return
	}
	t.swept = now
	t.drop(func(r *record) bool {
		if r.fight != nil {
			// One whose object is there ends when that is evaluated.
			return r.fight.over(now.Add(-sweepInterval), t.Window)
		}
		r.forget(now.Add(-t.Window))
		return len(r.writes) == 0
	})
}

// drop removes records, and histories that have none.
func (t *contentions) drop(gone func(*record) bool) {
	for uid, h := range t.objects {
		h.records = slices.DeleteFunc(h.records, func(r *record) bool {
			if !gone(r) {
				return false
			}
			t.end(h, r)
			return true
		})
		if len(h.records) == 0 {
			delete(t.objects, uid)
		}
	}
}

// makeRoom forgets any one object that is not fought about, if there are too many.
func (t *contentions) makeRoom() {
	if len(t.objects) < maxHistories {
		return
	}
	for uid, h := range t.objects {
		if !h.fighting() {
			delete(t.objects, uid)
			return
		}
	}
}

// show lists a history among the fights, if it has one.
func (t *contentions) show(h *history) {
	if t.fights[h.key] == h || !h.fighting() {
		return
	}
	t.fights[h.key] = h
	for _, r := range h.records {
		if r.fight != nil {
			t.count(h, r.rule, 1)
		}
	}
}

// hide takes a history from the list of fights.
func (t *contentions) hide(h *history) {
	for _, r := range h.records {
		if r.fight != nil {
			t.count(h, r.rule, -1)
		}
	}
	delete(t.fights, h.key)
}

// end ends a record's fight, if there is one.
func (t *contentions) end(h *history, r *record) {
	if r.fight == nil {
		return
	}
	t.count(h, r.rule, -1)
	r.fight = nil
	if t.fights[h.key] == h && !h.fighting() {
		delete(t.fights, h.key)
	}
}

// count adds to the gauge of fights, which are counted where the object is there.
func (t *contentions) count(h *history, rule string, n float64) {
	if t.fights[h.key] == h {
		t.metrics.held.WithLabelValues(rule, h.key.Resource.String()).Add(n)
	}
}
