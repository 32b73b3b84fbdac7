package ruletest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// decoder reads one document and collects all that is wrong with it.
type decoder struct {
	doc      *yamldoc.Document
	problems []*rules.Problem
}

func (d *decoder) report(at yamldoc.Position, msg string) {
	d.problems = append(d.problems, &rules.Problem{Pos: at, Msg: msg, Line: d.doc.Line(at.Line)})
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	d.report(d.doc.Pos(n), fmt.Sprintf(format, args...))
}

func (d *decoder) strict() *strictyaml.Decoder {
	return &strictyaml.Decoder{Doc: d.doc, Whole: "a test", Report: d.report}
}

// test reads a test; nil if anything is wrong with it.
func (d *decoder) test(root *yaml.Node) *Test {
	var doc document
	d.strict().Decode(root, &doc, "")
	if len(d.problems) > 0 {
		return nil // what does not decode would be reported as missing once more
	}
	t := &Test{Now: DefaultNow, Namespace: "default", doc: d.doc}
	if name := doc.Metadata.Name; name.node == nil {
		d.fail(orKey(doc.Metadata.node, root), "metadata.name is missing")
	} else if t.Name, t.Pos = name.value, d.doc.Pos(name.node); len(validation.IsDNS1123Label(name.value)) > 0 {
		d.fail(name.node, "%q is not the name of a test: lower-case letters, digits and -, at most 63 characters", name.value)
	}
	if doc.Spec.node == nil {
		d.fail(root, "spec is missing")
		return nil
	}
	d.spec(t, doc.Spec)
	if len(d.problems) > 0 {
		return nil
	}
	return t
}

func orKey(n, otherwise *yaml.Node) *yaml.Node {
	if n == nil {
		return otherwise
	}
	return n
}

func (d *decoder) spec(t *Test, s spec) {
	if len(s.Rules) == 0 {
		d.fail(s.node, "spec.rules is missing: name the files of the rules, or %sNAME", Builtin)
	}
	t.Rules, t.CRDs = d.refs(s.Rules, "spec.rules"), d.refs(s.CRDs, "spec.crds")
	if s.Now != nil {
		now, err := time.Parse(time.RFC3339, s.Now.value)
		if err != nil {
			d.fail(s.Now.node, "now is a time such as 2026-01-01T00:00:00Z, not %q", s.Now.value)
		}
		t.Now = now
	}
	if s.Namespace != nil {
		t.Namespace = s.Namespace.value
		if len(validation.IsDNS1123Label(t.Namespace)) > 0 {
			d.fail(s.Namespace.node, "%q is not the name of a namespace", t.Namespace)
		}
	}
	for i, c := range s.Context {
		path := fmt.Sprintf("spec.context[%d]", i)
		if n := yamldoc.Resolve(c.node); n.Kind == yaml.MappingNode {
			t.Context = append(t.Context, Object{Value: d.object(n, path), node: n})
		} else if d.strict().WantString(n, path) {
			t.Context = append(t.Context, Object{File: d.ref(text{n.Value, n}, path), node: n})
		}
	}
	d.cases(t, s)
}

func (d *decoder) refs(texts []text, path string) []Ref {
	var out []Ref
	for i, t := range texts {
		at := fmt.Sprintf("%s[%d]", path, i)
		if slices.ContainsFunc(out, func(r Ref) bool { return r.Name == t.value }) {
			d.fail(t.node, "%s is named twice", t.value)
		}
		out = append(out, d.ref(t, at))
	}
	return out
}

// ref reads a path.
func (d *decoder) ref(t text, path string) Ref {
	switch t.value {
	case "":
		d.fail(t.node, "%s is empty: give it a path or remove it", path)
	case "-":
		d.fail(t.node, "%s is a path, and standard input (-) is none", path)
	}
	return Ref{t.value, t.node}
}

// object reads an object that stands in the file.
func (d *decoder) object(n *yaml.Node, path string) map[string]any {
	n = yamldoc.Resolve(n)
	v, ok := d.value(n)
	if !ok {
		return nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		d.fail(n, "%s must be a mapping, not %s", path, strictyaml.Describe(n))
		return nil
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if s, _ := object[field].(string); s == "" {
			d.fail(n, "%s has no %s: rules are about objects of kinds", path, field)
			return nil
		}
	}
	return object
}

func (d *decoder) value(n *yaml.Node) (any, bool) {
	v, err := yamldoc.Value(n)
	if err != nil {
		d.strict().FailValue(n, err)
		return nil, false
	}
	return v, true
}

func (d *decoder) cases(t *Test, s spec) {
	if len(s.Cases) == 0 {
		d.fail(s.node, "spec.cases is missing: a test without a case tests nothing")
	}
	names := map[string]*yaml.Node{}
	for i, c := range s.Cases {
		path := fmt.Sprintf("spec.cases[%d]", i)
		if c.Name.node == nil {
			d.fail(c.node, "%s has no name", path)
		} else if other := names[c.Name.value]; other != nil {
			d.fail(c.Name.node, "there is another case of this name in line %d", d.doc.Pos(other).Line)
		} else if strings.TrimSpace(c.Name.value) == "" || strings.ContainsFunc(c.Name.value, unicode.IsControl) {
			d.fail(c.Name.node, "the name of a case is one line that is not empty, without control characters")
		}
		names[c.Name.value] = orKey(c.Name.node, c.node)
		t.Cases = append(t.Cases, &Case{
			Name: c.Name.value, Pos: d.doc.Pos(c.node), doc: d.doc,
			Object: d.caseObject(c, path), Expect: d.expect(c, path),
		})
	}
}

