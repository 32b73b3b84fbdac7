package yamldoc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// yardstick is what kubectl and the API machinery make of a document.
func yardstick(doc string) (any, error) {
	j, err := sigsyaml.YAMLToJSON([]byte(doc))
	if err != nil {
		return nil, err
	}
	var v any
	err = utiljson.Unmarshal(j, &v)
	return v, err
}

func inexact(t *testing.T, doc string) (any, error) {
	t.Helper()
	docs, err := Parse("f.yaml", []byte(doc), Limits{})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("got %d documents", len(docs))
	}
	return docs[0].InexactValue()
}

var scalars = strings.Fields(`yes No ON off y n Y N true FALSE True null Null ~ 0 1 -1 +1 3 0644 0o644 0O644 08 09 0x1F 0X1f -0x1F 0b101 -0b101 0b+1 0b-1 -0b-1
	1_000 1__0 _1 1_ 0_644 1.0 1.5 1. .5 -.5 +.5 -1.0 0.1 1e3 1E3 1e-3 1.5e300 1e400 1e21 1e20 1e19 1.7976931348623157e308 .e1 1e 12e03 -0 -0.0 0.0
	9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616
	12345678901234567890 123456789012345678901234567890 1152921504606846976.0 9007199254740993 9007199254740993.0 .inf -.inf +.Inf .nan .NaN .Inf. .1.2
	2020-01-01 2020-01-01T00:00:00Z 2020-13-01 1:30 190:20:30 1.2.3 100m 5Gi = << - ? a b-c "yes" '012' "" '' "a\tb" 'it''s' "\u00e9" é 日本 "😀" x:y a#b
	!!str¬12 !!str¬yes !!int¬"3" !!int¬3 !!float¬3 !!float¬"3.5" !!bool¬yes !!bool¬x !!null¬~ !!null¬x !!binary¬aGVsbG8= !!binary¬_ !!binary¬/w== !custom¬3
	!!timestamp¬2020-01-01 !!timestamp¬x !!int¬1.5 !!float¬x !!str¬ {} [] [yes,¬012] {y:¬1} {a:¬{b:¬null}}`)

func TestScalarsAsTheAPIMachineryReadsThem(t *testing.T) {
	for _, s := range scalars {
		s = strings.ReplaceAll(s, "¬", " ")
		t.Run(s, func(t *testing.T) {
			for _, doc := range []string{"v: " + s + "\n", "- " + s + "\n", s + ": v\n"} {
				want, wantErr := yardstick(doc)
				got, err := inexact(t, doc)
				if strings.HasPrefix(doc, "<<: ") || strings.ContainsAny(doc[:1], "[{") {
					continue // a merge of a string, a key that is a list: errors here, accidents there
				}
				if (err != nil) != (wantErr != nil) {
					t.Fatalf("%q: error %v, want %v", doc, err, wantErr)
				}
				if diff := cmp.Diff(want, got); diff != "" && err == nil {
					t.Errorf("%q (-want +got):\n%s", doc, diff)
				}
			}
		})
	}
}

func TestDocumentsAsTheAPIMachineryReadsThem(t *testing.T) {
	for _, doc := range []string{
		"base: &b {k: 1}\nc: {<<: *b, k: 2, z: 3}\n",
		"a: &a {x: 1, y: 2}\nb: &b {x: 3, z: 4}\nc:\n  <<: [*a, *b]\n  w: 5\n",
		"a: &a {x: 1}\nb: &b\n  <<: *a\n  q: 1\nc: {<<: *b}\n",
		"a: &x yes\nb: *x\nc: [*x, *x]\n",
		"defaultMode: 0644\nother: [0o644, 08, 1_000, 0x1F]\n",
		"big: 9223372036854775807\n",
		"text: |\n  a\n   b\n\n  c\nfolded: >-\n  a\n  b\n\n  c\n   d\n",
		"plain: a\n  b\n\n  c\n",
		"k: \"a\\\n   b\\n\\x41\\u00e9\\U0001F600\"\n",
		"? a\n: b\n",
		"1: a\n1.5: b\n2020-01-01: c\n",
		"--- {b: 2}\n",
		"--- |\n text\n",
		"%YAML 1.1\n---\na: 1\n",
		"{\"a\": 1, \"b\": [1, 2.5, true, null, \"x\\ty\"]}",
		"{\"a\":1}",
	} {
		want, wantErr := yardstick(doc)
		got, err := inexact(t, doc)
		if err != nil || wantErr != nil {
			t.Errorf("%q: error %v, yardstick %v", doc, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", doc, diff)
		}
	}
}

func TestValueRefusesIntegersThatWouldLoseDigits(t *testing.T) {
	for literal, ok := range map[string]bool{
		"9223372036854775807": true, "9223372036854775808": false, "12345678901234567890": false, "123456789012345678901234567890": false,
		"-9223372036854775808": true, "-9223372036854775809": false, "1e30": true, "08": true, "+99999999999999999999": false,
	} {
		docs, err := Parse("r.yaml", []byte("a:\n  v: "+literal+"\n"), RuleLimits)
		if err != nil {
			t.Fatal(err)
		}
		_, err = docs[0].Value()
		if (err == nil) != ok {
			t.Errorf("%s: error %v", literal, err)
		}
		if want := "r.yaml:2:6: integer " + literal + " does not fit into 64 bits"; !ok && err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		_, err = Value(docs[0].Root)
		var e *Error
		if !ok && (!errors.As(err, &e) || e.Pos != Position{"", 2, 6}) {
			t.Errorf("Value(node): error %v", err)
		}
	}
}

func TestMergedKeysYieldToExplicitOnesWhereverTheyStand(t *testing.T) {
	for _, c := range []string{"{<<: *b, k: 2}", "{k: 2, <<: *b}"} {
		got, err := inexact(t, "base: &b {k: 1, z: 3}\nc: "+c+"\n")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"k": int64(2), "z": int64(3)}
		if diff := cmp.Diff(want, got.(map[string]any)["c"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c, diff)
		}
	}
}

