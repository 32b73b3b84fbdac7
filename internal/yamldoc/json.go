package yamldoc

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseJSON reads JSON values that follow one another, each a Document of its own. JSON has a parser of its own because YAML cannot read
// all of it: "\ud83d\ude00" and keys over 1,024 characters are errors there, and two values in a row are too.
// notJSON says where the text ceases to be JSON: it may be YAML then. err is what else is wrong with it.
func parseJSON(src *source, p piece, limits Limits) (docs []*Document, notJSON *Error, err error) {
	j := &jsonParser{src: src, at: p.start, end: p.end, line: src.yamlLine(p.start), maxDepth: 10_000}
	if limits.MaxDepth > 0 {
		j.maxDepth = min(j.maxDepth, limits.MaxDepth)
	}
	for {
		j.space()
		if j.at >= j.end {
			return docs, nil, nil
		}
		if j.lineStart() && isMarker(src.data[j.at:j.end], "...") {
			if j.at += 3; contentStart(src.data[j.at:j.end]) < j.end-j.at {
				return nil, j.fail("unexpected text after ..."), nil
			}
			return docs, nil, nil
		}
		if len(docs) > 0 && src.data[j.at] == '#' && !isJSONFile(src.file) && contentStart(src.data[j.at:j.end]) == j.end-j.at {
			return docs, nil, nil
		}
		if c := src.data[j.at]; c != '{' && c != '[' {
			return nil, j.fail("unexpected %s after the JSON value", j.next()), nil
		}
		start := j.at
		root, notJSON := j.value(1)
		if j.tooDeep != nil {
			return nil, nil, j.tooDeep
		}
		if notJSON != nil {
			return nil, notJSON, nil
		}
		d := &Document{File: src.file, Root: root, src: src, start: start, end: j.at, json: true}
		if err := d.check(limits); err != nil {
			return nil, nil, err
		}
		docs = append(docs, d)
	}
}

type jsonParser struct {
	src      *source
	at, end  int
	line     int // of at, 1-based
	counted  int // up to where columns counts the characters of the line
	columns  int
	maxDepth int
	tooDeep  *Error
}

func (j *jsonParser) fail(format string, args ...any) *Error {
	return j.src.textError(j.at, "invalid JSON: "+format, args...)
}

// next describes the next character for error messages.
func (j *jsonParser) next() string {
	if j.at >= j.end {
		return "end of the file"
	}
	r, _ := utf8.DecodeRune(j.src.data[j.at:j.end])
	return strconv.QuoteRune(r)
}

func (j *jsonParser) peek() byte {
	if j.at < j.end {
		return j.src.data[j.at]
	}
	return 0
}

func (j *jsonParser) lineStart() bool { return j.at > 0 && isBreak(j.src.data[j.at-1]) }

func (j *jsonParser) space() {
	for j.at < j.end {
		switch j.src.data[j.at] {
		case ' ', '\t', '\r', '\n':
			j.at++
		default:
			return
		}
	}
}

// node makes a node at the current place.
func (j *jsonParser) node(kind yaml.Kind, tag string, style yaml.Style) *yaml.Node {
	for j.line < len(j.src.yamlLines) && j.src.yamlLines[j.line] <= j.at {
		j.line++
	}
	start := j.src.yamlLines[j.line-1]
	return &yaml.Node{Kind: kind, Tag: tag, Style: style, Line: j.line, Column: j.column(start) + 1}
}

// column counts the characters between the start of the line and the current place. Lines may be long: it goes on from where it was last.
func (j *jsonParser) column(lineStart int) int {
	if j.src.runes == nil {
		return j.at - lineStart
	}
	if j.counted < lineStart || j.counted > j.at {
		j.counted, j.columns = lineStart, 0
	}
	j.columns += countRunes(j.src.data[j.counted:j.at])
	j.counted = j.at
	return j.columns
}

