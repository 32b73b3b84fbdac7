package yamldoc

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// check holds the document to what callers rely on afterwards: bounded depth, aliases that expand to a bounded size and never into
// themselves, keys that are unique once converted, merge keys that merge mappings.
func (d *Document) check(limits Limits) error {
	c := checker{doc: d, maxDepth: limits.MaxDepth}
	all, err := c.walk(d.Root, 1)
	if err != nil {
		return err
	}
	d.misread = c.misread
	if c.lastAlias != nil && all.size > 1000 && float64(all.size-c.nodes) > allowedAliasShare(all.size)*float64(all.size) {
		return d.errorAt(c.lastAlias, "document contains excessive aliasing")
	}
	return nil
}

func (d *Document) errorAt(n *yaml.Node, format string, args ...any) *Error {
	return &Error{Pos: d.Pos(n), Msg: fmt.Sprintf(format, args...)}
}

// allowedAliasShare is the part of an expanded document that may come from aliases: nearly all of a small one, a tenth of a large one. These are
// the bounds of go-yaml, which the API server itself applies.
func allowedAliasShare(size int) float64 {
	const low, high = 400_000, 4_000_000
	switch {
	case size <= low:
		return 0.99
	case size >= high:
		return 0.10
	}
	return 0.99 - 0.89*float64(size-low)/float64(high-low)
}

// extent is the size of a node with all below it, aliases expanded; size saturates.
type extent struct{ size, height int }

const maxSize = 1 << 40

type checker struct {
	doc       *Document
	maxDepth  int
	nodes     int
	lastAlias *yaml.Node
	anchors   map[*yaml.Node]extent // of anchored nodes; height -1 while one is being walked
	misread   []*yaml.Node
}

func (c *checker) walk(n *yaml.Node, depth int) (extent, error) {
	c.nodes++
	if n.Kind == yaml.AliasNode {
		return c.alias(n, depth)
	}
	if n.Kind == yaml.ScalarNode {
		return c.done(n, extent{size: 1})
	}
	if err := c.deep(n, depth); err != nil {
		return extent{}, err
	}
	if n.Anchor != "" {
		if c.anchors == nil {
			c.anchors = map[*yaml.Node]extent{}
		}
		c.anchors[n] = extent{height: -1}
	}
	if n.Kind == yaml.MappingNode {
		if err := c.keys(n); err != nil {
			return extent{}, err
		}
	}
	sum := extent{size: 1}
	for _, child := range n.Content {
		e, err := c.walk(child, depth+1)
		if err != nil {
			return extent{}, err
		}
		sum.size = min(sum.size+e.size, maxSize)
		sum.height = max(sum.height, e.height)
	}
	sum.height++
	return c.done(n, sum)
}

func (c *checker) done(n *yaml.Node, e extent) (extent, error) {
	if n.Anchor != "" {
		if c.anchors == nil {
			c.anchors = map[*yaml.Node]extent{}
		}
		c.anchors[n] = e
	}
	return e, nil
}

func (c *checker) deep(n *yaml.Node, depth int) error {
	if c.maxDepth > 0 && depth > c.maxDepth {
		return c.doc.errorAt(n, "exceeded max depth of %d", c.maxDepth)
	}
	return nil
}

func (c *checker) alias(n *yaml.Node, depth int) (extent, error) {
	c.lastAlias = n
	e, known := c.anchors[n.Alias]
	switch {
	case !known:
		return extent{}, c.doc.errorAt(n, "unknown anchor %q in this document", n.Value)
	case e.height < 0:
		return extent{}, c.doc.errorAt(n, "anchor %q contains itself", n.Value)
	}
	if err := c.deep(n, depth+e.height-1); err != nil {
		return extent{}, err
	}
	return e, nil
}

// keys refuses keys that convert to the same string, and merge keys without a mapping. YAML 1.1 makes "true" of both y and on, and
// the cluster would get one of the two.
func (c *checker) keys(n *yaml.Node) error {
	var buf [16]string
	names := buf[:0]
	var seen map[string]int
	if len(n.Content) > 2*len(buf) {
		seen = make(map[string]int, len(n.Content)/2)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		name, err := keyName(k)
		if err != nil {
			return c.doc.errorAt(k, "%v", err)
		}
		if k.Kind == yaml.ScalarNode && name != k.Value && k.Style&(quotedStyles|yaml.TaggedStyle) == 0 {
			c.misread = append(c.misread, k)
		}
		if isMerge(k) {
			if err := c.mergeValue(k, n.Content[i+1]); err != nil {
				return err
			}
			name = "\x00<<" // not the same as the quoted key "<<"
		}
		first := -1
		if seen != nil {
			if j, ok := seen[name]; ok {
				first = j
			} else {
				seen[name] = i
			}
		} else {
			for j, other := range names {
				if other == name {
					first = 2 * j
					break
				}
			}
			names = append(names, name)
		}
		if first >= 0 {
			return c.duplicate(n.Content[first], k, name)
		}
	}
	return nil
}

func (c *checker) duplicate(first, second *yaml.Node, name string) error {
	a, b := Resolve(first).Value, Resolve(second).Value
	if a == b {
		return c.doc.errorAt(second, "duplicate key %q (first on line %d)", b, c.doc.Pos(first).Line)
	}
	return c.doc.errorAt(second, "duplicate key: %s and %s (line %d) both mean %q in YAML 1.1; quote them if they are meant as strings",
		b, a, c.doc.Pos(first).Line, name)
}

func (c *checker) mergeValue(k, v *yaml.Node) error {
	if r := Resolve(v); r == nil || r.Kind != yaml.MappingNode && r.Kind != yaml.SequenceNode {
		return c.doc.errorAt(k, "a merge key needs a mapping or a list of mappings")
	}
	for _, s := range mergeSources(v) {
		if r := Resolve(s); r == nil || r.Kind != yaml.MappingNode {
			return c.doc.errorAt(s, "a merge key needs a mapping or a list of mappings")
		}
	}
	return nil
}
