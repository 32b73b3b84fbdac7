package engine

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/rectifier-dev/rectifier/rules"
)

const (
	// failOpen is when a version is decided on although the cache seems to be
	// behind: versions of some servers do not compare, and watches can break.
	failOpen = 30 * time.Second

	// A rule that was refused is tried on a changed object at once, then after
	// growing waits: an object whose status changes every second must not turn
	// one mistake into a request a second.
	firstHold = time.Second
	maxHold   = 10 * time.Minute

	// An object whose requests fail begins anew with short waits if it has needed
	// none for at least so long.
	minQuiet = 10 * time.Second
)

// objectState is what the engine remembers of one object: only objects that
// were written or refused have one. It belongs to the worker that has the
// object's key.
type objectState struct {
	uid types.UID

	// The next decision needs a cached version that is not older than atLeast
	// (the engine's last write) and is not stale (it met a conflict).
	atLeast, stale string
	since          time.Time
	generation     uint64 // of the policy that it was last looked at under
	doubted        string // the version that an unexplained refusal met
	disputed       string // the version that is said to be gone or old

	delays    int           // failures in a row that may pass
	notBefore time.Time     // no request is sent earlier, however often the object changes
	lastWait  time.Duration // until then, when that was set
	told      bool          // one of the failures has been logged
	split     bool
	late      bool              // an expression ran out of time
	held      map[string]*hold  // by rule
	reported  map[string]string // the last error told of, by rule

	// waits says that a newer version of the object is of interest, changed or not.
	// The table's lock guards it: it is what the last worker has left.
	waits bool

	// Set by informers, whoever has the key:
	resynced  atomic.Bool
	recovered atomic.Bool
}

// hold keeps a rule from one version of the object, and from later ones until
// a time.
type hold struct {
	version  string
	retry    bool // what refused it is not the object: it is tried again on the same version too
	until    time.Time
	wait     time.Duration
	reported string
}

func newObjectState(uid types.UID) *objectState {
	return &objectState{uid: uid, held: map[string]*hold{}, reported: map[string]string{}}
}

// wrote notes an accepted write. Rules that are held stay held: the new
// version is the engine's own work.
func (s *objectState) wrote(before, after string, now time.Time) {
	after = strings.Clone(after) // not the whole answer
	s.atLeast, s.stale, s.since = after, "", now
	for _, h := range s.held {
		if h.version == before {
			h.version = after
		}
	}
}

// expectNewerThan notes that a version is not the current one.
func (s *objectState) expectNewerThan(version string, now time.Time) {
	version = strings.Clone(version) // not the text of the whole object
	s.stale, s.disputed, s.since = version, version, now
}

// behind reports whether a cached version must not be decided on. store is the
// version up to which the whole cache has come.
func (s *objectState) behind(cached, store string, now time.Time) bool {
	if s == nil || now.Sub(s.since) >= failOpen {
		return false
	}
	return cached == s.stale || older(cached, s.atLeast) && older(store, s.atLeast)
}

// lookAgain is when an object is looked at again whose cached version is old: after
// as long as that has lasted, and when it may be decided on in any case.
func (s *objectState) lookAgain(now time.Time) time.Duration {
	waited := now.Sub(s.since)
	return max(min(waited, failOpen-waited), staleWait)
}

// caughtUp notes that no cache is behind, and which version they hold.
func (s *objectState) caughtUp(cached string) {
	if s == nil {
		return
	}
	s.atLeast, s.stale, s.late = "", "", false
	if s.doubted != cached {
		s.doubted = ""
	}
	if s.disputed != cached {
		s.disputed = ""
	}
}

// follow forgets what was noted of rules that have changed or gone since.
func (s *objectState) follow(p *policy) {
	if s == nil || s.generation == p.generation {
		return
	}
	changed := func(rule string) bool { return p.changedSince(rule, s.generation) }
	maps.DeleteFunc(s.held, func(rule string, _ *hold) bool { return changed(rule) })
	maps.DeleteFunc(s.reported, func(rule, _ string) bool { return changed(rule) })
	s.generation = p.generation
}

