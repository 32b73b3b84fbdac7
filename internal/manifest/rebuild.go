package manifest

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// rebuild writes the whole document anew, with the accepted changes and that of o: the last resort where edits do not parse back to the wanted
// value, mostly because anchors tie what changes to what does not. Aliases are written out. Comments are kept as far as yaml.v3 keeps them.
func (w *writer) rebuild(o *Object) ([]byte, bool) {
	want := w.wanted(append(slices.Clip(w.accepted), change{o, rebuilt}))
	start, end := w.doc.source.Span()
	piece := w.data[start:end]
	r := newRenderer(w.doc.source, w.data)
	if r.json {
		text := []byte(r.flow(want, nil, ""))
		return text, holds(text, want)
	}
	b := rebuilder{r: r}
	root := b.node(w.doc.source.Root, w.doc.value, want)
	body, ok := b.encode(root)
	text := append(slices.Clip(marker(piece)), strings.ReplaceAll(body, "\n", r.eol)...)
	return text, ok && holds(text, want)
}

// marker returns the directives and the document marker that a document starts with.
func marker(piece []byte) []byte {
	at := 0
	for at < len(piece) {
		end := len(piece)
		if i := bytes.IndexByte(piece[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := piece[at:end]
		if bytes.HasPrefix(line, []byte("---")) {
			return append(bytes.TrimRight(slices.Clone(piece[:at+3]), "\r\n"), '\n')
		}
		if line[0] != '%' && line[0] != '#' && len(bytes.TrimSpace(line)) > 0 {
			return nil
		}
		at = end
	}
	return nil
}

type rebuilder struct{ r renderer }

func (b rebuilder) encode(n *yaml.Node) (string, bool) {
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(max(b.r.unit, 2))
	if b.r.dashes == 0 {
		enc.CompactSeqIndent()
	}
	err := enc.Encode(n)
	return out.String(), err == nil && enc.Close() == nil
}

// block is renderer.block for a value that a node of the document holds in part.
func (b rebuilder) block(n *yaml.Node, old, want any, s slot) (string, bool) {
	root := b.node(n, old, want)
	root.HeadComment, root.LineComment, root.FootComment = "", "", "" // they stand around the block, not in it
	text, ok := b.encode(root)
	if !ok {
		return "", false
	}
	indent, start := s.indent+b.r.unit, ""
	switch {
	case s.kind == listSlot:
		indent, start = s.indent+2, " "
	case n.Kind == yaml.SequenceNode:
		indent = s.indent + b.r.dashes
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" && (i > 0 || start == "") {
			lines[i] = spaces(indent) + line
		}
	}
	if start == "" {
		start = "\n"
	}
	return start + strings.Join(lines, "\n"), true
}

// node returns a tree without anchors and aliases that holds want, made of the nodes of n where they have equal values.
func (b rebuilder) node(n *yaml.Node, old, want any) *yaml.Node {
	comments := n
	n = yamldoc.Resolve(n)
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	switch w := want.(type) {
	case map[string]any:
		o, _ := old.(map[string]any)
		if n.Kind != yaml.MappingNode {
			n = &yaml.Node{}
		}
		out = b.mapping(n, o, w)
	case []any:
		o, _ := old.([]any)
		out = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: n.Style & yaml.FlowStyle}
		for i, e := range w {
			if n.Kind == yaml.SequenceNode && i < len(n.Content) && i < len(o) {
				out.Content = append(out.Content, b.node(n.Content[i], o[i], e))
			} else {
				out.Content = append(out.Content, b.fresh(e))
			}
		}
	default:
		if n.Kind != yaml.ScalarNode || !jsonvalue.Equal(old, want) {
			out = b.fresh(want)
		}
	}
	out.HeadComment, out.LineComment, out.FootComment = comments.HeadComment, comments.LineComment, comments.FootComment
	return out
}

func (b rebuilder) mapping(n *yaml.Node, old, want map[string]any) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: n.Style & yaml.FlowStyle}
	done := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		name, err := yamldoc.KeyString(k)
		if w, ok := want[name]; ok && err == nil && !yamldoc.IsMerge(k) {
			key := b.fresh(name)
			if r := yamldoc.Resolve(k); yamldoc.IsString(r) {
				key.Style, key.Value = r.Style&^yaml.TaggedStyle, r.Value
			}
			key.HeadComment, key.LineComment, key.FootComment = k.HeadComment, k.LineComment, k.FootComment
			out.Content = append(out.Content, key, b.node(n.Content[i+1], old[name], w))
			done[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !done[name] {
			out.Content = append(out.Content, b.fresh(name), b.fresh(want[name]))
		}
	}
	return out
}

// fresh returns nodes for a new value.
func (b rebuilder) fresh(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		return b.mapping(&yaml.Node{}, nil, v)
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, e := range v {
			out.Content = append(out.Content, b.fresh(e))
		}
		return out
	case string:
		out := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if strings.Contains(v, "\n") {
			if _, ok := literalBlock(v, 2); ok {
				out.Style = yaml.LiteralStyle
				return out
			}
		}
		if !plainSafe(v, true) {
			out.Style = yaml.DoubleQuotedStyle
		}
		return out
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: b.r.flow(v, nil, oneLine)}
}
