package rules

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shape shows segments: text as it is, CEL between « and ».
func shape(segments []segment) string {
	var b strings.Builder
	for _, s := range segments {
		if s.cel {
			b.WriteString("«" + s.text + "»")
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

func TestSplit(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"plain $ } {":                      "plain $ } {",
		"${a}":                             "«a»",
		"x-${a}-${b}y":                     "x-«a»-«b»y",
		"${a}${b}":                         "«a»«b»",
		"$${a}":                            "${a}",
		"$$${a}":                           "$${a}",
		"$${a} ${b}":                       "${a} «b»",
		"${{'k': {'l': 1}}}":               "«{'k': {'l': 1}}»",
		"${'}'}":                           "«'}'»",
		`${"}"}`:                           `«"}"»`,
		`${'\'}'}`:                         `«'\'}'»`,
		`${r'\'}`:                          `«r'\'»`,
		`${br"\"}`:                         `«br"\"»`,
		`${xr'\'}'}`:                       `«xr'\'}'»`,
		"${'''a'}'''}":                     "«'''a'}'''»",
		"${\"\"\"a\n\"}\"\"\"}":            "«\"\"\"a\n\"}\"\"\"»",
		"${a // }\n}":                      "«a // }\n»",
		"${a / b}":                         "«a / b»",
		"${'ä${b}'}":                       "«'ä${b}'»",
		"${object.a['x}y'].map(e, {e:1})}": "«object.a['x}y'].map(e, {e:1})»",
	} {
		got, err := split(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, shape(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func TestSplitSaysWhereATemplateIsBroken(t *testing.T) {
	for in, offset := range map[string]int{"${": 0, "x ${a": 2, "ä ${a": 3, "${a} ${b {}": 5, "${'a}": 2, "${a + \"b\n\"}": 6, "${'''a'}": 2, `${'\`: 2} {
		_, err := split(in)
		var broken *splitError
		if !errors.As(err, &broken) || broken.offset != offset {
			t.Errorf("%q: %v, want offset %d", in, err, offset)
		}
	}
}

// What is split can be put together again, and offsets point to what they name.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "${a}", "x $${ ${'}'} ${{'a': 1}}", "$$${a}", "${r'\\'}", "${'''}'''}", "${a // }\n}", "${\"", "${b'\\'}", "ä${ö}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		segments, err := split(s)
		if err != nil {
			var broken *splitError
			if !errors.As(err, &broken) || broken.offset < 0 || broken.offset > len(s) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		var b strings.Builder
		for _, seg := range segments {
			if seg.cel {
				if s[seg.offset:seg.offset+len(seg.text)] != seg.text {
					t.Errorf("%q: %q is not at %d", s, seg.text, seg.offset)
				}
				b.WriteString("${" + seg.text + "}")
				continue
			}
			b.WriteString(strings.ReplaceAll(seg.text, "${", "$${"))
		}
		if b.String() != s {
			t.Errorf("%q was split into %q", s, b.String())
		}
	})
}
