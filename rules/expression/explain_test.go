package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree writes an explanation as lines: value, source, operands, where it fails.
func tree(e *Explanation, depth int) string {
	var b strings.Builder
	b.WriteString(strings.Repeat("  ", depth) + result(e) + "  " + e.Source)
	if len(e.Operands) > 0 {
		var operands []string
		for _, o := range e.Operands {
			operands = append(operands, result(o))
		}
		fmt.Fprintf(&b, "  (%s %s)", e.Operator, strings.Join(operands, ", "))
	}
	if e.ErrOffset >= 0 {
		fmt.Fprintf(&b, "  @%d", e.ErrOffset)
	}
	if e.NotNeeded {
		b.WriteString("  not needed")
	}
	b.WriteString("\n")
	for _, p := range e.Parts {
		b.WriteString(tree(p, depth+1))
	}
	return b.String()
}

func result(e *Explanation) string {
	if e.Err != nil {
		return "error " + e.Err.Error()
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e.Value.Show()); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

func TestExplain(t *testing.T) {
	e := ruleEnv(t)
	object := m{"metadata": m{"name": "web"}, "spec": m{"x": int64(1), "on": true, "l": l{m{"z": int64(4)}, m{"z": int64(5)}}}}
	for _, tc := range []struct{ source, want string }{
		{`object.spec.x == 1`, `
true  object.spec.x == 1  (== 1, 1)
`},
		{`'a' in object.metadata.?annotations.orValue({}) && object.spec.x != variables.a && lookups.pods.size() == 0`, `
false  'a' in object.metadata.?annotations.orValue({}) && object.spec.x != variables.a && lookups.pods.size() == 0
  false  'a' in object.metadata.?annotations.orValue({})  (in "a", {})
  true  object.spec.x != variables.a  (!= 1, 5)  not needed
  true  lookups.pods.size() == 0  (== 0, 0)  not needed
`},
		{`object.spec.nope == 3 || (object.spec.x == 1 && !has(object.spec.y)) || object.spec.on`, `
true  object.spec.nope == 3 || (object.spec.x == 1 && !has(object.spec.y)) || object.spec.on
  error no such key: nope  object.spec.nope == 3  (== error no such key: nope, 3)  @12
  true  object.spec.x == 1 && !has(object.spec.y)
    true  object.spec.x == 1  (== 1, 1)
    true  !has(object.spec.y)
  true  object.spec.on  not needed
`},
		{`!(object.spec.x == 2 || object.spec.on)`, `
false  !(object.spec.x == 2 || object.spec.on)
  true  object.spec.x == 2 || object.spec.on
    false  object.spec.x == 2  (== 1, 2)
    true  object.spec.on
`},
		{`object.spec.x > 3 ? object.spec.y == 1 : object.spec.l.exists(i, i.z == 3)`, `
false  object.spec.x > 3 ? object.spec.y == 1 : object.spec.l.exists(i, i.z == 3)
  false  object.spec.x > 3  (> 1, 3)
  error no such key: y  object.spec.y == 1  (== error no such key: y, 1)  @32  not needed
  false  object.spec.l.exists(i, i.z == 3)  (exists [{"z":4},{"z":5}])
`},
		{`object.spec.on ? variables.a == 5 : object.spec.on`, `
true  object.spec.on ? variables.a == 5 : object.spec.on
  true  object.spec.on
  true  variables.a == 5  (== 5, 5)
  true  object.spec.on  not needed
`},
		{`!object.spec.on ? 1 : object.spec.x > 5 ? variables.b : object.spec.x`, `
1  !object.spec.on ? 1 : object.spec.x > 5 ? variables.b : object.spec.x
  false  !object.spec.on
  1  1  not needed
  1  object.spec.x > 5 ? variables.b : object.spec.x
    false  object.spec.x > 5  (> 1, 5)
    error variable b fails  variables.b  @42  not needed
    1  object.spec.x
`},
		{`!object.spec.on ? object.?spec.?on : object.?spec.?nope`, `
"optional.none()"  !object.spec.on ? object.?spec.?on : object.?spec.?nope
  false  !object.spec.on
  true  object.?spec.?on  not needed
  "optional.none()"  object.?spec.?nope
`},
		{`(true ? object : object).spec.on && (object.spec.on ? variables.b : true)`, `
error variable b fails  (true ? object : object).spec.on && (object.spec.on ? variables.b : true)  @54
  true  (true ? object : object).spec.on
  error variable b fails  object.spec.on ? variables.b : true  @54
    true  object.spec.on
    error variable b fails  variables.b  @54
    true  true  not needed
`},
		{"\n  object.metadata.name\n    .startsWith('x')  // a && b\n  || '&& // \" ' == r'\\' // || \n  && object.metadata.name == 'we\\'b'", `
false  object.metadata.name .startsWith('x') || '&& // " ' == r'\' && object.metadata.name == 'we\'b'
  false  object.metadata.name .startsWith('x')  (startsWith "web", "x")
  false  '&& // " ' == r'\' && object.metadata.name == 'we\'b'
    false  '&& // " ' == r'\'  (== "&& // \" ", "\\")
    false  object.metadata.name == 'we\'b'  (== "web", "we'b")  not needed
`},
		{`'ü' == object.metadata.name || object.spec.nope`, `
error no such key: nope  'ü' == object.metadata.name || object.spec.nope  @44
  false  'ü' == object.metadata.name  (== "ü", "web")
  error no such key: nope  object.spec.nope  @44
`},
		{`(object.spec.nope || true) && int(object.metadata.name) > 3`, `
error type conversion error from 'string' to 'int'  (object.spec.nope || true) && int(object.metadata.name) > 3  @30
  true  object.spec.nope || true
    error no such key: nope  object.spec.nope  @13
    true  true
  error type conversion error from 'string' to 'int'  int(object.metadata.name) > 3  (> error type conversion error from 'string' to 'int', 3)  @30
`},
		{`object.metadata.name && true`, `
error no such overload  object.metadata.name && true  @21
  "web"  object.metadata.name
  true  true
`},
		{`object.spec.l.map(i, i.nope).size() == 1`, `
error no such key: nope  object.spec.l.map(i, i.nope).size() == 1  (== error no such key: nope, 1)  @23
`},
		{`!!!object.spec.on`, `
false  !!!object.spec.on
`},
		{`object.?spec.?nope == optional.none() && type(object) == map && quantity('1Gi') == quantity('2Gi')`, `
false  object.?spec.?nope == optional.none() && type(object) == map && quantity('1Gi') == quantity('2Gi')
  true  object.?spec.?nope == optional.none()  (== "optional.none()", "optional.none()")
  true  type(object) == map  (== "map", "map")
  false  quantity('1Gi') == quantity('2Gi')  (== "1Gi", "2Gi")
`},
	} {
		p := compile(t, e, tc.source)
		in := names{"object": object, "variables.a": int64(5), "variables.b": fmt.Errorf("variable b fails"), "lookups.pods": l{}}
		if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), tree(p.Explain(in), 0)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.source, diff)
		}
	}
}

