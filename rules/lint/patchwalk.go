package lint

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// patchOf is one patch of a rule.
type patchOf struct {
	kind        string // merge, json or applyConfiguration
	subresource string
	at          yamldoc.Position // of the word that is kind
}

// target is a place that a patch writes, or that lies on the way to one.
type target struct {
	*patchOf
	path []string // from the object; * for what is known at run time only
	// shape is what the schema says of the place, nil if there is no such
	// field; it is anyShape where there is no schema.
	shape *shape
	// parent is the shape of what the place is in.
	parent *shape
	at     yamldoc.Position // of the key
	value  *value           // nil: it is removed, or comes from elsewhere
	op     string           // of JSON Patch
	// through says that what is written lies below: the place is only a part
	// of a pointer.
	through bool
}

func (t *target) name() string { return strings.Join(t.path, ".") }

// walker visits all that the patches of a rule write.
type walker struct {
	reader *patchReader
	root   *shape
	visit  func(*target)
	patch  *patchOf
}

// eachTarget visits what the rule writes to objects of one of its resources:
// from the outside in, in the order of the file. A place without a schema is
// visited too, with anyShape.
func (p *Pass) eachTarget(one *typed, visit func(*target)) {
	root := one.kind.shape
	if root == nil {
		root = anyShape
	}
	for _, n := range p.PatchNodes() {
		w := &walker{reader: newPatchReader(p.Definition, one), root: root, visit: visit}
		w.node(n)
	}
}

func (w *walker) node(n *yaml.Node) {
	subresource := ""
	if _, v := yamldoc.Field(n, "subresource"); v != nil {
		subresource = yamldoc.Resolve(v).Value
	}
	if subresource == "scale" {
		w.root = scaleShape()
	}
	for _, kind := range []string{"merge", "applyConfiguration", "json"} {
		key, v := yamldoc.Field(n, kind)
		if v == nil {
			continue
		}
		w.patch = &patchOf{kind, subresource, w.reader.Doc.Pos(key)}
		if kind == "json" {
			w.operations(w.reader.yaml(v))
		} else {
			w.below(nil, w.root, w.reader.yaml(v), "")
		}
	}
}

// scaleShape is that of a Scale, as far as a rule may write it.
func scaleShape() *shape {
	object := func(field string, s spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{field: s}}}
	}
	scale := object("spec", object("replicas", spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"integer"}}}))
	return anyShape.below(&scale, "Scale", "Scale")
}

// below visits the members of a value that is written at a place.
func (w *walker) below(path []string, s *shape, v *value, op string) {
	switch v.kind {
	case either:
		for _, one := range v.items {
			w.below(path, s, one, op)
		}
	case mapping:
		if !mayBe(s, expression.ObjectShape, expression.MapShape) {
			return
		}
		for _, e := range v.entries {
			key, shape := e.key, anyShape
			switch {
			case e.computed:
				key = "*"
				if s.kind == expression.MapShape {
					shape = s.element()
				}
			case s.kind == expression.MapShape:
				shape = s.element()
			default:
				shape = s.field(key)
			}
			w.to(&target{path: extend(path, key), shape: shape, parent: s, at: e.at, value: e.value, op: op})
		}
	case list:
		if !mayBe(s, expression.ListShape) {
			return
		}
		for i, item := range v.items {
			key, shape := strconv.Itoa(i), anyShape
			if v.repeated {
				key = "*"
			}
			if s.kind == expression.ListShape {
				shape = s.element()
			}
			w.to(&target{path: extend(path, key), shape: shape, parent: s, at: item.at, value: item, op: op})
		}
	}
}

// to visits a place, and what is below it.
func (w *walker) to(t *target) {
	t.patchOf = w.patch
	w.visit(t)
	if t.shape != nil && t.value != nil {
		w.below(t.path, t.shape, t.value, t.op)
	}
}

func mayBe(s *shape, kinds ...expression.ShapeKind) bool {
	return s.kind == expression.AnyShape || slices.Contains(kinds, s.kind)
}

func extend(path []string, key string) []string { return append(slices.Clip(path), key) }

// operations visits what the operations of a JSON patch write.
func (w *walker) operations(v *value) {
	switch v.kind {
	case either, list:
		for _, op := range v.items {
			w.operations(op)
		}
	case mapping:
		w.operation(v)
	}
}

func (w *walker) operation(v *value) {
	op, ok := v.member("op").text()
	if !ok {
		return
	}
	if op == "move" || op == "copy" {
		from := "test" // what is copied stays
		if op == "move" {
			from = "remove"
		}
		w.pointer(v.member("from"), from, nil)
	}
	w.pointer(v.member("path"), op, v.member("value"))
}

// pointer visits the places that a JSON pointer leads through, and the one it
// leads to.
func (w *walker) pointer(pointer *value, op string, v *value) {
	if pointer == nil {
		return
	}
	if pointer.kind == either {
		for _, one := range pointer.items {
			w.pointer(one, op, v)
		}
		return
	}
	tokens, ok := pointerTokens(pointer)
	if !ok {
		return
	}
	s, path := w.root, []string(nil)
	for i, token := range tokens {
		t := &target{path: extend(path, token.key), parent: s, shape: memberShape(s, token), at: token.at, op: op, through: i < len(tokens)-1}
		if !t.through {
			t.value = v
		}
		w.to(t)
		if t.shape == nil {
			return
		}
		s, path = t.shape, t.path
	}
}

// memberShape is the shape of what a token of a JSON pointer leads to; nil if there
// is no such thing.
func memberShape(s *shape, token pointerToken) *shape {
	switch s.kind {
	case expression.AnyShape:
		return anyShape
	case expression.MapShape:
		if token.several {
			return anyShape
		}
		return s.element()
	case expression.ListShape:
		if token.several {
			return anyShape
		}
		if _, err := strconv.Atoi(token.key); err == nil || token.computed || token.key == "-" {
			return s.element()
		}
	case expression.ObjectShape:
		if token.computed {
			return anyShape
		}
		return s.field(token.key)
	}
	return nil
}

// pointerToken is one step of a JSON pointer.
type pointerToken struct {
	key      string
	computed bool
	several  bool // computed, and perhaps more than one step
	at       yamldoc.Position
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// pointerTokens takes a JSON pointer apart. ok is false if it does not begin
// with a slash that is written out.
func pointerTokens(v *value) (tokens []pointerToken, ok bool) {
	for i, p := range v.parts {
		if p.computed {
			if len(tokens) == 0 {
				return nil, false
			}
			last := &tokens[len(tokens)-1]
			last.key, last.computed, last.several = "*", true, last.several || !p.oneStep
			continue
		}
		if i == 0 && !strings.HasPrefix(p.text, "/") {
			return nil, false
		}
		for offset := 0; offset < len(p.text); {
			begins := p.text[offset] == '/'
			if begins {
				offset++
			}
			end := offset + len(p.text[offset:])
			if slash := strings.IndexByte(p.text[offset:], '/'); slash >= 0 {
				end = offset + slash
			}
			if begins {
				tokens = append(tokens, pointerToken{key: unescapePointer.Replace(p.text[offset:end]), at: p.at(offset)})
			} else if last := &tokens[len(tokens)-1]; !last.computed {
				last.key += unescapePointer.Replace(p.text[offset:end])
			}
			offset = end
		}
	}
	return tokens, len(tokens) > 0
}
