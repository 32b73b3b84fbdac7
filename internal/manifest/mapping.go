package manifest

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// plan says what happens to the entries of a collection, in the terms of its text: entries are the pairs of a mapping or the elements of a sequence.
type plan struct {
	count  int
	remove map[int]bool
	// added are new entries: keys of a mapping, in order; or elements of a sequence, which go behind the entry before position at.
	keys   []string
	values []any
	at     int
}

// keptBefore returns the last entry below i that is kept, or -1.
func (p plan) keptBefore(i int) int {
	for i--; i >= 0 && p.remove[i]; i-- {
	}
	return i
}

// keptFrom returns the first entry from i on that is kept, or count.
func (p plan) keptFrom(i int) int {
	for ; i < p.count && p.remove[i]; i++ {
	}
	return i
}

// mapping changes the entries of a mapping. New keys go to its end.
func (e *editor) mapping(n *yaml.Node, old, want map[string]any, depth int, s slot) bool {
	p := plan{count: len(n.Content) / 2, remove: map[int]bool{}}
	present := make(map[string]bool, p.count)
	changed := make([]string, p.count)
	for i := range p.count {
		k := n.Content[2*i]
		if yamldoc.IsMerge(k) {
			continue
		}
		name, err := yamldoc.KeyString(k)
		if err != nil {
			return false
		}
		present[name] = true
		_, had := old[name]
		w, has := want[name]
		switch {
		case had && !has:
			p.remove[i] = true
		case has && !jsonvalue.Equal(old[name], w):
			changed[i] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !present[name] && !jsonvalue.Equal(old[name], want[name]) {
			p.keys, p.values = append(p.keys, name), append(p.values, want[name])
		}
	}
	p.at = p.count
	if len(p.remove) == p.count && p.count > 0 {
		return e.replace(n, any(want), s)
	}
	child := slot{kind: flowSlot}
	if isBlock(n) {
		child = slot{kind: mapSlot, indent: e.columnOf(n.Content[0])}
	}
	for i, name := range changed {
		if name == "" {
			continue
		}
		if child.kind == mapSlot {
			after, ok := e.afterColon(n.Content[2*i])
			if !ok {
				return false
			}
			child.after = after
		}
		if !e.value(n.Content[2*i+1], old[name], want[name], depth, child) {
			return false
		}
	}
	if child.kind == flowSlot {
		return e.flowEntries(n, p)
	}
	return e.blockEntries(n, p, child.indent)
}

func (e *editor) columnOf(n *yaml.Node) int {
	x, ok := e.doc.Extent(n)
	if !ok {
		return n.Column - 1
	}
	return e.column(x.Outer)
}

// afterColon returns the offset behind the colon that follows a key.
func (e *editor) afterColon(k *yaml.Node) (int, bool) {
	x, ok := e.doc.Extent(k)
	if !ok {
		return 0, false
	}
	at := e.skipSpace(x.End)
	return at + 1, at < e.end && e.data[at] == ':'
}

// entry returns the byte range of an entry: from its key or dash to the end of its value.
func (e *editor) entry(n *yaml.Node, i int) (start, end int, ok bool) {
	if n.Kind == yaml.MappingNode {
		k, ok1 := e.doc.Extent(n.Content[2*i])
		v, ok2 := e.doc.Extent(n.Content[2*i+1])
		return k.Outer, max(v.End, k.End), ok1 && ok2
	}
	x, ok := e.doc.Extent(n.Content[i])
	if !ok || n.Style&yaml.FlowStyle != 0 {
		return x.Outer, x.End, ok
	}
	dash, ok := e.dash(n, i)
	return dash, x.End, ok
}

// dash returns the offset of the dash of a block sequence's element.
func (e *editor) dash(n *yaml.Node, i int) (int, bool) {
	var at int
	if i == 0 {
		x, ok := e.doc.Extent(n)
		if !ok {
			return 0, false
		}
		at = x.Start
	} else {
		x, ok := e.doc.Extent(n.Content[i-1])
		if !ok {
			return 0, false
		}
		at = e.skipSpace(x.End)
	}
	return at, at < e.end && e.data[at] == '-'
}

// blockEntries removes and adds entries of a block collection.
func (e *editor) blockEntries(n *yaml.Node, p plan, indent int) bool {
	for i := 0; i < p.count; i++ {
		if !p.remove[i] {
			continue
		}
		start, end, ok := e.entry(n, i)
		if !ok {
			return false
		}
		if e.alone(start) {
			start = e.lineStart(start)
			if i > 0 {
				start = e.withComments(start, indent)
			}
			e.add(start, e.nextLine(end), "")
			continue
		}
		// The first entry stands behind a dash: the next one that stays moves up to it.
		next := p.keptFrom(i)
		if i > 0 || next == p.count {
			return false
		}
		to, _, ok := e.entry(n, next)
		if !ok {
			return false
		}
		e.add(start, to, "")
		i = next - 1
	}
	if len(p.values) == 0 {
		return true
	}
	return e.addBlockEntries(n, p, indent)
}

func (e *editor) addBlockEntries(n *yaml.Node, p plan, indent int) bool {
	text := e.r.entries(p.keys, p.values, indent)
	if before := p.keptBefore(p.at); before >= 0 {
		_, end, ok := e.entry(n, before)
		if !ok {
			return false
		}
		at := e.lineEnd(e.notRemoved(end))
		e.add(at, at, "\n"+spaces(indent)+text)
		return true
	}
	start, _, ok := e.entry(n, p.keptFrom(p.at))
	if !ok {
		return false
	}
	e.add(start, start, text+"\n"+spaces(indent))
	return true
}

// notRemoved moves a place that lies in removed lines up to the end of the line before them: the last entry of an entry may be gone.
func (e *editor) notRemoved(at int) int {
	for i := len(e.edits) - 1; i >= 0; i-- {
		c := e.edits[i]
		if c.text == "" && c.start > e.start && c.start <= at && at < c.end && c.start == e.lineStart(c.start) {
			at = c.start - 1
			if at > e.start && e.data[at] == '\n' && e.data[at-1] == '\r' {
				at--
			}
			i = len(e.edits)
		}
	}
	return at
}
