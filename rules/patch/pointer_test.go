package patch

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePointer(t *testing.T) {
	for in, want := range map[string]Pointer{
		"/spec/replicas":                      {"spec", "replicas"},
		"/metadata/annotations/example.io~1t": {"metadata", "annotations", "example.io/t"},
		"/a~01b":                              {"a~1b"},
		"/x~1y~0z":                            {"x/y~z"},
		"/spec/containers/0/ports/-":          {"spec", "containers", "0", "ports", "-"},
		"/ ":                                  {" "},
		"/é":                                  {"é"},
	} {
		got, err := ParsePointer(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
		if got.String() != in {
			t.Errorf("%q is written back as %q", in, got)
		}
	}
}

func TestParsePointerRefusesWithTheOffset(t *testing.T) {
	for in, offset := range map[string]int{
		"spec/replicas": 0,
		"~1":            0,
		"/":             1,
		"/a//b":         3,
		"/a/":           3,
		"/a/b~2c":       4,
		"/a/b~":         4,
		"/a~/b":         2,
		"/a/\xff":       3,
	} {
		_, err := ParsePointer(in)
		var pe *PointerError
		if !errors.As(err, &pe) || pe.Offset != offset || errors.Is(err, ErrWholeDocument) {
			t.Errorf("%q: got %v, want a PointerError at %d", in, err, offset)
		}
	}
}

func TestParsePointerNamesTheWholeDocument(t *testing.T) {
	if _, err := ParsePointer(""); !errors.Is(err, ErrWholeDocument) {
		t.Errorf("got %v", err)
	}
}

func TestHasPrefixComparesTokens(t *testing.T) {
	p := Pointer{"spec", "template"}
	for _, tc := range []struct {
		q    Pointer
		want bool
	}{{nil, true}, {Pointer{"spec"}, true}, {p, true}, {Pointer{"spe"}, false}, {Pointer{"spec", "template", "x"}, false}} {
		if got := p.HasPrefix(tc.q); got != tc.want {
			t.Errorf("%v.HasPrefix(%v) = %v", p, tc.q, got)
		}
	}
}

func TestChildrenOfOnePointerDoNotShareMemory(t *testing.T) {
	p := make(Pointer, 1, 8)
	p[0] = "a"
	b, c := p.child("b"), p.child("c")
	if b.String() != "/a/b" || c.String() != "/a/c" {
		t.Errorf("got %s and %s", b, c)
	}
}
