package rules

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// writeFinder collects what the patches of a rule can change.
type writeFinder struct {
	doc     *yamldoc.Document
	current Write // Patch, Subresource, Kind
	makes   *maker
	found   []*Write
	taken   []*fieldset.Set // by patch: what its operations copy or move
	tested  []*fieldset.Set // by patch: what they test
}

// findWrites is called when the patches have compiled.
func (d *decoder) findWrites(s spec) writeFinder {
	all := s.Patches
	if s.Patch != nil {
		all = []patchSpec{*s.Patch}
	}
	f := writeFinder{doc: d.doc, makes: newMaker(d.expressions)}
	for i, p := range all {
		f.current = Write{Patch: i}
		f.makes.taken, f.makes.tested = nil, nil
		if p.Subresource != nil {
			f.current.Subresource = p.Subresource.value
		}
		switch {
		case p.Merge != nil:
			f.current.Kind = KindMerge
			f.partial(yamldoc.Resolve(p.Merge.node), p.Merge.node, spot{})
		case p.ApplyConfiguration != nil:
			f.current.Kind = KindApplyConfiguration
			f.partial(yamldoc.Resolve(p.ApplyConfiguration.node), p.ApplyConfiguration.node, spot{})
		case p.JSON != nil:
			f.current.Kind = KindJSON
			f.json(yamldoc.Resolve(p.JSON.node))
		}
		f.taken = append(f.taken, fieldsAt(f.makes.taken))
		f.tested = append(f.tested, fieldsAt(f.makes.tested))
	}
	return f
}

// fieldsAt are the fields at and below some spots.
func fieldsAt(spots []spot) *fieldset.Set {
	fields := fieldset.Empty()
	for _, s := range spots {
		fields = fields.Union(fieldset.Of(s.path...))
	}
	return fields
}

// spot is where something is written: Write.Path and Write.Within.
type spot struct{ path, within []string }

// at is the spot one key further down; * is any element of a list.
func (s spot) at(key string) spot {
	if s.within != nil || key == fieldset.Elem {
		return spot{s.path, extend(s.within, key)}
	}
	return spot{extend(s.path, key), nil}
}

// add notes a place; w says what is more to say of it.
func (f *writeFinder) add(at spot, pos yamldoc.Position, w Write) {
	w.Patch, w.Subresource, w.Kind = f.current.Patch, f.current.Subresource, f.current.Kind
	w.Path, w.Within, w.Pos = at.path, at.within, pos
	if at.within != nil {
		w.Exact, w.Constant, w.Removes, w.Value, w.ensures = false, false, false, nil, false
	}
	f.found = append(f.found, &w)
}

// partial is a merge patch or a configuration, or a part of one; key is what
// stands for it in the file.
func (f *writeFinder) partial(n, key *yaml.Node, at spot) {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		for _, p := range strictyaml.Pairs(n) {
			if strings.Contains(p.Key.Value, "${") {
				f.add(at, f.doc.Pos(p.Key), Write{})
			} else {
				f.partial(p.Value, p.Key, at.at(p.Key.Value))
			}
		}
	case n.Kind == yaml.MappingNode:
		f.add(at, f.doc.Pos(key), Write{ensures: true})
	case computed(n):
		f.computed(n, key, at)
	case n.Kind == yaml.SequenceNode && f.current.Kind == KindApplyConfiguration:
		f.list(n, key, at)
	default:
		w := Write{Exact: true, Removes: f.current.Kind == KindMerge && strictyaml.IsNull(n)}
		w.Value, w.Constant = constantOf(n)
		f.add(at, f.doc.Pos(key), w)
	}
}

// computed is a part that is one ${…}: one value, whatever it comes to, or a map
// that the expression spells out.
func (f *writeFinder) computed(n, key *yaml.Node, at spot) {
	var values []target
	for _, t := range f.makes.partial(n, at, f.current.Kind) {
		if len(t.path) == len(at.path) && len(t.within) == len(at.within) && len(at.path) > 0 {
			values = append(values, t)
		} else {
			f.add(t.spot, t.pos(f.doc.Pos(n)), t.write)
		}
	}
	if len(values) == 0 {
		return
	}
	w := values[0].write
	for _, t := range values[1:] {
		w = Write{Exact: w.Exact && t.write.Exact}
	}
	f.add(at, f.doc.Pos(key), w)
}

