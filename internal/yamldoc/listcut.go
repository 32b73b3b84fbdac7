package yamldoc

import "bytes"

// listCut finds the items of a list that is laid out as kubectl does it:
//
//	apiVersion: v1
//	items:
//	- apiVersion: apps/v1
//	  kind: Deployment
//	- …
//	kind: List
//
// It looks at the starts of lines only. That is not enough to know YAML, where quoted strings and brackets may go on at any column; but an item
// that was cut within one of those does not parse. One that parses ends where the next line is indented no deeper than its dash.
type listCut struct {
	part Part // what the chunk is that is being cut
	then Part // what the next one is

	// Within a whole document: what has been seen of a list in it.
	seen          listSigns
	first, second int // where its first two items start
	candidate     bool
	asked         int // where it was the last time
	refused       bool

	dash  int  // the column of the dashes
	json  bool // it has none: it is JSON
	comma commaState
}

// commaState tells about the comma before an item of a JSON list.
type commaState int

const (
	noComma commaState = iota // it is the first item
	commaDue
	commaSeen
)

type listSigns int

const (
	noList listSigns = iota
	itemsKey
	oneItem
	twoItems
)

// line looks at a line, which starts at an offset. It reports whether the chunk ends before it: at the next item, or behind the last. A whole document
// ends at an item as soon as it is a candidate for being split.
func (l *listCut) line(at int, line []byte) bool {
	text := bytes.TrimLeft(line, " ")
	if l.json || len(text) == 0 || isBreak(text[0]) || text[0] == '#' {
		return false
	}
	indent := len(line) - len(text)
	isItem := text[0] == '-' && (len(text) == 1 || isBlank(text[1]) || isBreak(text[1]))
	switch {
	case l.part == ListItem && at > 0 && indent == l.dash && isItem:
		l.then = ListItem
		return true
	case l.part == ListItem && at > 0 && indent <= l.dash:
		l.then = ListTail
		return true
	case l.part == Whole && !l.refused:
		l.look(at, line, indent, isItem)
		return l.candidate
	}
	return false
}

// look looks for a list in a whole document.
func (l *listCut) look(at int, line []byte, indent int, isItem bool) {
	switch {
	case l.seen == noList && isItemsKey(line):
		l.seen = itemsKey
	case l.seen == itemsKey && isItem:
		l.seen, l.first, l.dash = oneItem, at, indent
	case l.seen == itemsKey:
		l.seen = noList
	case l.seen >= oneItem && isItem && indent == l.dash:
		if l.seen == oneItem {
			l.seen, l.second = twoItems, at
		}
		l.candidate, l.asked = at > l.asked, at
	}
}

// isItemsKey reports whether a line is the key items of the document's mapping, with its value below.
func isItemsKey(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("items:"))
	if !ok {
		return false
	}
	rest = bytes.TrimLeft(rest, " \t")
	return len(rest) == 0 || isBreak(rest[0]) || rest[0] == '#'
}
