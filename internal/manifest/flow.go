package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// flowUnit is an entry of a collection in brackets with what belongs to it. The units of a collection, with what stands behind its opening bracket and
// before its closing one, are its whole text: removing an entry is leaving its unit out, and no comment moves to another entry.
type flowUnit struct {
	lead       string // from the end of the unit before: a line break and comment lines, or blanks
	start, end int    // of the entry itself; start < 0 for a new one
	text       string // of a new one
	tail       string // the comma, and the comment on the line where the unit ends
	comma      int    // of the comma in tail; < 0 for none
}

// flowUnits takes a flow collection apart. open is what stands on the line of the opening bracket, closing what is left before the other one.
func (e *editor) flowUnits(n *yaml.Node, count int) (units []flowUnit, open, closing string, ok bool) {
	x, ok := e.doc.Extent(n)
	if !ok || x.End-1 <= x.Start {
		return nil, "", "", false
	}
	starts, ends := make([]int, count+1), make([]int, count+1)
	ends[0], starts[count] = x.Start+1, x.End-1
	for i := range count {
		if starts[i], ends[i+1], ok = e.entry(n, i); !ok {
			return nil, "", "", false
		}
	}
	units = make([]flowUnit, count)
	for i := range count + 1 {
		if starts[i] < ends[i] {
			return nil, "", "", false
		}
		tail, lead, comma, ok := splitGap(string(e.data[ends[i]:starts[i]]))
		if !ok || (comma < 0) != (i == 0) && i < count {
			return nil, "", "", false
		}
		if i == 0 {
			open = tail
		} else {
			units[i-1].tail, units[i-1].comma = tail, comma
		}
		if i == count {
			closing = lead
		} else {
			units[i].lead, units[i].start, units[i].end = lead, starts[i], ends[i+1]
		}
	}
	return units, open, closing, true
}

// splitGap cuts what stands between two entries: tail belongs to the one before, lead to the one behind. ok is false if there is more than a
// comma, white space and comments: a question mark, say.
func splitGap(gap string) (tail, lead string, comma int, ok bool) {
	at, comma := 0, -1
	for at < len(gap) {
		switch gap[at] {
		case ' ', '\t', '\r', '\n':
			at++
		case '#':
			at += breakAt(gap[at:])
		case ',':
			if comma >= 0 {
				return "", "", 0, false
			}
			comma = at
			at++
		default:
			return "", "", 0, false
		}
	}
	at = comma + 1
	if rest := strings.TrimLeft(gap[at:], " \t"); strings.HasPrefix(rest, "#") {
		at = len(gap) - len(rest) + breakAt(rest)
	}
	return gap[:at], gap[at:], comma, true
}

// breakAt returns where the first line of s ends.
func breakAt(s string) int {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		return i
	}
	return len(s)
}

func hasBreak(s string) bool   { return strings.ContainsAny(s, "\r\n") }
func hasComment(s string) bool { return strings.Contains(s, "#") }

// lastLine returns what follows the last line break of s.
func lastLine(s string) string { return s[strings.LastIndexAny(s, "\r\n")+1:] }

// flowEntries removes and adds entries of a collection in brackets.
func (e *editor) flowEntries(n *yaml.Node, p plan) bool {
	if len(p.remove) == 0 && len(p.values) == 0 {
		return true
	}
	units, open, closing, ok := e.flowUnits(n, p.count)
	if !ok {
		return false
	}
	separator := ","
	if p.count > 1 && strings.Trim(units[p.count-2].tail, " \t") == "," {
		separator = units[p.count-2].tail
	}
	endsInComma := p.count > 0 && units[p.count-1].comma >= 0
	lead := e.newLead(units, closing)
	if p.remove[0] {
		// Comments above the first entry may be a headline of all.
		lead := units[0].lead
		blanks := len(strings.TrimRight(lead, " \t\r\n"))
		open, units[0].lead = open+lead[:blanks], lead[blanks:]
	}
	at := 0
	for i := range min(p.at, p.count) {
		if !p.remove[i] {
			at++
		}
	}
	kept := keepUnits(units, p.remove)
	if before := slices.Concat([]flowUnit{{tail: open}}, kept)[at].tail; !hasBreak(lead) && (p.count == 0 || hasComment(before)) {
		lead = e.r.eol + e.flowIndent(n, units) // nothing can follow a comment on its line
	}
	added := e.newUnits(p, lead)
	if len(added) > 0 && at == 0 && len(kept) > 0 {
		// What was first becomes second; the comments above it stay there.
		if first := &kept[0]; hasBreak(first.lead) {
			added[0].lead = e.r.eol + lastLine(first.lead)
		} else {
			first.lead, added[0].lead = added[0].lead, first.lead
		}
	}
	all := slices.Concat(kept[:at], added, kept[at:])
	for i := range all {
		all[i].setComma(i < len(all)-1 || endsInComma, separator)
	}
	if !hasBreak(closing) && hasComment(all[len(all)-1].tail) {
		closing = e.r.eol + e.flowIndent(n, units)
	}
	return e.writeUnits(n, all, open, closing)
}