func (j *jsonParser) value(depth int) (*yaml.Node, *Error) {
	switch c := j.peek(); {
	case (c == '{' || c == '[') && depth > j.maxDepth:
		j.tooDeep = j.src.textError(j.at, "exceeded max depth of %d", j.maxDepth)
		return nil, j.tooDeep
	case c == '{':
		return j.object(depth)
	case c == '[':
		return j.array(depth)
	case c == '"':
		return j.str()
	case c == '-' || c >= '0' && c <= '9':
		return j.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if end := j.at + len(word); end <= j.end && string(j.src.data[j.at:end]) == word {
			tag := tagBool
			if word == "null" {
				tag = tagNull
			}
			n := j.node(yaml.ScalarNode, tag, 0)
			n.Value = word
			j.at = end
			return n, nil
		}
	}
	return nil, j.fail("expected a value, found %s", j.next())
}

func (j *jsonParser) object(depth int) (*yaml.Node, *Error) {
	n := j.node(yaml.MappingNode, "!!map", yaml.FlowStyle)
	return n, j.elements(n, '}', func() *Error {
		if j.peek() != '"' {
			return j.fail("expected a quoted key, found %s", j.next())
		}
		k, err := j.str()
		if err != nil {
			return err
		}
		j.space()
		if j.peek() != ':' {
			return j.fail("expected ':' after the key, found %s", j.next())
		}
		j.at++
		j.space()
		v, err := j.value(depth + 1)
		n.Content = append(n.Content, k, v)
		return err
	})
}

func (j *jsonParser) array(depth int) (*yaml.Node, *Error) {
	n := j.node(yaml.SequenceNode, "!!seq", yaml.FlowStyle)
	return n, j.elements(n, ']', func() *Error {
		v, err := j.value(depth + 1)
		n.Content = append(n.Content, v)
		return err
	})
}

// elements reads what stands between brackets, up to and including the closing one.
func (j *jsonParser) elements(n *yaml.Node, closing byte, element func() *Error) *Error {
	j.at++
	j.space()
	if j.peek() == closing {
		j.at++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		j.space()
		switch j.peek() {
		case closing:
			j.at++
			return nil
		case ',':
			j.at++
			j.space()
		default:
			return j.fail("expected ',' or '%c', found %s", closing, j.next())
		}
	}
}

func (j *jsonParser) str() (*yaml.Node, *Error) {
	n := j.node(yaml.ScalarNode, tagStr, yaml.DoubleQuotedStyle)
	start, escaped := j.at, false
	for j.at++; ; j.at++ {
		c := j.peek()
		switch {
		case j.at >= j.end || c < 0x20:
			return nil, j.fail("unexpected %s in a string", j.next())
		case c == '\\':
			escaped = true
			j.at++
			continue
		case c != '"':
			continue
		}
		break
	}
	j.at++
	raw := j.src.data[start:j.at]
	n.Value = string(raw[1 : len(raw)-1])
	if escaped {
		if err := json.Unmarshal(raw, &n.Value); err != nil {
			j.at = start
			return nil, j.fail("%v", err)
		}
	}
	return n, nil
}

func (j *jsonParser) number() (*yaml.Node, *Error) {
	n := j.node(yaml.ScalarNode, tagInt, 0)
	start := j.at
	for j.at < j.end {
		c := j.src.data[j.at]
		if c == '.' || c == 'e' || c == 'E' {
			n.Tag = tagFloat
		} else if c != '-' && c != '+' && (c < '0' || c > '9') {
			break
		}
		j.at++
	}
	n.Value = string(j.src.data[start:j.at])
	if err := validNumber(n.Value); err != nil {
		j.at = start
		return nil, j.fail("%v", err)
	}
	return n, nil
}

func validNumber(s string) error {
	if !json.Valid([]byte(s)) {
		return fmt.Errorf("%s is not a number", s)
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return fmt.Errorf("number %s is out of range", s)
	}
	return nil
}
