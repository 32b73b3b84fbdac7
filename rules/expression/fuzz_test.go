package expression

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"
)

// Any source on any object: it compiles or is refused at a place; what compiles
// gives one value, in bounded time, and leaves the object alone.
func FuzzEval(f *testing.F) {
	const object = `{"metadata":{"name":"a","labels":{"b":"c"}},"spec":{"n":3,"d":1.5,"l":[1,"x",null,{"a":[]}],"m":{"k":"v"}}}`
	for _, source := range []string{
		"object.spec.n + 1", "object.?spec.?x.orValue('a')", "object.spec.l.map(x, [x])", "object.metadata.labels.map(k, k + object.metadata.labels[k])",
		"'%s %d'.format([object.spec.m, object.spec.n])", "object.spec.l.flatten().distinct()", "{'a': object, 'b': [object]}", "optional.none()",
		"object.metadata.name.replace('', 'x').split('x').join(object.metadata.name)", "sets.contains(object.spec.l, [1])", "lists.range(object.spec.n)",
		"quantity('1Gi').isLessThan(quantity(string(object.spec.n)))", "ip('::1').family()", "timestamp(0) + duration('1h')", "b'\\xff'", "{1: 2}", "1u", "type(object)",
		"object.spec.m.transformMap(k, v, v + k)", "url('http://a').getHost()", "semver('1.2.3').major()", "Object{spec: Object.spec{n: 1}}", "[JSONPatch{op: 'add', path: '/a'}]",
		"object.spec.l.exists(x, x == object.spec.l[0])", "1 / 0", "object.spec.l[5]", "cel.bind(x, 1, x)", "'a'.matches(object.metadata.name)", "object.all(k, has(object.spec))",
	} {
		f.Add(source, object)
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		var value any
		if len(source) > 2000 || len(text) > 10_000 || kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value) != nil {
			return
		}
		e, err := env(t, "object").WithPatchTypes()
		if err != nil {
			t.Fatal(err)
		}
		p, issues := e.Compile(source)
		for _, issue := range issues {
			if issue.Msg == "" || issue.Offset < 0 || issue.Offset > len(source) {
				t.Errorf("issue %+v of %q", issue, source)
			}
		}
		if p == nil {
			return
		}
		var before any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &before); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, err := native(p, names{"object": value})
		again, errAgain := native(p, names{"object": before})
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		if !errors.Is(err, ErrDeadline) && !errors.Is(errAgain, ErrDeadline) && (errText(err) != errText(errAgain) || !reflect.DeepEqual(got, again)) {
			t.Errorf("evaluated twice: %v, %v, and %v, %v", got, err, again, errAgain)
		}
		if !reflect.DeepEqual(value, before) {
			t.Errorf("the object was modified: %v became %v", before, value)
		}
		p.Explain(names{"object": value})
	})
}

// native evaluates and converts, in all ways.
func native(p *Program, in names) (any, error) {
	v, err := p.Eval(in)
	if err != nil {
		return nil, err
	}
	if _, err := v.Text(); err == nil {
		_, _ = v.Bool()
	}
	return v.Native()
}

// errText is the text of an error without the addresses that cel-go prints.
func errText(err error) string {
	if err == nil {
		return ""
	}
	before, _, _ := strings.Cut(err.Error(), "0x")
	return before
}