// list is one of a configuration: its elements are merged by their keys.
func (f *writeFinder) list(n, key *yaml.Node, at spot) {
	if !slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return yamldoc.Resolve(item).Kind != yaml.MappingNode }) && len(n.Content) > 0 {
		for _, item := range n.Content {
			f.partial(yamldoc.Resolve(item), item, at.at(fieldset.Elem))
		}
		return
	}
	f.add(at, f.doc.Pos(key), Write{})
}

// constantOf is the value of a part without CEL.
func constantOf(n *yaml.Node) (v any, ok bool) {
	if holdsTemplate(n) {
		return nil, false
	}
	v, err := yamldoc.Value(n)
	return v, err == nil
}

func (f *writeFinder) json(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		f.operations(n)
		return
	}
	for _, op := range n.Content {
		if op = yamldoc.Resolve(op); op.Kind == yaml.MappingNode {
			f.operation(op)
		} else {
			f.operations(op)
		}
	}
}

// operations are those that one ${…} gives.
func (f *writeFinder) operations(n *yaml.Node) {
	for _, t := range f.makes.operations(n) {
		f.add(t.spot, t.pos(f.doc.Pos(n)), t.write)
	}
}

// operation is one that is written out as a mapping.
func (f *writeFinder) operation(n *yaml.Node) {
	members := map[string]*yaml.Node{}
	for _, p := range strictyaml.Pairs(n) {
		if strings.Contains(p.Key.Value, "${") {
			f.add(spot{}, f.doc.Pos(n), Write{})
			f.makes.take("", spot{})
			return
		}
		members[p.Key.Value] = p.Value
	}
	op := ""
	if v := members["op"]; v != nil && !holdsTemplate(v) {
		op = v.Value
	}
	if members["path"] == nil {
		return
	}
	at, exact := pointerSpot(patternOf(members["path"]))
	if op == "test" {
		f.makes.tested = append(f.makes.tested, at)
		return
	}
	w := Write{Exact: exact, op: op}
	switch value := members["value"]; {
	case exact && op == "remove":
		w.Constant, w.Removes = true, true
	case exact && value != nil && op != "":
		w.Value, w.Constant = constantOf(value)
	}
	f.add(at, f.doc.Pos(members["path"]), w)
	from := members["from"]
	if from == nil {
		return
	}
	at, exact = pointerSpot(patternOf(from))
	f.makes.take(op, at)
	if op != "copy" {
		f.add(at, f.doc.Pos(from), Write{Exact: exact, Constant: exact && op == "move", Removes: exact && op == "move", op: op})
	}
}

// unknown stands in a text for what is computed.
const unknown = "\x00"

// patternOf is a text whose CEL is unknown.
func patternOf(n *yaml.Node) string {
	segments, err := split(n.Value)
	if err != nil {
		return unknown
	}
	var b strings.Builder
	for _, s := range segments {
		if s.cel {
			b.WriteString(unknown)
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// pointerSpot is what a JSON pointer leads to. What is computed in it may be
// anything, so that only what stands before it is certain; behind it, it is
// taken for an index.
func pointerSpot(pattern string) (at spot, exact bool) {
	pointer, err := patch.ParsePointer(pattern)
	if err != nil {
		return spot{}, false
	}
	exact = true
	for i, token := range pointer {
		if !isIndex(token) && !strings.Contains(token, unknown) {
			at = at.at(token)
			continue
		}
		exact = false
		if i == len(pointer)-1 {
			break // an element as a whole comes, goes or is replaced
		}
		at = at.at(fieldset.Elem)
	}
	return at, exact
}

// isIndex reports whether a token of a JSON pointer is one of a list, if there
// is a list. In a map it would be a key.
func isIndex(token string) bool {
	return token == "-" || token != "" && strings.Trim(token, "0123456789") == ""
}
