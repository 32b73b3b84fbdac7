package expression

import (
	"errors"
	"fmt"
	"testing"
)

// A value that holds the one before it twice, and so on, is small for CEL and
// beyond all measure as a tree.
func TestUnracedAResultBeyondMeasureIsRefused(t *testing.T) {
	for _, form := range []string{
		"{'a': v, 'b': v}", "[v, v]", "Object{spec: v, status: v}", "[JSONPatch{op: 'add', path: '/a', value: [v, v]}]",
	} {
		var v any = int64(1)
		for range 60 {
			e, err := env(t, "v").WithPatchTypes()
			if err != nil {
				t.Fatal(err)
			}
			p, issues := e.Compile(form)
			if issues != nil {
				t.Fatal(form, issues)
			}
			value, err := p.Eval(names{"v": v})
			if v = value; err != nil {
				v = err
			}
		}
		if err, refused := v.(error); !refused || !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s, 60 times: %v, want %v", form, err, ErrTooLarge)
		}
	}
}

// What loops make is not counted until it is used.
func TestALargeResultOfALoopIsNotConverted(t *testing.T) {
	p, issues := env(t, "v").Compile("lists.range(101).map(i, v)")
	if issues != nil {
		t.Fatal(issues)
	}
	value, err := p.Eval(names{"v": make([]any, 10_000)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := value.Native(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%T, %v, want %v", got, err, ErrTooLarge)
	}
}

func TestALargeResultIsConverted(t *testing.T) {
	p, issues := env(t, "v").Compile("v.map(x, {'x': x, 'y': [x]})")
	if issues != nil {
		t.Fatal(issues)
	}
	list := make([]any, 1000)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	value, err := p.Eval(names{"v": list})
	if err != nil {
		t.Fatal(err)
	}
	got, err := value.Native()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.([]any)); n != len(list) {
		t.Errorf("%d elements, want %d", n, len(list))
	}
}
