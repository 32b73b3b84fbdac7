package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// queueModel is what objectQueue should do, as simply as it can be said: one list
// of the keys that wait, searched from its beginning, and two of the resources in
// their turn.
type queueModel struct {
	slots      int
	waiting    []modelKey // in the order of their adds, or moves up
	working    map[Key]bool
	again      map[Key]priority // of keys added during the work on them
	taken      map[schema.GroupResource]int
	turns      [2][]schema.GroupResource // by priority: of the resources whose best key has it
	passed     int                       // live ones since one of the background, while some waited
	passedHere map[schema.GroupResource]int
}

type modelKey struct {
	Key
	priority priority
}

func newQueueModel(slots int) *queueModel {
	return &queueModel{
		slots: slots, working: map[Key]bool{}, again: map[Key]priority{},
		taken: map[schema.GroupResource]int{}, passedHere: map[schema.GroupResource]int{},
	}
}

func (m *queueModel) len() int { return len(m.waiting) }

func (m *queueModel) available() bool { return len(m.turns[live])+len(m.turns[background]) > 0 }

func (m *queueModel) add(key Key, p priority) {
	i := slices.IndexFunc(m.waiting, func(k modelKey) bool { return k.Key == key })
	switch {
	case m.working[key]:
		was, ok := m.again[key]
		if !ok || was < p {
			m.again[key] = p
		}
		return
	case i >= 0 && m.waiting[i].priority >= p:
		return
	case i >= 0:
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
	m.waiting = append(m.waiting, modelKey{key, p})
	m.arrange(key.Resource)
}

// first is where the first key of a resource and priority stands; -1: nowhere.
func (m *queueModel) first(resource schema.GroupResource, p priority) int {
	return slices.IndexFunc(m.waiting, func(k modelKey) bool { return k.Resource == resource && k.priority == p })
}

// arrange gives a resource its turn, unless it has the right one.
func (m *queueModel) arrange(resource schema.GroupResource) {
	for p := range m.turns {
		due := m.taken[resource] < m.slots && m.first(resource, priority(p)) >= 0 &&
			(priority(p) == live || m.first(resource, live) < 0)
		i := slices.Index(m.turns[p], resource)
		if due && i < 0 {
			m.turns[p] = append(m.turns[p], resource)
		} else if !due && i >= 0 {
			m.turns[p] = slices.Delete(m.turns[p], i, i+1)
		}
	}
}

func (m *queueModel) get() Key {
	p := live
	if len(m.turns[background]) > 0 {
		m.passed++
		if len(m.turns[live]) == 0 || m.passed == 8 {
			p, m.passed = background, 0
		}
	}
	resource := m.turns[p][0]
	m.turns[p] = m.turns[p][1:]
	if m.first(resource, background) >= 0 {
		m.passedHere[resource]++
		if p == background || m.passedHere[resource] == 8 {
			p, m.passedHere[resource] = background, 0
		}
	}
	i := m.first(resource, p)
	key := m.waiting[i].Key
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.working[key] = true
	m.taken[resource]++
	m.arrange(resource)
	return key
}

func (m *queueModel) done(key Key) {
	delete(m.working, key)
	m.taken[key.Resource]--
	if p, ok := m.again[key]; ok {
		delete(m.again, key)
		m.waiting = append(m.waiting, modelKey{key, p})
	}
	m.arrange(key.Resource)
}
