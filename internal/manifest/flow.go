package manifest

import (
	"bytes"
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
	endsInComma := p.count > 0 && units[p.count-1].comma >= 0
	added := e.newUnits(n, p, units, open, closing)
	kept := keepUnits(units, p)
	at := 0
	for at < len(kept) && kept[at].start <= units[max(p.keptBefore(p.at), 0)].start && p.keptBefore(p.at) >= 0 {
		at++
	}
	if len(added) > 0 {
		if at == 0 && len(kept) > 0 {
			// What was first comes second now; the comments above it stay there.
			first := &kept[0]
			if hasBreak(first.lead) {
				added[0].lead = e.r.eol + lastLine(first.lead)
			} else {
				first.lead, added[0].lead = added[0].lead, first.lead
			}
		}
		kept = append(kept[:at:at], append(added, kept[at:]...)...)
	}
	for i := range kept {
		kept[i].setComma(i < len(kept)-1 || endsInComma)
	}
	return e.joinUnits(n, kept, open, closing)
}

// keepUnits leaves out the units that are removed. Where a line is shared with entries that stay, its indentation and its comment stay.
func keepUnits(units []flowUnit, p plan) []flowUnit {
	var kept []flowUnit
	removedLead, removed := "", false // the lead that the next unit may need
	for i, u := range units {
		if !p.remove[i] {
			switch {
			case !removed:
			case len(kept) == 0 && hasComment(removedLead): // a headline of the whole, perhaps
				if hasBreak(u.lead) {
					removedLead = strings.TrimRight(removedLead, " \t\r\n")
					u.lead = removedLead + u.lead
				} else {
					u.lead = removedLead
				}
			case len(kept) == 0 && !hasComment(u.lead), hasBreak(removedLead) && !hasBreak(u.lead):
				u.lead = removedLead
			}
			kept, removed = append(kept, u), false
			continue
		}
		if !removed || hasBreak(u.lead) && len(kept) > 0 || hasBreak(u.lead) && !hasComment(removedLead) && hasBreak(removedLead) {
			removedLead = u.lead
		}
		removed = true
		if c := u.comment(); c != "" && len(kept) > 0 && !hasBreak(u.lead) && !hasComment(kept[len(kept)-1].tail) && kept[len(kept)-1].end >= 0 && p.keptBefore(i) == i-1 {
			kept[len(kept)-1].tail += c
		}
	}
	return kept
}

// comment returns the comment on the line where the unit ends, with the blanks before it.
func (u *flowUnit) comment() string {
	rest := u.tail[u.comma+1:]
	if hasComment(rest) {
		return rest
	}
	return ""
}
