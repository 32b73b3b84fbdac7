package objectdiff

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

var utf8BOM = []byte("\xef\xbb\xbf")

// Manifest returns the text of a manifest with hidden values replaced, each on as
// many lines as before. masks are for its objects, in their order; nil for those
// that hide nothing. An error means that it cannot be told where a value stands:
// the text must not be shown then. It holds nothing of the text.
func Manifest(name string, text []byte, masks []*Mask) ([]byte, error) {
	if !slices.ContainsFunc(masks, func(m *Mask) bool { return m != nil }) {
		return text, nil
	}
	file, err := manifest.Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("read %s again: it is not as it was", name)
	}
	docs, err := yamldoc.Parse(name, text, yamldoc.ManifestLimits)
	if err != nil || len(file.Objects()) != len(masks) {
		return nil, fmt.Errorf("read %s again: it is not as it was", name)
	}
	body := bytes.TrimPrefix(text, utf8BOM)
	c := &cover{body: body, masks: map[yamldoc.Position]objectMask{}}
	for i, o := range file.Objects() {
		if masks[i] != nil {
			c.masks[o.Position()] = objectMask{masks[i], o.Value()}
		}
	}
	var pieces []piece
	for _, doc := range docs {
		found, err := c.document(doc)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, found...)
	}
	out := bytes.NewBuffer(slices.Clone(text[:len(text)-len(body)]))
	at := 0
	for _, p := range pieces {
		out.Write(body[at:p.start])
		out.WriteString(p.text)
		at = p.end
	}
	out.Write(body[at:])
	return out.Bytes(), nil
}

type objectMask struct {
	*Mask
	object map[string]any
}

// piece is a byte range and what is shown in its place.
type piece struct {
	start, end int
	text       string
}

// cover finds what has to be replaced.
type cover struct {
	body  []byte
	masks map[yamldoc.Position]objectMask // where masked objects start

	doc     *yamldoc.Document
	pieces  []piece
	scalars []piece // all of the document: where no comment can be
	seen    map[*yaml.Node]bool
	found   bool // a masked object in this document
	err     error
}

// document returns the pieces of a document, in order.
func (c *cover) document(doc *yamldoc.Document) ([]piece, error) {
	c.doc, c.pieces, c.scalars, c.found, c.seen = doc, nil, nil, false, map[*yaml.Node]bool{}
	c.walk(doc.Root, nil, nil)
	if !c.found {
		return nil, nil // also where an extent could not be told
	}
	if c.err != nil {
		return nil, c.err
	}
	if !doc.IsJSON() {
		c.comments()
	}
	slices.SortFunc(c.pieces, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
	return c.pieces, nil
}

// walk goes through a node that is at a path of an object under a mask; nil: it
// is in none.
func (c *cover) walk(n *yaml.Node, mask *objectMask, path []string) {
	if m, ok := c.masks[c.doc.Pos(n)]; ok && mask == nil && yamldoc.Resolve(n).Kind == yaml.MappingNode {
		mask, path, c.found = &m, nil, true
	}
	switch n.Kind {
	case yaml.AliasNode:
		if mask != nil {
			c.walk(n.Alias, mask, path)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			c.scalar(key, nil, nil)
			if yamldoc.IsMerge(key) {
				c.merge(value, mask, path)
				continue
			}
			name, err := yamldoc.KeyString(key)
			if err != nil {
				c.err = fmt.Errorf("the key at %s cannot be told", c.doc.Pos(key))
			}
			c.walk(value, mask, append(path[:len(path):len(path)], name))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			c.walk(item, mask, append(path[:len(path):len(path)], strconv.Itoa(i)))
		}
	case yaml.ScalarNode:
		c.scalar(n, mask, path)
	}
}

// merge goes through what a merge key brings in: as if it stood there.
func (c *cover) merge(value *yaml.Node, mask *objectMask, path []string) {
	value = yamldoc.Resolve(value)
	if value.Kind != yaml.SequenceNode {
		c.walk(value, mask, path)
		return
	}
	for _, item := range value.Content {
		c.walk(yamldoc.Resolve(item), mask, path)
	}
}

// scalar notes where a scalar stands, and what stands for it if it is hidden. One
// that is reached in several ways is hidden if it is in one of them.
func (c *cover) scalar(n *yaml.Node, mask *objectMask, path []string) {
	if n.Kind != yaml.ScalarNode || c.seen[n] {
		return
	}
	extent, ok := c.doc.Extent(n)
	if !ok {
		c.err = fmt.Errorf("it cannot be told where the value at %s ends", c.doc.Pos(n))
		return
	}
	value := any(n.Value) // also where another key overrides it
	if mask != nil {
		if found, ok := patch.Find(mask.object, path); ok {
			value = found
		}
	}
	if mask == nil || !mask.hides(path, value) && !mask.hides(path, n.Value) || extent.Start == extent.End {
		c.scalars = append(c.scalars, piece{start: extent.Outer, end: extent.End})
		return
	}
	c.seen[n] = true
	p := piece{extent.Start, extent.End, mask.text(value, path)}
	if c.doc.IsJSON() {
		p.text = strconv.Quote(p.text)
	}
	p.text += linesOf(c.body[extent.Start:extent.End])
	c.pieces = append(c.pieces, p)
	c.scalars = append(c.scalars, piece{start: extent.Outer, end: extent.End})
}

// linesOf stands for the lines of a value after its first.
func linesOf(value []byte) string {
	var b bytes.Buffer
	for _, line := range bytes.SplitAfter(value, []byte("\n"))[1:] {
		b.WriteString("\n")
		b.Write(line[:len(line)-len(bytes.TrimLeft(line, " "))])
		b.WriteString("***")
	}
	return b.String()
}

// comments hides all comments of the document: nobody knows what they quote.
func (c *cover) comments() {
	slices.SortFunc(c.scalars, func(a, b piece) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	start, end := c.doc.Span()
	within := c.scalars
	for at := start; at < end; at++ {
		for len(within) > 0 && within[0].end <= at {
			within = within[1:]
		}
		if len(within) > 0 && at >= within[0].start {
			at = within[0].end - 1
			continue
		}
		if c.body[at] != '#' || at > 0 && !bytes.ContainsRune([]byte(" \t\r\n"), rune(c.body[at-1])) {
			continue
		}
		stop := at
		for stop < end && c.body[stop] != '\n' && c.body[stop] != '\r' {
			stop++
		}
		c.pieces = append(c.pieces, piece{at, stop, "# ***"})
		at = stop
	}
}