// explained compares an explanation with evaluations: the whole gives what Eval
// gives, and each part gives what it gives when it stands alone.
type explained struct {
	*testing.T
	env           *Env
	parts, failed int
}

func (x *explained) whole(p *Program, names Resolver) {
	x.Helper()
	e := p.Explain(names)
	if got, want := outcome(e.Value, e.Err), outcome(p.Eval(names)); got != want {
		x.Errorf("%s\nexplained %s\nevaluated %s", p.source, got, want)
	}
	x.below(p, e, names)
}

func (x *explained) below(p *Program, e *Explanation, names Resolver) {
	x.Helper()
	if e.ErrOffset >= len(p.source) || e.ErrOffset >= 0 && e.Err == nil {
		x.Errorf("%s: %s fails at %d: %v", p.source, e.Source, e.ErrOffset, e.Err)
	}
	for _, part := range append(e.Parts, e.Operands...) {
		x.below(p, part, names)
		if part.Source == "" || errors.Is(part.Err, ErrNotReached) {
			continue
		}
		alone, issues := x.env.Compile(part.Source)
		if issues != nil {
			x.Errorf("%s: the part %q at %d does not stand alone: %v", p.source, part.Source, part.Offset, issues[0])
			continue
		}
		x.parts++
		if part.Err != nil {
			x.failed++
		}
		if got, want := outcome(part.Value, part.Err), outcome(alone.Eval(names)); got != want && !unordered.MatchString(p.source) {
			x.Errorf("%s: the part %s\nexplained %s\nevaluated %s", p.source, part.Source, got, want)
		}
	}
}

