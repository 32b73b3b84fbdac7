package strictyaml

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

type format struct {
	place
	Name  string            `json:"name"`
	Ready *bool             `json:"ready"`
	Tags  []string          `json:"tags"`
	Extra map[string]string `json:"extra,omitempty"`
	Parts []part            `json:"parts"`
	Own   own               `json:"own"`
	inner string            // not of the format
}

type part struct {
	Size *string `json:"size"`
}

type place struct{ line int }

func (p *place) Locate(n *yaml.Node) { p.line = n.Line }

// own reads its node itself, null too.
type own struct{ text string }

func (o *own) DecodeNode(_ *Decoder, n *yaml.Node, path string) { o.text = path + "=" + n.Value }

func decode(t *testing.T, text string) (format, []string) {
	t.Helper()
	docs, err := yamldoc.Parse("f", []byte(text), yamldoc.Limits{})
	if err != nil || len(docs) != 1 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	var out format
	var problems []string
	d := &Decoder{Doc: docs[0], Whole: "a format", Report: func(at yamldoc.Position, msg string) {
		problems = append(problems, fmt.Sprintf("%d:%d: %s", at.Line, at.Column, msg))
	}}
	d.Decode(docs[0].Root, &out, "")
	return out, problems
}

func TestWhatFitsIsFilledIn(t *testing.T) {
	got, problems := decode(t, "defaults: &d {size: big}\n")
	if len(problems) != 1 || got.line != 1 {
		t.Errorf("got %+v, %q", got, problems)
	}
	text := "tags: &tags [a, \"no\"]\nname: x\nready: yes\nextra: {k: v}\nparts: [{size: big}, &p {size: small}, *p]\nown: ~\n"
	got, problems = decode(t, text)
	if len(problems) > 0 {
		t.Fatalf("got %q", problems)
	}
	yes, big, small := true, "big", "small"
	want := format{place{1}, "x", &yes, []string{"a", "no"}, map[string]string{"k": "v"}, []part{{&big}, {&small}, {&small}}, own{"own=~"}, ""}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(format{}, place{}, own{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatDoesNotFitIsReported(t *testing.T) {
	for text, want := range map[string][]string{
		"[a]":                  {"1:1: a format must be a mapping, not a list"},
		"nmae: x":              {`1:1: unknown field "nmae" (did you mean "name"?)`},
		"inner: x":             {`1:1: unknown field "inner"`},
		"name: 3":              {"1:7: name must be a string, but YAML reads 3 as a number: quote it"},
		"name: [x]":            {"1:7: name must be a string, not a list"},
		"name: !has x":         {"1:7: YAML reads !has as a tag: quote what begins with !"},
		"name:":                {"1:6: name is empty: give it a value or remove it"},
		"ready: maybe":         {"1:8: ready must be true or false, not a string"},
		"ready: 1":             {"1:8: ready must be true or false, not a number"},
		"tags: {a: b}":         {"1:7: tags must be a list, not a mapping"},
		"tags: [~, on]":        {"1:8: tags[0] is empty: give it a value or remove it", "1:11: tags[1] must be a string, but YAML reads on as a bool: quote it"},
		"extra: {a: 1, no: b}": {"1:12: extra.a must be a string, but YAML reads 1 as a number: quote it", "1:15: the key must be a string, but YAML reads no as a bool: quote it"},
		"extra: a":             {"1:8: extra must be a mapping, not a string"},
		"parts: [{sizes: a}]":  {`1:10: unknown field "sizes" in parts[0] (did you mean "size"?)`},
		"parts: [{size: ~}]":   {"1:16: parts[0].size is empty: give it a value or remove it"},
	} {
		if _, problems := decode(t, text); !cmp.Equal(want, problems) {
			t.Errorf("%s (-want +got):\n%s", text, cmp.Diff(want, problems))
		}
	}
}

// An explicit entry wins over a merged one, wherever it stands; of merged ones,
// the first.
func TestPairs(t *testing.T) {
	docs, err := yamldoc.Parse("f", []byte("- &a {x: 1, y: 1}\n- &b {y: 2, z: 2}\n- {<<: [*a, *b], z: 3}\n- {x: 4, <<: *a}\n"), yamldoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{2: "z3 x1 y1 ", 3: "x4 y1 "} {
		got := ""
		for _, p := range Pairs(docs[0].Root.Content[i]) {
			got += p.Key.Value + p.Value.Value + " "
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
