package yamldoc

import "bytes"

// cutter finds the end of the chunk that a buffer starts with. It remembers how far it has come, so that nothing is looked at twice when there
// is more data. Offsets count from the start of the chunk.
type cutter struct {
	phase    phase
	midLine  bool // the chunk does not start at the start of a line
	dropped  bool // so do bytes that are no longer there
	line     int  // start of the line that is looked at
	searched int  // up to where its end has been looked for
	blank    int  // up to where it is known to hold nothing but spaces
	json     jsonScan
	list     listCut
}

type phase int

const (
	inLead phase = iota // before the content
	inJSON
	inYAML
	inJSONList // before an item or the tail of a JSON list
)

// cut returns the length of the chunk that data starts with, or 0 if its end is not there yet. final says that nothing comes after data.
func (c *cutter) cut(data []byte, final bool) int {
	for {
		if c.phase == inJSONList && !c.listPart(data) && !final {
			return 0
		}
		if c.phase == inJSON {
			switch state := c.json.scan(data); {
			case c.json.ended && c.list.part == Whole && !c.list.refused:
				c.list.candidate, c.list.json, c.list.first, c.list.second = true, true, c.json.list, c.json.item
				return c.json.at
			case c.json.ended:
				continue
			case state == jsonDone:
				if c.list.part == ListItem {
					c.list.then = ListItem
				}
				return c.json.at
			case state == jsonMore && !final:
				return 0
			}
			c.phase = inYAML
		}
		n, more := c.cutLine(data, final)
		if n > 0 || !more {
			return n
		}
	}
}

// listPart finds out whether an item or the tail comes next in a JSON list. What is neither goes on up to the next marker, and does not parse. False: it
// cannot be told yet.
func (c *cutter) listPart(data []byte) bool {
	for ; c.searched < len(data); c.searched++ {
		switch data[c.searched] {
		case ' ', '\t', '\r', '\n':
			continue
		case ',':
			if c.list.comma == commaDue {
				c.list.comma = commaSeen
				continue
			}
		case '{':
			if c.list.comma != commaDue {
				c.phase, c.json.at = inJSON, c.searched
				return true
			}
		case ']':
			if c.list.comma == commaDue {
				c.list.part, c.phase = ListTail, inJSON
				c.json = jsonScan{at: c.searched + 1, open: []byte("{"), want: comma}
				return true
			}
		}
		c.phase = inYAML
		return true
	}
	return false
}

// cutLine looks at the next line, and returns the length of the chunk if it ends before or behind it. more is false if there is no
// further line to look at.
func (c *cutter) cutLine(data []byte, final bool) (n int, more bool) {
	line := data[c.line:]
	if len(line) == 0 || len(line) <= len(utf8BOM)+len("---") && !final {
		return 0, false
	}
	dots := false
	content := 0 // where the line may have content
	if c.line > 0 || !c.midLine {
		mark := 0
		if bytes.HasPrefix(line, utf8BOM) {
			mark = len(utf8BOM) // files with a byte-order mark, put together
		}
		switch {
		case isMarker(line[mark:], "---"):
			if c.line > 0 && (c.dropped || !onlyDirectives(data[:c.line])) {
				return c.line, true
			}
			content = mark + len("---")
		case isMarker(line[mark:], "..."):
			dots = true
		case c.line == 0:
			content = mark
		}
	}
	if c.phase == inLead && !dots {
		content = max(content, c.blank-c.line)
		if !c.lead(line[content:], c.line+content, final) {
			c.blank = len(data)
			return 0, false
		}
		if c.phase == inJSON {
			return 0, true
		}
	}
	end, ok := c.lineEnd(data, final)
	if !ok {
		return 0, false
	}
	if c.phase == inYAML && c.list.line(c.line, data[c.line:end]) {
		return c.line, true
	}
	c.line, c.searched = end, end
	if dots {
		return end, true
	}
	return 0, true
}

// lead looks for the start of the content in a line. False: it cannot be told yet.
func (c *cutter) lead(line []byte, offset int, final bool) bool {
	text := bytes.TrimLeft(line, " \t")
	if len(text) == 0 {
		return final
	}
	switch text[0] {
	case '\r', '\n', '#':
	case '{', '[':
		c.phase = inJSON
		c.json.at = offset + len(line) - len(text)
	default:
		c.phase = inYAML
	}
	return true
}

// lineEnd returns the start of the next line. False: it is not there yet.
func (c *cutter) lineEnd(data []byte, final bool) (int, bool) {
	rest := data[c.searched:]
	i := bytes.IndexByte(rest, '\n')
	if i >= 0 {
		rest = rest[:i]
	}
	if j := bytes.IndexByte(rest, '\r'); j >= 0 && j != i-1 {
		if i < 0 && j == len(rest)-1 && !final {
			c.searched += j
			return 0, false // \n may follow
		}
		return c.searched + j + 1, true
	}
	if i < 0 {
		c.searched = len(data)
		return len(data), final
	}
	return c.searched + i + 1, true
}

// known returns the number of bytes of which it is known that they belong to the chunk.
func (c *cutter) known() int {
	switch {
	case c.phase == inJSON:
		return c.json.at
	case c.line > 0:
		return c.line
	}
	return c.searched
}

// shift forgets n known bytes.
func (c *cutter) shift(n int) {
	c.midLine = c.midLine && c.line == 0 || n > c.line
	c.dropped = true
	c.line = max(c.line-n, 0)
	c.searched = max(c.searched-n, 0)
	c.json.at -= n
}
