package lint

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

var indexWithoutTest = &Check{
	ID: "index-without-test", Severity: Warning, Summary: "A JSON patch changes a list element by its index, whatever it is",
	Run: runIndexWithoutTest,
}

func runIndexWithoutTest(p *Pass) {
	for _, n := range p.PatchNodes() {
		_, list := yamldoc.Field(n, "json")
		if list = yamldoc.Resolve(list); list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		var tested []patch.Pointer
		for _, item := range list.Content {
			op, ok := literalMember(item, "op")
			if !ok {
				continue
			}
			if op.Value == "test" {
				if pointer, _ := pointerAt(item, "path"); pointer != nil {
					tested = append(tested, pointer)
				}
				continue
			}
			for _, name := range changing[op.Value] {
				pointer, at := pointerAt(item, name)
				element := p.element(pointer)
				if inserts := name == "path" && op.Value != "remove" && op.Value != "replace"; inserts && len(element) == len(pointer) {
					continue
				}
				if element != nil && !slices.ContainsFunc(tested, func(t patch.Pointer) bool { return t.HasPrefix(element) }) {
					p.Reportf(p.Doc.Pos(at), "%s is another element on another object: put a test of it before this operation, such as {op: test, path: %s, value: …} (of an object, its name is enough: %s/name), or merge lists by their keys with applyConfiguration", element, element, element)
				}
			}
		}
	}
}

// changing are the operations that change what is there, and the members that
// say where.
var changing = map[string][]string{"remove": {"path"}, "replace": {"path"}, "move": {"from", "path"}, "add": {"path"}, "copy": {"path"}}

// element is the pointer to the deepest list element that an operation on a
// pointer reaches into; nil if there is none.
func (p *Pass) element(pointer patch.Pointer) patch.Pointer {
	for i := len(pointer) - 1; i > 0; i-- {
		if strings.Trim(pointer[i], "0123456789") == "" && !p.keyed(pointer[:i]) {
			return pointer[:i+1]
		}
	}
	return nil
}

// keyed reports whether a pointer leads to a map whose keys may be numbers.
func (p *Pass) keyed(pointer patch.Pointer) bool {
	switch pointer[len(pointer)-1] {
	case "labels", "annotations", "matchLabels", "nodeSelector":
		return true
	case "data", "stringData", "binaryData":
		return anyResource(p.Rule, func(gr schema.GroupResource) bool { return gr.Group == "" })
	}
	return false
}

// literalMember is a member of an operation that is written out.
func literalMember(op *yaml.Node, name string) (*yaml.Node, bool) {
	if op = yamldoc.Resolve(op); op.Kind != yaml.MappingNode {
		return nil, false
	}
	_, v := yamldoc.Field(op, name)
	if v = yamldoc.Resolve(v); v == nil || v.Kind != yaml.ScalarNode || strings.Contains(v.Value, "${") {
		return nil, false
	}
	return v, true
}

func pointerAt(op *yaml.Node, name string) (patch.Pointer, *yaml.Node) {
	v, ok := literalMember(op, name)
	if !ok {
		return nil, nil
	}
	pointer, err := patch.ParsePointer(v.Value)
	if err != nil {
		return nil, nil
	}
	return pointer, v
}
