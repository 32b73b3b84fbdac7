package manifest

import (
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

// list changes the elements of a sequence. What is equal at both ends stays; in between elements are matched by index, or, where the new list only lacks some of the old
// ones, those are removed.
func (e *editor) list(n *yaml.Node, old, want []any, depth int, s slot) bool {
	head := 0
	for head < min(len(old), len(want)) && jsonvalue.Equal(old[head], want[head]) {
		head++
	}
	tail := 0
	for tail < min(len(old), len(want))-head && jsonvalue.Equal(old[len(old)-1-tail], want[len(want)-1-tail]) {
		tail++
	}
	midOld, midWant := old[head:len(old)-tail], want[head:len(want)-tail]
	p := plan{count: len(old), remove: map[int]bool{}}
	var changed []int // indices into midOld
	if missing, ok := subsequence(midOld, midWant); ok {
		for _, i := range missing {
			p.remove[head+i] = true
		}
	} else {
		shared := min(len(midOld), len(midWant))
		for i := range shared {
			if !jsonvalue.Equal(midOld[i], midWant[i]) {
				changed = append(changed, i)
			}
		}
		for i := shared; i < len(midOld); i++ {
			p.remove[head+i] = true
		}
		p.at, p.values = head+shared, midWant[shared:]
	}
	if len(p.remove) == p.count && p.count > 0 {
		return e.replace(n, any(want), s)
	}
	child := slot{kind: flowSlot}
	if isBlock(n) {
		x, ok := e.doc.Extent(n)
		if !ok {
			return false
		}
		child = slot{kind: listSlot, indent: e.column(x.Start)}
	}
	for _, i := range changed {
		if child.kind == listSlot {
			dash, ok := e.dash(n, head+i)
			if !ok {
				return false
			}
			child.after = dash + 1
		}
		if !e.value(n.Content[head+i], midOld[i], midWant[i], depth, child) {
			return false
		}
	}
	if child.kind == flowSlot {
		return e.flowEntries(n, p)
	}
	return e.blockEntries(n, p, child.indent)
}

// subsequence reports whether short is long with some elements left out, and which.
func subsequence(long, short []any) (missing []int, ok bool) {
	j := 0
	for i, v := range long {
		if j < len(short) && jsonvalue.Equal(v, short[j]) {
			j++
		} else {
			missing = append(missing, i)
		}
	}
	return missing, j == len(short)
}
