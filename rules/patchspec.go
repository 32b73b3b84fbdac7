package rules

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// The subresources that a patch may go to; "" is the object itself.
const (
	mainResource = ""
	status       = "status"
	scale        = "scale"
)

// patchTemplate is a compiled patch. Exactly one of merge, json and apply is
// set.
type patchTemplate struct {
	subresource string
	merge       template
	json        template
	apply       template
	textAt      func(path []string) bool
}

func (d *decoder) patch(env *expression.Env, p patchSpec, resources []schema.GroupVersionResource) patchTemplate {
	out := patchTemplate{textAt: textAt(resources)}
	if p.Subresource != nil {
		out.subresource = p.Subresource.value
		if s := out.subresource; s != mainResource && s != status && s != scale {
			d.fail(p.Subresource.node, "subresource is status, scale or empty, not %q", s)
		}
	}
	if p.Strategic != nil {
		d.fail(p.node, "strategic is not a kind of patch here: use merge, or applyConfiguration for lists by their keys")
		return out
	}
	var given []string
	if p.Merge != nil {
		given = append(given, "merge")
		out.merge = d.mergeTemplate(env, "merge", p.Merge.node, out)
	}
	if p.JSON != nil {
		given = append(given, "json")
		out.json = d.jsonTemplate(env, p.JSON.node, out)
	}
	if p.ApplyConfiguration != nil {
		given = append(given, "applyConfiguration")
		if out.subresource == scale {
			d.fail(p.ApplyConfiguration.node, "scale takes merge or json only")
		}
		out.apply = d.mergeTemplate(env, "applyConfiguration", p.ApplyConfiguration.node, out)
	}
	switch len(given) {
	case 0:
		if hasUnknown(p.node, patchSpec{}) {
			break // one of them was meant to say it
		}
		d.fail(p.node, "the patch says nothing: give merge, json or applyConfiguration")
	case 1:
	default:
		d.fail(p.node, "both %s are given: a patch is one of them", strings.Join(given, " and "))
	}
	return out
}

// mergeTemplate compiles a partial object: a merge patch, or the configuration
// to apply.
func (d *decoder) mergeTemplate(env *expression.Env, kind string, n *yaml.Node, p patchTemplate) template {
	n = yamldoc.Resolve(n)
	if n.Kind != yaml.MappingNode && !computed(n) {
		d.fail(n, "%s must be a mapping, or one ${…} that gives one, not %s", kind, strictyaml.Describe(n))
		return nil
	}
	t := templates{decoder: d, env: env, textAt: p.textAt, whole: kind}
	mark := len(d.problems)
	out := t.compile(n, nil)
	if d.ok(mark) && n.Kind == yaml.MappingNode {
		if err := checkMerge(skeleton(n), p.subresource); err != nil {
			d.as(CheckProtectedField).fail(nodeAt(n, pathOf(err)), "%v", err)
		}
	}
	return out
}

// skeleton is a merge patch as far as it is known before evaluation: its
// literal keys.
func skeleton(n *yaml.Node) map[string]any {
	out := map[string]any{}
	for _, p := range strictyaml.Pairs(n) {
		v := yamldoc.Resolve(p.Value)
		switch {
		case strings.Contains(p.Key.Value, "${"):
		case v.Kind == yaml.MappingNode:
			out[p.Key.Value] = skeleton(v)
		default:
			out[p.Key.Value] = v.Value
		}
	}
	return out
}

func (d *decoder) jsonTemplate(env *expression.Env, n *yaml.Node, p patchTemplate) template {
	n = yamldoc.Resolve(n)
	t := templates{decoder: d, env: env, whole: "json"}
	if n.Kind != yaml.SequenceNode {
		if !computed(n) {
			d.as(CheckJSONPatch).fail(n, "json must be a list of operations, or one ${…} that gives one, not %s", strictyaml.Describe(n))
			return nil
		}
		return t.compile(n, nil)
	}
	t.whole, t.named = "operation", true
	out := make(sequence, 0, len(n.Content))
	for _, op := range n.Content {
		out = append(out, d.operation(&t, yamldoc.Resolve(op), p))
	}
	return out
}