func TestJSONNumbersAreReadLikeYAMLNumbers(t *testing.T) {
	for _, doc := range []string{`{"a": 1.0, "b": 1, "c": 0.5}`, "a: 1.0\nb: 1\nc: 0.5\n"} {
		got, err := inexact(t, doc)
		want := map[string]any{"a": int64(1), "b": int64(1), "c": 0.5}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", doc, err, diff)
		}
	}
}

func TestIsString(t *testing.T) {
	for text, want := range map[string]bool{
		"yes": false, "012": false, "3": false, "null": false, "~": false, "1.5": false, "on": false, "[]": false, "{}": false,
		`"yes"`: true, "'3'": true, "abc": true, "2020-01-01": true, "1.2.3": true, "!!str 3": true, "100m": true, "!!int x": false,
	} {
		docs, err := Parse("", []byte("a: &x "+text+"\nb: *x\n"), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < 4; i += 2 {
			if got := IsString(docs[0].Root.Content[i]); got != want {
				t.Errorf("IsString(%s) = %v, want %v", text, got, want)
			}
		}
	}
}

func TestField(t *testing.T) {
	docs, err := Parse("f", []byte("base: &b {k: 1, l: 7}\nc: {<<: *b, k: 2}\nd: *b\ny: on\n"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	root := docs[0].Root
	_, c := Field(root, "c")
	_, d := Field(root, "d")
	if _, v := Field(c, "k"); v == nil || v.Value != "2" {
		t.Errorf("c.k = %v", v)
	}
	if k, v := Field(c, "l"); v == nil || v.Value != "7" || k.Line != 1 {
		t.Errorf("c.l = %v", v)
	}
	if _, v := Field(d, "k"); v == nil || v.Value != "1" {
		t.Errorf("d.k = %v", v)
	}
	if k, _ := Field(root, "true"); k == nil || k.Value != "y" {
		t.Errorf("true = %v", k)
	}
	if k, v := Field(root, "zz"); k != nil || v != nil {
		t.Errorf("zz = %v, %v", k, v)
	}
	if k, _ := Field(nil, "a"); k != nil {
		t.Error("Field of nil")
	}
}

// randomDocument writes a document in a random mix of notations.
func randomDocument(r *rand.Rand) string {
	var block func(depth, indent int) string
	pick := func() string {
		for {
			s := strings.ReplaceAll(scalars[r.IntN(len(scalars))], "¬", " ")
			if s != "-" && s != "?" && s != "<<" && s != "!!str " {
				return s
			}
		}
	}
	block = func(depth, indent int) string {
		pad := strings.Repeat(" ", indent)
		var b strings.Builder
		n := 1 + r.IntN(4)
		list := r.IntN(3) == 0
		for i := range n {
			key := fmt.Sprintf("k%d:", i)
			if list {
				key = "-"
			}
			b.WriteString(pad + key)
			switch k := r.IntN(8); {
			case k == 0 && depth > 0:
				b.WriteString(" # note\n" + block(depth-1, indent+2))
			case k <= 2 && depth > 0:
				b.WriteString("\n" + block(depth-1, indent+1+r.IntN(4)))
			case k == 3:
				b.WriteString(" |-\n" + pad + "  one\n\n" + pad + "    two # é\n")
			case k == 4:
				b.WriteString(" >\n" + pad + "   one\n" + pad + "   two\n\n" + pad + "     three\n" + pad + "   four\n")
			case k == 5:
				b.WriteString(" " + []string{"plain\n" + pad + "  text", "\"double \\\"q\\u00e9\n\n " + pad + " text\"", "'single\n " + pad + " it''s'", "{a: [1, b], c: 'd'}"}[r.IntN(4)] + "\n")
			default:
				b.WriteString(" " + pick() + "\n")
			}
			if r.IntN(6) == 0 {
				b.WriteString(pad + "# comment é\n")
			}
		}
		return b.String()
	}
	return block(3, 0)
}

func TestUnracedRandomDocumentsAsTheAPIMachineryReadsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	good := 0
	for i := range 2000 {
		doc := randomDocument(r)
		if i%3 == 0 {
			doc = strings.ReplaceAll(doc, "\n", "\r\n")
		}
		if compare(t, doc) {
			good++
		}
	}
	if good < 500 {
		t.Errorf("only %d documents were valid", good)
	}
}

// compare holds a document against the yardstick and checks its positions; it returns false for what both refuse.
func compare(t *testing.T, doc string) bool {
	t.Helper()
	want, wantErr := yardstick(doc)
	got, err := inexact(t, doc)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("error %v, want %v in\n%s", err, wantErr, doc)
	}
	if err != nil {
		return false
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s\nin\n%s", diff, doc)
	}
	checkPositions(t, doc)
	return true
}
