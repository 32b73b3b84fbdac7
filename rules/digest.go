package rules

import (
	"crypto/sha256"

	"go.yaml.in/yaml/v3"
)

// digest stands for what a YAML node says. Comments, layout and the place in the
// file are no part of it, nor is whether something was written out or is an
// alias.
type digest [sha256.Size]byte

// digestOf takes time in proportion to the text, however often its anchors are
// used.
func digestOf(n *yaml.Node) digest { return digester{}.node(n) }

// digester has the digests of nodes that aliases lead to.
type digester map[*yaml.Node]digest

func (d digester) node(n *yaml.Node) digest {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if known, ok := d[n]; ok {
		return known
	}
	h := sha256.New()
	h.Write([]byte(n.Tag)) // the parser gives one to all: !!map, !!seq, !!str …
	h.Write([]byte{0})
	if n.Kind == yaml.ScalarNode {
		h.Write([]byte{byte(n.Style & readStyles)})
		h.Write([]byte(n.Value))
	}
	for _, c := range n.Content {
		of := d.node(c)
		h.Write(of[:])
	}
	out := digest(h.Sum(nil))
	if n.Anchor != "" {
		d[n] = out
	}
	return out
}

// readStyles decide what a scalar is: y is a bool, and "y" is not.
const readStyles = yaml.TaggedStyle | yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