// operation compiles one operation of a JSON patch. What is known before
// evaluation is checked here, by the same code that checks it afterwards.
func (d *decoder) operation(t *templates, n *yaml.Node, p patchTemplate) template {
	if n.Kind != yaml.MappingNode {
		if !computed(n) {
			d.as(CheckJSONPatch).fail(n, "an operation must be a mapping with op and path, or one ${…} that gives one, not %s", strictyaml.Describe(n))
			return constant{}
		}
		return t.compile(n, nil)
	}
	known := map[string]any{}
	var target patch.Pointer
	for _, member := range strictyaml.Pairs(n) {
		name, v := member.Key.Value, yamldoc.Resolve(member.Value)
		switch {
		case name == "value":
			known[name] = nil
		case !holdsTemplate(v):
			known[name] = v.Value
		case name == "op":
			return t.compile(n, nil)
		default:
			known[name] = "/computed"
		}
		if name == "path" && !holdsTemplate(v) {
			target, _ = patch.ParsePointer(v.Value)
		}
	}
	ops, err := patch.ParseOps([]any{known})
	if err == nil {
		err = checkOps(ops, p.subresource)
	}
	if err == nil {
		if bad := patch.CheckIndexes(target); bad != nil {
			err = &patch.OpError{Member: "path", Err: bad}
		}
	}
	if err != nil {
		d.failOperation(n, err)
		return constant{}
	}
	value := templates{decoder: d, env: t.env, named: true, nullIsValue: true, textAt: func(path []string) bool {
		return known["op"] != "test" && len(path) > 0 && path[0] == "value" && target != nil && p.textAt(append(append([]string(nil), target...), path[1:]...))
	}}
	return value.compile(n, nil)
}

func (d *decoder) failOperation(n *yaml.Node, err error) {
	at := n
	var op *patch.OpError
	if errors.As(err, &op) {
		if _, member := field(n, op.Member); member != nil {
			at = member
		}
		err = fmt.Errorf("%s: %w", op.Member, op.Err)
	}
	var pointer *patch.PointerError
	if errors.As(err, &pointer) {
		d.as(CheckJSONPointer).failIn(text{at.Value, at}, pointer.Offset, "bad JSON pointer: %s", pointer.Msg)
		return
	}
	check := CheckJSONPatch
	switch {
	case errors.As(err, new(*rawSlashError)):
		check = CheckJSONPointer
	case errors.As(err, new(*outsideError)), errors.As(err, new(*patch.ProtectedError)):
		check = CheckProtectedField
	}
	d.as(check).fail(at, "%v", err)
}

// computed reports whether a node is one ${…} and nothing else.
func computed(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || !holdsTemplate(n) {
		return false
	}
	segments, err := split(n.Value)
	_, only := onlyExpression(segments)
	return only || err != nil // what is broken is reported where it is compiled
}

func field(n *yaml.Node, name string) (key, value *yaml.Node) {
	for _, p := range strictyaml.Pairs(n) {
		if p.Key.Value == name {
			return p.Key, yamldoc.Resolve(p.Value)
		}
	}
	return nil, nil
}

// textAt tells where in an object of these resources only strings may stand:
// labels, annotations, selectors over labels, and the data of ConfigMaps and
// Secrets. YAML and CEL make it easy to put a number or a bool there.
func textAt(resources []schema.GroupVersionResource) func(path []string) bool {
	data := len(resources) > 0
	for _, r := range resources {
		data = data && r.Group == "" && (r.Resource == "configmaps" || r.Resource == "secrets")
	}
	return func(path []string) bool {
		n := len(path)
		if n == 2 && data {
			return path[0] == "data" || path[0] == "stringData" || path[0] == "binaryData"
		}
		if n < 2 {
			return false
		}
		switch path[n-2] {
		case "labels", "annotations":
			return n > 2 && path[n-3] == "metadata"
		case "matchLabels", "nodeSelector":
			return true
		}
		return false
	}
}