// keepUnits leaves out the units that are removed. Where a line is shared with entries that stay, its indentation and its comment stay too.
func keepUnits(units []flowUnit, remove map[int]bool) []flowUnit {
	var kept []flowUnit
	var lineLead *string // of the line that the entries removed last stood on, if one of them was its first
	for i, u := range units {
		startsLine := i == 0 || hasBreak(u.lead)
		switch {
		case !remove[i]:
			// A line that goes on behind what is removed, or, without comments, the line of the bracket, is kept.
			if lineLead != nil && (!hasBreak(u.lead) || !hasBreak(*lineLead) && !hasComment(u.lead)) {
				u.lead = *lineLead
			}
			lineLead = nil
			kept = append(kept, u)
		case startsLine:
			lineLead = &units[i].lead
		case lineLead == nil && hasComment(u.tail[u.comma+1:]):
			last := &kept[len(kept)-1] // stands on the same line
			last.tail += u.tail[u.comma+1:]
		}
	}
	return kept
}

// newLead returns how new entries are set off: as the last one is, or as the brackets show.
func (e *editor) newLead(units []flowUnit, closing string) string {
	lead := e.r.comma[1:]
	switch k := len(units); {
	case k > 1:
		lead = units[k-1].lead
	case k == 1 && hasBreak(closing):
		lead = units[0].lead
	}
	if hasBreak(lead) {
		lead = e.r.eol + lastLine(lead)
	}
	return lead
}

// newUnits renders the entries to add.
func (e *editor) newUnits(p plan, lead string) []flowUnit {
	indent := oneLine
	if hasBreak(lead) {
		indent = lastLine(lead)
	}
	out := make([]flowUnit, len(p.values))
	for i, v := range p.values {
		text := e.r.flow(v, nil, indent)
		if p.keys != nil {
			text = e.r.key(p.keys[i], true) + e.r.colon + text
		}
		out[i] = flowUnit{lead: lead, start: -1, text: strings.ReplaceAll(text, "\n", e.r.eol), comma: -1}
	}
	return out
}

// flowIndent returns the indentation for an entry on a line of its own.
func (e *editor) flowIndent(n *yaml.Node, units []flowUnit) string {
	for _, u := range units {
		if hasBreak(u.lead) {
			return lastLine(u.lead)
		}
	}
	x, _ := e.doc.Extent(n) // flowUnits has asked before
	return e.lineIndent(x.Start) + spaces(e.r.unit)
}

// setComma makes the unit end with a comma, or without.
func (u *flowUnit) setComma(want bool, comma string) {
	switch {
	case want && u.comma < 0:
		u.tail, u.comma = comma+u.tail, len(comma)-1
	case !want && u.comma >= 0:
		u.tail, u.comma = u.tail[:u.comma]+u.tail[u.comma+1:], -1
		if !hasComment(u.tail) {
			u.tail = ""
		}
	}
}

// writeUnits records the edits around the entries that stay. Edits within those are recorded already.
func (e *editor) writeUnits(n *yaml.Node, units []flowUnit, open, closing string) bool {
	x, ok := e.doc.Extent(n)
	if !ok {
		return false
	}
	at, text := x.Start+1, open
	record := func(end int) {
		if text != string(e.data[at:end]) {
			e.edits = append(e.edits, edit{at, end, text}) // not add: the line breaks are those of the file
		}
	}
	for _, u := range units {
		text += u.lead
		if u.start < 0 {
			text += u.text + u.tail
			continue
		}
		record(u.start)
		at, text = u.end, u.tail
	}
	text += closing
	record(x.End - 1)
	return true
}