func (d *decoder) caseObject(c caseSpec, path string) Object {
	switch {
	case c.Object != nil && c.ObjectFile != nil:
		d.fail(c.node, "%s has both object and objectFile: a case is about one object", path)
	case c.Object != nil && c.ObjectName != nil:
		d.fail(c.ObjectName.node, "objectName selects an object of objectFile, which is not given")
	case c.Object != nil:
		return Object{Value: d.object(c.Object.node, path+".object"), node: c.Object.node}
	case c.ObjectFile != nil:
		out := Object{File: d.ref(*c.ObjectFile, path+".objectFile"), node: c.ObjectFile.node}
		if c.ObjectName != nil {
			out.Name = Ref{c.ObjectName.value, c.ObjectName.node}
			if out.Name.Name == "" {
				d.fail(c.ObjectName.node, "%s.objectName is empty: give it a name or remove it", path)
			}
		}
		return out
	default:
		d.fail(c.node, "%s has no object: give object or objectFile", path)
	}
	return Object{}
}

var outcomes = []string{string(rules.Patch), string(rules.Pass), string(rules.Skip), string(rules.Error)}

func (d *decoder) expect(c caseSpec, path string) Expect {
	e := c.Expect
	if e == nil {
		d.fail(c.node, "%s expects nothing: expect.outcome says what the rules must make of the object", path)
		return Expect{}
	}
	out := Expect{Outcome: rules.Outcome(e.Outcome.value), outcome: e.Outcome.node}
	switch {
	case e.Outcome.node == nil:
		d.fail(e.node, "expect.outcome is missing: it is one of %s", strings.Join(outcomes, ", "))
		return out
	case !slices.Contains(outcomes, e.Outcome.value):
		d.fail(e.Outcome.node, "expect.outcome is one of %s, not %q%s", strings.Join(outcomes, ", "), e.Outcome.value, suggest.DidYouMean(e.Outcome.value, outcomes))
		return out
	}
	d.fits(e)
	if e.Rules != nil {
		out.Rules = d.refs(*e.Rules, "expect.rules")
		if len(out.Rules) == 0 {
			d.fail(e.node, "expect.rules is empty: name rules or remove it")
		}
	}
	out.Object, out.ExactObject = d.expected(e.Object, "object"), d.expected(e.ExactObject, "exactObject")
	out.Patch = d.operations(e.Patch)
	if e.Error != nil {
		re, err := regexp.Compile(e.Error.value)
		if err != nil {
			d.fail(e.Error.node, "expect.error is not a regular expression: %v", err)
		} else if re.MatchString("") {
			d.fail(e.Error.node, "expect.error matches every error, and so says nothing: give a part of its text")
		}
		out.Error = &Pattern{re, e.Error.node}
	}
	if e.Event != nil {
		out.Event = &Event{node: e.Event.node}
		for _, part := range []struct {
			from *text
			to   **string
		}{{e.Event.Reason, &out.Event.Reason}, {e.Event.Message, &out.Event.Message}} {
			if part.from != nil {
				*part.to = &part.from.value
			}
		}
		if e.Event.Reason == nil && e.Event.Message == nil {
			d.fail(e.Event.node, "expect.event says nothing: give reason, message or both")
		}
	}
	return out
}

// fits refuses expectations that cannot hold with the outcome: they would be
// thought to be tested.
func (d *decoder) fits(e *expectSpec) {
	changes := []rules.Outcome{rules.Patch, rules.Error}
	refuse := func(given bool, n func() *yaml.Node, field string, with ...rules.Outcome) {
		if given && !slices.Contains(with, rules.Outcome(e.Outcome.value)) {
			d.fail(n(), "expect.%s cannot be with outcome %s: %s", field, e.Outcome.value, reasons[field])
		}
	}
	whole := func() *yaml.Node { return e.node }
	refuse(e.Rules != nil, whole, "rules", changes...)
	refuse(e.Patch != nil, func() *yaml.Node { return e.Patch.node }, "patch", changes...)
	refuse(e.Event != nil, func() *yaml.Node { return e.Event.node }, "event", changes...)
	refuse(e.Error != nil, func() *yaml.Node { return e.Error.node }, "error", rules.Error)
	if e.Object != nil && e.ExactObject != nil {
		d.fail(e.node, "expect has both object and exactObject: the latter says it all")
	}
}

var reasons = map[string]string{
	"rules": "it names the rules that patched or failed",
	"patch": "nothing is sent",
	"event": "there is none",
	"error": "no rule fails",
}

func (d *decoder) expected(r *raw, field string) *Value {
	if r == nil || r.node == nil {
		return nil
	}
	n := yamldoc.Resolve(r.node)
	if n.Kind != yaml.MappingNode {
		d.fail(n, "expect.%s must be a mapping, not %s", field, strictyaml.Describe(n))
		return nil
	}
	v, ok := d.value(n)
	if m, _ := v.(map[string]any); ok && len(m) == 0 && field == "object" {
		d.fail(n, "expect.object is empty: every object has that")
	}
	return &Value{v, n}
}

func (d *decoder) operations(r *raw) *Operations {
	if r == nil || r.node == nil {
		return nil
	}
	n := yamldoc.Resolve(r.node)
	v, ok := d.value(n)
	if !ok {
		return nil
	}
	ops, err := patch.ParseOps(v)
	var at *patch.OpError
	if errors.As(err, &at) {
		where := nodeAt(n, path{at.Index, at.Member})
		d.fail(where, "expect.patch[%d]: %s: %v", at.Index, at.Member, at.Err)
	} else if err != nil {
		d.fail(n, "expect.patch: %v", err)
	}
	return &Operations{ops, n}
}