// older reports whether version a is older than b; not if they do not compare.
func older(a, b string) bool {
	if b == "" {
		return false
	}
	if a == "" {
		return true
	}
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

func (s *objectState) splitting() bool { return s != nil && s.split }

// hold keeps a rule away; it reports whether that has to be told: not if the
// same was told before.
func (s *objectState) hold(rule, version, message string, retry bool, now time.Time) bool {
	h := s.held[rule]
	if h == nil {
		h = &hold{}
		s.held[rule] = h
	}
	h.wait = min(max(2*h.wait, firstHold), maxHold)
	h.version, h.retry, h.until = strings.Clone(version), retry, now.Add(h.wait)
	tell := h.reported != message
	h.reported = message
	return tell
}

// free returns the rules that are not held for a version, and after which time
// one of the others may be tried again (0: none is waiting for time).
func (s *objectState) free(all []*rules.Rule, version string, now time.Time) ([]*rules.Rule, time.Duration) {
	if s == nil || len(s.held) == 0 {
		return all, 0
	}
	var out []*rules.Rule
	var wait time.Duration
	for _, r := range all {
		h := s.held[r.Name]
		switch {
		case h == nil || (h.version != version || h.retry) && !now.Before(h.until):
			out = append(out, r)
		case h.version != version || h.retry:
			if left := h.until.Sub(now); wait == 0 || left < wait {
				wait = left
			}
		}
	}
	return out, wait
}

// review has rules that are held for one version tried again on it, if they
// have waited long enough: what refused them, or undid their work, may have gone
// without a trace on the object.
func (s *objectState) review() {
	for _, h := range s.held {
		h.version = ""
	}
}

// putOff keeps requests back for a time.
func (s *objectState) putOff(wait time.Duration, now time.Time) {
	s.lastWait, s.notBefore = wait, now.Add(wait)
}

// quietAt is when an object that needs no request until then has been quiet for
// long enough: for longer than the last wait.
func (s *objectState) quietAt() time.Time {
	return s.notBefore.Add(max(s.lastWait, minQuiet))
}

// wait is for how long no request may be sent.
func (s *objectState) wait(now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	return max(s.notBefore.Sub(now), 0)
}

// release forgets that a rule was held: it has nothing to change any more.
func (s *objectState) release(rule string) {
	if s != nil {
		delete(s.held, rule)
	}
}

// objectTable keeps the states of objects by key. It is safe for concurrent
// use; a state itself belongs to the worker that has the key.
type objectTable struct {
	mu     sync.Mutex
	states map[Key]*objectState
	busy   map[Key]struct{} // those that a worker has
}

// begin notes that a worker has a key, end that it has done with it.
func (t *objectTable) begin(key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy == nil {
		t.busy = map[Key]struct{}{}
	}
	t.busy[key] = struct{}{}
}

func (t *objectTable) end(key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, key)
}

// waits reports whether a newer version of an object is of interest, changed or not:
// see immaterial.
func (t *objectTable) waits(key Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, busy := t.busy[key]; busy {
		return true
	}
	s := t.states[key]
	return s != nil && s.waits
}

// get returns the state of the object with that uid, nil if there is none: a
// state of a former object of the same name is dropped.
func (t *objectTable) get(key Key, uid types.UID) *objectState {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states[key]
	if s != nil && s.uid != uid {
		delete(t.states, key)
		return nil
	}
	if s != nil && s.resynced.Swap(false) {
		s.review()
	}
	if s != nil && s.recovered.Swap(false) {
		s.delays, s.lastWait, s.notBefore = 0, 0, time.Time{}
	}
	return s
}

// resynced notes that an informer shows an object again that has not changed.
func (t *objectTable) resynced(key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.states[key]; s != nil {
		s.resynced.Store(true)
	}
}

// recovered notes that the API server serves a resource again, in a namespace
// ("": in all): what was put off need not wait any longer, and what fails again
// begins anew with short waits.
func (t *objectTable) recovered(resource schema.GroupResource, namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.states {
		if key.Resource == resource && (namespace == "" || key.Namespace == namespace) {
			s.recovered.Store(true)
		}
	}
}

// keep stores a state; one that says nothing any more is dropped.
func (t *objectTable) keep(key Key, s *objectState) {
	if s == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.waits = s.atLeast != "" || s.stale != "" || s.doubted != "" || s.disputed != "" || s.delays > 0 || s.split || s.late || len(s.held) > 0
	if !s.waits && len(s.reported) == 0 {
		delete(t.states, key)
		return
	}
	if t.states == nil {
		t.states = map[Key]*objectState{}
	}
	t.states[key] = s
}

// unseen reports whether the cache does not hold the engine's last write yet.
func (t *objectTable) unseen(key Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states[key]
	return s != nil && (s.atLeast != "" || s.stale != "")
}

// tellFailure reports whether a failure of an object is the first that is told
// since it was quiet. It is for the worker that has the key.
func (t *objectTable) tellFailure(key Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states[key]
	if s == nil {
		return true
	}
	told := s.told
	s.told = true
	return !told
}

func (t *objectTable) forget(key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.states, key)
}
