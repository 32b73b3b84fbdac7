package engine

import (
	"slices"
	"time"
)

// Contention says when a rule gives way: it has made the same change to the
// same object Count times within Window, because somebody else set it back, or
// any changes Cap times. The rule is then held for that object, for a minute and
// twice as long each further time, up to an hour. The zero values mean the
// defaults.
type Contention struct {
	Count  int
	Window time.Duration
	Cap    int // of changes that differ, within Window

	firstHold time.Duration // for tests, which do not wait a minute
}

// Defaults of Contention.
const (
	DefaultContentionCount  = 5
	DefaultContentionWindow = 10 * time.Minute
	DefaultContentionCap    = 60

	firstContentionHold = time.Minute
	maxContentionHold   = time.Hour
)

func (c Contention) withDefaults() Contention {
	if c.Count == 0 {
		c.Count = DefaultContentionCount
	}
	if c.Window == 0 {
		c.Window = DefaultContentionWindow
	}
	if c.Cap == 0 {
		c.Cap = DefaultContentionCap
	}
	if c.firstHold == 0 {
		c.firstHold = firstContentionHold
	}
	return c
}

// history is what rules have written to one object.
type history struct {
	key     Key
	records []*record
	// newest is the latest time in the managedFields that the server answered
	// the last write with: what somebody writes afterwards is not older.
	newest string
}

// record is what one rule has written to one object.
type record struct {
	rule   string
	writes []write // accepted within the window, since the last hold began; oldest first
	fight  *fight  // nil: there is none
}

type write struct {
	at     time.Time
	change uint64 // its digest
}

// fight is one about an object: it begins with a hold, and ends when a window has
// passed after a hold in which nothing was set back.
type fight struct {
	change uint64 // what is set back
	capped bool   // whatever the change is: there were too many
	holds  int
	since  time.Time
	wait   time.Duration // how long the last hold takes, or took
	until  time.Time     // when that ends
	tried  time.Time     // when the change was made after it; zero: not yet

	fields   []string
	managers []string
}

// ends is when a fight is over if nothing happens; during a hold, when that ends.
func (f *fight) ends(now time.Time, window time.Duration) time.Time {
	switch {
	case now.Before(f.until):
		return f.until
	case f.tried.IsZero():
		return f.until.Add(window)
	}
	return f.tried.Add(window)
}

// over reports whether a fight is over for good.
func (f *fight) over(now time.Time, window time.Duration) bool {
	return !now.Before(f.until) && !now.Before(f.ends(now, window))
}

func (h *history) of(rule string) *record {
	for _, r := range h.records {
		if r.rule == rule {
			return r
		}
	}
	return nil
}

func (h *history) fightOf(rule string) *fight {
	if r := h.of(rule); r != nil {
		return r.fight
	}
	return nil
}

// contended tells of a record's fight.
func (h *history) contended(r *record) Contended {
	return Contended{
		Rule: r.rule, Resource: h.key.Resource, Namespace: h.key.Namespace, Name: h.key.Name,
		Fields: r.fight.fields, Managers: r.fight.managers,
		Since: r.fight.since, Until: r.fight.until, Holds: r.fight.holds,
	}
}

func (h *history) fighting() bool {
	return slices.ContainsFunc(h.records, func(r *record) bool { return r.fight != nil })
}

// about reports whether a change is one that the fight is about.
func (f *fight) about(change uint64) bool { return f.capped || f.change == change }

// forget drops the writes that are not younger than a time.
func (r *record) forget(before time.Time) {
	r.writes = slices.DeleteFunc(r.writes, func(w write) bool { return !w.at.After(before) })
}

func (r *record) count(change uint64) int {
	n := 0
	for _, w := range r.writes {
		if w.change == change {
			n++
		}
	}
	return n
}
