package expression

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
)

// A rule cannot fill the memory, nor keep a worker: what would is refused, before
// it is made and long before it is too much.
func TestUnracedWhatIsMadeIsLimited(t *testing.T) {
	object := map[string]any{
		"text": strings.Repeat("x", 1<<20), "list": make([]any, 5000), "one": "x",
		"texts": []any{strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20)},
	}
	for i := range object["list"].([]any) {
		object["list"].([]any)[i] = fmt.Sprint(i)
	}
	chained := func(times int, step string) string { return "object.text" + strings.Repeat(step, times) }
	for source, want := range map[string]error{
		"object.text.replace('', object.text)":                                 ErrTooMuchText,
		"object.text.replace('', object.text, 3)":                              nil,
		"object.text.replace('', object.text, 30)":                             ErrTooMuchText,
		"object.one.replace('x', object.text).replace('x', 'yy').size() > 0":   nil,
		chained(5, ".replace('x', 'xx')") + " == ''":                           ErrTooMuchText,
		"[object.text].map(a, a + a).map(a, a + a).map(a, a + a).size() > 0":   nil,
		"[object.text].map(a, a + a + a + a).map(a, a + a + a + a + a)[0]":     ErrTooMuchText,
		"optional.of(object.text)" + strings.Repeat(".optMap(a, a + a)", 40):   ErrTooMuchText,
		"optional.of([1])" + strings.Repeat(".optMap(a, a + a)", 60):           ErrTooLarge,
		"optional.of([1])" + strings.Repeat(".optMap(a, [a, a])", 60):          ErrTooLarge,
		"optional.of({})" + strings.Repeat(".optMap(a, {'a': a, 'b': a})", 60): ErrTooLarge,
		"[1]" + strings.Repeat(".map(a, [a, a])", 60):                          ErrTooLarge,
		"object.list.map(x, object.text + x).size()":                           ErrTooMuchText,
		"object.list.map(x, object.text.upperAscii()).size()":                  ErrTooMuchText,
		"object.list.map(x, object.text).join()":                               ErrTooMuchText,
		"['a', 'b', 'c'].join(object.text)":                                    nil,
		"object.list.join(object.text)":                                        ErrTooMuchText,
		"object.text.split('').size()":                                         ErrTooLarge,
		"object.text.split('x').size()":                                        ErrTooLarge,
		"object.text.find('x+').size()":                                        nil,
		"'%s%s'.format([object.text, object.text])":                            nil,
		"'%s'.format([object.list.map(x, object.text)])":                       ErrTooMuchText,
		"'%.999999f'.format([1.0])":                                            errPrecision,
		"'%.9f'.format([1.0])":                                                 nil,
		"object.list.map(x, object.list).flatten().size()":                     ErrTooLarge,
		"[object.list, object.list].flatten().size()":                          nil,
		"object.list.distinct().size()":                                        errTooManyComparisons,
		"sets.contains(object.list, object.list)":                              errTooManyComparisons,
		"sets.contains(object.list, ['1'])":                                    nil,
		"sets.equivalent(object.list, object.list)":                            errTooManyComparisons,
		"sets.intersects(object.list, object.list)":                            errTooManyComparisons,
		"object.list + object.list + ['x'] != []":                              nil,
		"[object.text].map(x, string(bytes(x)) + jsonpatch.escapeKey(x))[0]":   nil,
		"lists.range(10).map(x, object.text.lowerAscii())[0].size()":           nil,
		"lists.range(100).map(x, object.text.substring(1))[0].size()":          ErrTooMuchText,
	} {
		t.Run(source[:min(len(source), 60)], func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := eval(t, source, names{"object": object})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if want == nil && err != nil && !errors.Is(err, ErrDeadline) || want != nil && !errors.Is(err, want) && !errors.Is(err, ErrDeadline) {
				t.Errorf("%s: %v, want %v", source, err, want)
			}
			if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 1000 || took > 20*time.Second {
				t.Errorf("%s: %d MiB in %v", source, made, took)
			}
		})
	}
}

// Variables are values of other evaluations: what they hold counts where it is
// used.
func TestVariablesThatDouble(t *testing.T) {
	for form, want := range map[string]error{
		"v + v": ErrTooMuchText, "'%s%s'.format([v, v])": ErrTooMuchText, "v.replace('x', 'xx')": ErrTooMuchText, "[v, v].join('')": ErrTooMuchText,
	} {
		e := env(t, "v")
		p, issues := e.Compile(form)
		if issues != nil {
			t.Fatal(form, issues)
		}
		var v any = "x"
		var err error
		for range 60 {
			var value Value
			if value, err = p.Eval(names{"v": v}); err != nil {
				break
			}
			v = value
		}
		if !errors.Is(err, want) {
			t.Errorf("%s, 60 times: %v, want %v", form, err, want)
		}
	}
}

// Each function that gives a text is known here: it makes one of its own, and is
// in makesText, or it does not.
func TestAllFunctionsThatMakeTextAreKnown(t *testing.T) {
	short := map[string]bool{}
	for _, name := range []string{
		"charAt", "trim", "find", "max", "min", // a text that is there, or a part of it
		"getHost", "getHostname", "getPort", "getScheme", "getEscapedPath", // of a URL
	} {
		short[name] = true
	}
	for name, fn := range base().Functions() {
		for _, o := range fn.OverloadDecls() {
			if kind := o.ResultType().Kind(); (kind == types.StringKind || kind == types.BytesKind) && !makesText[name] && !short[name] {
				t.Errorf("%s (%s) gives a text: does it make it?", name, o.ID())
			}
		}
	}
	for name := range makesText {
		if base().Functions()[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
	for name := range guards {
		if base().Functions()[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
}

// Guards leave alone what functions do: also to arguments of the wrong type.
func TestGuardedFunctionsDoWhatTheyDid(t *testing.T) {
	for source, want := range map[string]string{
		"dyn(1).replace('a', 'b')": "no such overload", "'a'.replace(object.n, 'b')": "no such overload", "dyn([1]).join()": "", "object.n.split('')": "no such overload",
		"object.n.flatten()": "no such overload", "object.n.distinct()": "no such overload", "'%d'.format([object.s])": "only be used on integers",
	} {
		if _, err := eval(t, source, names{"object": map[string]any{"n": int64(1), "s": "x"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}
