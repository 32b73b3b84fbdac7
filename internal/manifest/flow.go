package manifest

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// flowEntries removes and adds entries of a collection in brackets.
func (e *editor) flowEntries(n *yaml.Node, p plan) bool {
	for i := 0; i < p.count; i++ {
		if !p.remove[i] {
			continue
		}
		next := p.keptFrom(i)
		start, _, ok := e.entry(n, i)
		if !ok {
			return false
		}
		if next < p.count {
			to, _, ok := e.entry(n, next)
			if !ok {
				return false
			}
			e.add(start, to, "")
		} else {
			_, from, ok1 := e.entry(n, p.keptBefore(i))
			_, to, ok2 := e.entry(n, p.count-1)
			if !ok1 || !ok2 {
				return false
			}
			e.add(from, to, "")
		}
		i = next
	}
	if len(p.values) == 0 {
		return true
	}
	separator, ok := e.separator(n, p.count)
	if !ok {
		return false
	}
	indent := separator[strings.LastIndexByte(separator, '\n')+1:]
	if !strings.Contains(separator, "\n") {
		indent = oneLine
	}
	texts := make([]string, len(p.values))
	for i, v := range p.values {
		texts[i] = e.r.flow(v, nil, indent)
		if p.keys != nil {
			texts[i] = e.r.key(p.keys[i], true) + e.r.colon + texts[i]
		}
	}
	text := strings.Join(texts, separator)
	if before := p.keptBefore(p.at); before >= 0 {
		_, end, ok := e.entry(n, before)
		if !ok {
			return false
		}
		e.addFirst(end, separator+text)
		return true
	}
	start, _, ok := e.entry(n, p.keptFrom(p.at))
	if !ok {
		return false
	}
	e.add(start, start, text+separator)
	return true
}

// addFirst inserts before what has been recorded to be removed at the same place.
func (e *editor) addFirst(at int, text string) {
	e.add(at, at, text)
	last := e.edits[len(e.edits)-1]
	for i, c := range e.edits {
		if c.start == at && c.end > at && c.text == "" {
			copy(e.edits[i+1:], e.edits[i:len(e.edits)-1])
			e.edits[i] = last
			return
		}
	}
}

// separator returns what stands between two entries of a flow collection, with \n for line breaks: taken from its own text where it has two,
// guessed from its brackets otherwise.
func (e *editor) separator(n *yaml.Node, count int) (string, bool) {
	start, end, ok := e.entry(n, count-1)
	if !ok {
		return "", false
	}
	if count > 1 {
		_, before, ok := e.entry(n, count-2)
		if !ok {
			return "", false
		}
		text := e.data[before:start]
		if len(bytes.Trim(text, ", \t\r\n")) == 0 && bytes.Count(text, []byte(",")) == 1 {
			return strings.ReplaceAll(string(text), e.r.eol, "\n"), true
		}
	}
	x, ok := e.doc.Extent(n)
	if !ok {
		return "", false
	}
	if bytes.ContainsAny(e.data[x.Start:start], "\r\n") && e.lineEnd(end) < x.End {
		return ",\n" + e.lineIndent(start), true
	}
	return e.r.comma, true
}
