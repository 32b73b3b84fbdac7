package importer

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// text is a string of the input with its place; node is nil where it is absent.
type text struct {
	value string
	node  *yaml.Node
}

// reader reads one policy or binding and collects what there is to say of it.
type reader struct {
	im      *importer
	doc     *yamldoc.Document
	node    *yaml.Node
	subject string // kind and name
	lost    bool   // no rule can be made of it
	dropped bool   // a part of it is lost
}

func (r *reader) report(s Severity, pos yamldoc.Position, format string, args ...any) {
	r.im.result.Findings = append(r.im.result.Findings, Finding{
		Severity: s, Pos: pos, Policy: r.subject, Msg: fmt.Sprintf(format, args...), Line: r.doc.Line(pos.Line),
	})
}

// lose reports something without which no rule can be made.
func (r *reader) lose(n *yaml.Node, format string, args ...any) {
	r.lost = true
	r.report(Lost, r.doc.Pos(n), format, args...)
}

// loseIn is lose at a byte offset within a string.
func (r *reader) loseIn(t text, offset int, format string, args ...any) {
	r.lost = true
	r.report(Lost, r.doc.PosIn(t.node, offset), format, args...)
}

// drop reports a part that is lost while the rest is carried over.
func (r *reader) drop(n *yaml.Node, format string, args ...any) {
	r.dropped = true
	r.report(Lost, r.doc.Pos(n), format, args...)
}

func (r *reader) note(n *yaml.Node, format string, args ...any) {
	r.report(Note, r.doc.Pos(n), format, args...)
}

// version checks the version part of an apiVersion.
func (r *reader) version(apiVersion string, known ...string) bool {
	_, v, _ := strings.Cut(apiVersion, "/")
	if slices.Contains(known, v) {
		return true
	}
	_, n := yamldoc.Field(r.node, "apiVersion")
	r.lose(n, "the version %s is not known: only %s are", v, strings.Join(known, ", "))
	return false
}

// fields hands the members of a mapping to their readers. What is null is
// absent, as for the API server; what is unknown is lost.
func (r *reader) fields(n *yaml.Node, at string, known map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.lose(n, "%s must be a mapping", at)
		return
	}
	for _, m := range members(n) {
		read, ok := known[m.name]
		switch {
		case !ok:
			r.lose(m.key, "unknown field %q in %s", m.name, at)
		case isNull(m.value):
		default:
			read(m.value)
		}
	}
}

func (r *reader) text(n *yaml.Node, at string, into *text) {
	if !yamldoc.IsString(n) {
		r.lose(n, "%s must be a string", at)
		return
	}
	*into = text{n.Value, n}
}

func (r *reader) texts(n *yaml.Node, at string, into *[]text) {
	for _, item := range r.list(n, at) {
		var t text
		if r.text(item, at, &t); t.node != nil {
			*into = append(*into, t)
		}
	}
}

func (r *reader) list(n *yaml.Node, at string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.lose(n, "%s must be a list", at)
		return nil
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		out[i] = yamldoc.Resolve(item)
	}
	return out
}

// metadata reads the name, and the description that people put into an
// annotation. The rest of metadata does not take part in admission.
func (r *reader) metadata(n *yaml.Node, name, description *text) {
	if _, v := yamldoc.Field(n, "name"); v != nil && !isNull(v) {
		r.text(v, "metadata.name", name)
		r.subject += " " + name.value
	}
	_, annotations := yamldoc.Field(n, "annotations")
	for _, key := range []string{"kubernetes.io/description", "policies.kyverno.io/description"} {
		if _, v := yamldoc.Field(annotations, key); v != nil && yamldoc.IsString(v) && description != nil {
			*description = text{v.Value, v}
		}
	}
}

type member struct {
	key   *yaml.Node
	name  string // what the key becomes: y is "true"
	value *yaml.Node
}

// members lists a mapping's entries with merge keys (<<) expanded; an explicit
// entry wins over a merged one.
func members(n *yaml.Node) []member {
	var out []member
	add := func(m member) {
		if !slices.ContainsFunc(out, func(o member) bool { return o.name == m.name }) {
			out = append(out, m)
		}
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], yamldoc.Resolve(n.Content[i+1])
		switch name, err := yamldoc.KeyString(k); {
		case yamldoc.IsMerge(k) && v.Kind == yaml.SequenceNode:
			merged = append(merged, v.Content...)
		case yamldoc.IsMerge(k):
			merged = append(merged, v)
		case err != nil: // a key that is no scalar
			add(member{k, k.Value, v})
		default:
			add(member{k, name, v})
		}
	}
	for _, from := range merged {
		for _, m := range members(yamldoc.Resolve(from)) {
			add(m)
		}
	}
	return out
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func scalarField(n *yaml.Node, name string) string {
	if _, v := yamldoc.Field(n, name); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}