// unordered finds what takes an element of a list that may be made from a map:
// that is any.
var unordered = regexp.MustCompile(`first|last|\[0\]|slice|reverse|sortBy|distinct|format|\+`)

// logic joins generated expressions as conditions do.
var logic = []string{"E", "E && E", "E || E && !E", "(E == E || E) && E != E", "E ? E : E", "!(E in E) && (E ? E && E : E)", "(E) && ((E) || E && E)"}

func TestUnracedPartsAreWhatTheyGiveAlone(t *testing.T) {
	c := newComparison(t, 11)
	x := &explained{T: t, env: c.env}
	start := inputs{object: sampleObject(), namespace: sampleObject(), pods: []m{sampleObject()}}
	sources := slices.Clone(pathExpressions)
	for i, a := range pathExpressions {
		b := pathExpressions[(i*7+3)%len(pathExpressions)]
		sources = append(sources, "("+a+") == 1 && ("+b+") != null // b\n || has(object.spec) ? dyn("+a+") : dyn("+b+")")
	}
	compiled := 0
	for len(sources) > 0 || compiled < 700 {
		source := ""
		if len(sources) > 0 {
			source, sources = sources[0], sources[1:]
		} else {
			operand := func() string { return "dyn(" + generate(c.r, 1+c.r.Intn(3), "object") + ")" }
			source = logic[c.r.Intn(len(logic))]
			for range strings.Count(source, "E") {
				source = strings.Replace(source, "E", operand(), 1)
			}
		}
		p, issues := c.env.Compile(source)
		if issues != nil {
			continue
		}
		compiled++
		in := start
		if compiled%2 == 0 {
			in = mutateInputs(c.r, start, 20)
		}
		x.whole(p, scope{in, c.variables})
	}
	t.Logf("%d expressions, %d parts, %d of them fail", compiled, x.parts, x.failed)
	if x.parts < 700 || x.failed < 200 {
		t.Error("the test compares too little")
	}
}

// Whatever is in it, a source can be cut into parts.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`a && b`, `'\'' || r'\'`, `"""a"b""" ? x : y // c`, `br"\" == b'x'`, `((a))`, `(a) && (b)`, "'a", "((", "a // 'b\n && c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x := scan(s)
		if len(x.text) != len(s) || len(x.quoted) != len(s) {
			t.Fatalf("%d bytes became %d", len(s), len(x.text))
		}
		start, end := x.trim(0, len(s))
		if start > end || strings.ContainsAny(x.line(start, end), "\r") && !slices.Contains(x.quoted, true) {
			t.Fatalf("%q is trimmed to %d, %d", s, start, end)
		}
		for i := range s {
			if x.colon(i, len(s)) >= len(s) || x.behind(i, '!') > len(s) {
				t.Fatalf("%q at %d", s, i)
			}
		}
	})
}

func TestExplainKeepsToTheDeadline(t *testing.T) {
	e := ruleEnv(t)
	p := compile(t, e, `object.spec.on || object.spec.l.exists(a, object.spec.l.exists(b, a + b == -1))`)
	long := l{}
	for i := range 20000 {
		long = append(long, int64(i))
	}
	start := time.Now()
	x := p.Explain(names{"object": m{"spec": m{"on": true, "l": long}}})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if on, err := x.Value.Bool(); err != nil || !on {
		t.Errorf("the whole is %v, %v", on, err)
	}
	if len(x.Parts) != 2 || x.Parts[1].Err == nil || !x.Parts[1].NotNeeded {
		t.Errorf("the part that takes for ever: %+v", x.Parts[1])
	}
}
