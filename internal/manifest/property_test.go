package manifest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

// generator writes manifests in a random mix of notations, and random merge patches for them.
type generator struct {
	*rand.Rand
	anchors []string
}

func (g *generator) pick(words ...string) string { return words[g.IntN(len(words))] }

func (g *generator) scalar() string {
	return g.pick("a", "b c", "1", "0644", "2.5", "true", "yes", "null", "~", `"q"`, `"x: y"`, "'s'", "'it''s'", `"\u00e9\n"`, "日本", "12345678901234567890", "100m", "2020-01-01", "{}", "[]",
		"[1, a, {b: c}]", "{x: 1, y: [2]}", "{\n   x: 1,\n   y: 2\n   }", "{ # a\n   x: 1, z: 3, # b\n   # c\n   y: 2 # d\n   }", "[ # a\n   x # b\n   , y\n   ]", "{\n   # none\n   }", "[ # none\n   ]", "http://x/y", "a#b", "-1", "1.0", `""`, "!!str 3", "[ a , b ,]")
}

func (g *generator) comment(pad string) string {
	if g.IntN(4) == 0 {
		return pad + "# note " + g.pick("é", "a: b", "- x", "---") + "\n"
	}
	return ""
}

func (g *generator) block(depth, indent int) string {
	pad := strings.Repeat(" ", indent)
	var b strings.Builder
	list := g.IntN(3) == 0
	for i := range 1 + g.IntN(4) {
		b.WriteString(g.comment(pad))
		head := fmt.Sprintf("%s%s:", pad, g.pick("k", "key", `"q.x/y`, "z")+fmt.Sprint(i))
		if strings.Contains(head, `"`) {
			head = head[:len(head)-1] + `":`
		}
		if list {
			head = pad + "-"
		}
		b.WriteString(head)
		switch k := g.IntN(12); {
		case k < 4 && depth > 0:
			anchor := ""
			if g.IntN(8) == 0 {
				name := fmt.Sprintf("a%d", len(g.anchors))
				anchor = " &" + name
				defer func() { g.anchors = append(g.anchors, name) }()
			}
			b.WriteString(anchor + g.pick("", "", " # why") + "\n" + g.block(depth-1, indent+1+g.IntN(4)))
		case k == 4 && list && depth > 0:
			b.WriteString(" " + strings.TrimLeft(g.block(depth-1, indent+2), " "))
			if g.IntN(2) == 0 {
				return b.String()
			}
		case k == 5:
			b.WriteString(g.pick(" |", " |-", " |+", " >", " >-") + g.pick("", " # c") + "\n" + pad + "  one\n\n" + pad + "  two\n" + g.pick("", "\n"))
		case k == 6 && len(g.anchors) > 0:
			b.WriteString(" *" + g.pick(g.anchors...) + "\n")
		case k == 7 && len(g.anchors) > 0 && !list:
			b.WriteString("\n" + pad + "  <<: *" + g.pick(g.anchors...) + "\n" + pad + "  own: 1\n")
		case k == 8:
			b.WriteString("\n")
		default:
			b.WriteString(" " + strings.ReplaceAll(g.scalar(), "\n", "\n"+pad) + g.pick("", "", "  # c") + "\n")
		}
	}
	return b.String()
}

func (g *generator) yaml() string {
	g.anchors = nil
	body := g.block(3, g.IntN(3)*2+2)
	return g.pick("", "# head\n", "---\n", "--- # x\n") + "apiVersion: v1\nkind: Thing\nmetadata:\n  name: x\n  labels: {a: b}\nspec:\n" + body + g.comment("") +
		g.pick("", "status:\n", "tail: |\n  x\n", "tail: x")
}

// change returns a patch that touches some of v's entries.
func (g *generator) change(v any, depth int) any {
	m, ok := v.(map[string]any)
	if !ok || depth == 0 || g.IntN(12) == 0 {
		return g.fresh(2)
	}
	patch := map[string]any{}
	for k, e := range m {
		switch g.IntN(5) {
		case 0:
			patch[k] = nil
		case 1, 2:
			if list, ok := e.([]any); ok {
				patch[k] = g.list(list, depth-1)
			} else {
				patch[k] = g.change(e, depth-1)
			}
		}
	}
	for range g.IntN(3) {
		patch[g.pick("new", "yes", "a/b", "1", "k: k", "é", "")] = g.fresh(2)
	}
	return patch
}

func (g *generator) list(old []any, depth int) []any {
	var out []any
	for _, e := range old {
		switch g.IntN(5) {
		case 0:
		case 1:
			out = append(out, g.fresh(1), e)
		case 2:
			if m, ok := e.(map[string]any); ok {
				c := map[string]any{}
				for k, v := range m {
					c[k] = v
				}
				c[g.pick("k", "n")] = g.fresh(1)
				e = c
			}
			out = append(out, e)
		default:
			out = append(out, e)
		}
	}
	if g.IntN(2) == 0 {
		out = append(out, g.fresh(2))
	}
	return out
}

func (g *generator) fresh(depth int) any {
	switch k := g.IntN(14); {
	case k < 2 && depth > 0:
		return map[string]any{"a": g.fresh(depth - 1), "yes": g.fresh(depth - 1)}
	case k < 4 && depth > 0:
		return []any{g.fresh(depth - 1), g.fresh(depth - 1)}
	case k == 4:
		return map[string]any{}
	case k == 5:
		return []any{}
	case k == 6:
		return float64(g.IntN(9)) + 0.5
	case k < 9:
		return int64(g.IntN(2000000) - 1000)
	case k == 9:
		return g.IntN(2) == 0
	}
	return g.pick("", "yes", "012", "1e3", "null", " lead", "trail ", "a: b", "a #b", "#x", "two\nlines\n", "no\nend", "\n", " x\ny", "tab\there", "é\u0085\u2028\x7f", "plain", "1:30", "<<", "'q'", `"d"`, "a\r\nb", "{x", "😀", "~", "-", "x:",
		"a\n\n", "---", "...", "%x", "&a", "*a", "!t", "@x", "`y")
}

// TestUnracedRandomChanges checks that the new text holds exactly the wanted values, whatever the notation, and that nothing else moves.
func TestUnracedRandomChanges(t *testing.T) {
	failed := 0
	for seed := range uint64(6000) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		text := g.yaml()
		if seed%4 == 0 {
			if other := g.yaml(); !strings.HasPrefix(other, "---") {
				text = strings.TrimRight(text, "\n") + "\n---\n" + other
			}
		}
		if seed%5 == 0 {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		f, err := Parse("m.yaml", []byte(text))
		if err != nil {
			continue // the generator makes some that are not YAML
		}
		if seed%7 == 0 {
			b, err := json.MarshalIndent(f.Objects()[0].Value(), "", g.pick("", "  ", "\t"))
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
			if f, err = Parse("m.json", b); err != nil {
				t.Fatal(err)
			}
		}
		if !changeAndCheck(t, g, text, f) {
			failed++
		}
	}
	if failed > 6 {
		t.Errorf("%d changes were refused", failed)
	}
}

func changeAndCheck(t *testing.T, g *generator, text string, f *File) bool {
	t.Helper()
	for _, o := range f.Objects() {
		if err := o.Update(o.Value()); err != nil {
			t.Fatal(err)
		}
	}
	if got := output(t, f); got != text {
		t.Fatalf("no change, but (-want +got):\n%s", cmp.Diff(text, got))
	}
	var want []map[string]any
	for i, o := range f.Objects() {
		v := o.Value()
		if i == 0 {
			patch, ok := g.change(map[string]any{"spec": v["spec"]}, 4).(map[string]any)
			if !ok {
				patch = map[string]any{"spec": g.fresh(2)}
			}
			b, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			v = mergePatch(t, v, b)
			if err := o.Update(v); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, withoutNulls(t, v))
	}
	out, err := f.Bytes()
	if err != nil {
		t.Logf("%v in\n%s\nwanted %v", err, text, want)
		return false
	}
	again, err := Parse("again", out)
	if err != nil {
		t.Fatalf("%v\n%s\nfrom\n%s", err, out, text)
	}
	if len(again.Objects()) != len(want) {
		t.Fatalf("%d objects, want %d in\n%s", len(again.Objects()), len(want), out)
	}
	for i, o := range again.Objects() {
		if !jsonvalue.Equal(o.Value(), want[i]) {
			t.Fatalf("(-want +got):\n%s\n%s\nfrom\n%s", cmp.Diff(want[i], o.Value()), out, text)
		}
	}
	for _, inexact := range []string{"12345678901234567000", "1.2345"} {
		if strings.Contains(string(out), inexact) && !strings.Contains(text, inexact) {
			t.Fatalf("a big integer was rewritten:\n%s\nfrom\n%s", out, text)
		}
	}
	return true
}

// TestUnracedOneScalarIsOneLine checks that a changed scalar changes its own line only.
func TestUnracedOneScalarIsOneLine(t *testing.T) {
	tried := 0
	for seed := range uint64(3000) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		text := g.yaml()
		if strings.Contains(text, "&a") {
			continue
		}
		f, err := Parse("m.yaml", []byte(text))
		if err != nil {
			continue
		}
		want := withoutNulls(t, f.Objects()[0].Value())
		if !changeOne(g, want) {
			continue
		}
		tried++
		if err := f.Objects()[0].Update(want); err != nil {
			t.Fatal(err)
		}
		before, after := strings.Split(text, "\n"), strings.Split(output(t, f), "\n")
		if len(before) != len(after) {
			t.Fatalf("lines were added or removed:\n%s", cmp.Diff(before, after))
		}
		n := 0
		for i := range before {
			if before[i] != after[i] {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d lines changed:\n%s", n, cmp.Diff(before, after))
		}
	}
	if tried < 300 {
		t.Errorf("only %d documents were tried", tried)
	}
}

// TestUnracedSmallEditsSuffice checks that without anchors no block has to be written anew: the verification would hide a poor editor.
func TestUnracedSmallEditsSuffice(t *testing.T) {
	tried := 0
	for seed := range uint64(3000) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 3))}
		text := g.yaml()
		f, err := Parse("m.yaml", []byte(text))
		if err != nil || strings.Contains(text, "&a") {
			continue
		}
		o := f.Objects()[0]
		patch, ok := g.change(map[string]any{"spec": o.Value()["spec"]}, 4).(map[string]any)
		if !ok {
			continue
		}
		b, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Update(mergePatch(t, o.Value(), b)); err != nil {
			t.Fatal(err)
		}
		if !o.Changed() {
			continue
		}
		tried++
		w := writer{doc: f.documents[0], data: f.data}
		if !w.try([]change{{o, anyDepth}}) {
			t.Errorf("the edits of %s do not give the wanted value in\n%s", b, text)
		}
	}
	if tried < 1000 {
		t.Errorf("only %d documents were tried", tried)
	}
}

// changeOne changes a scalar of one line somewhere in v.
func changeOne(g *generator, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "apiVersion" || k == "kind" || k == "metadata" {
				continue
			}
			if isLeaf(e) {
				v[k] = int64(4711)
				return true
			}
			if changeOne(g, e) {
				return true
			}
		}
	case []any:
		for i, e := range v {
			if isLeaf(e) {
				v[i] = "changed"
				return true
			}
			if changeOne(g, e) {
				return true
			}
		}
	}
	return false
}

func isLeaf(v any) bool {
	switch v := v.(type) {
	case string:
		return !strings.Contains(v, "\n") && !strings.Contains(v, "one")
	case int64, float64, bool:
		return true
	}
	return false
}

func FuzzChange(f *testing.F) {
	f.Add("apiVersion: v1\nkind: A\nspec: {a: 1}\n", `{"spec":{"a":2,"b":["x"]}}`)
	f.Add("apiVersion: v1\nkind: A\nspec:\n- &x a # c\n- *x\n- - b\n", `{"spec":["c","a",[1]]}`)
	f.Add("{\"apiVersion\":\"v1\",\"kind\":\"A\",\"s\":{}}{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[]}", `{"s":{"a":null,"b":"\n"}}`)
	f.Fuzz(func(t *testing.T, text, patch string) {
		file, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		if out, err := file.Bytes(); err != nil || string(out) != text {
			t.Fatalf("unchanged, but %q, %v", out, err)
		}
		var change map[string]any
		if json.Unmarshal([]byte(patch), &change) != nil || len(file.Objects()) == 0 {
			return
		}
		o := file.Objects()[0]
		want := mergePatch(t, o.Value(), []byte(patch))
		if want["apiVersion"] == nil || want["kind"] == nil || o.Update(want) != nil {
			return
		}
		out, err := file.Bytes()
		if err != nil {
			return
		}
		again, err := Parse("again", out)
		if err != nil || len(again.Objects()) == 0 {
			return // the patch made something of it that is no object
		}
		if !jsonvalue.Equal(again.Objects()[0].Value(), withoutNulls(t, want)) {
			t.Fatalf("%q: %s", out, cmp.Diff(want, again.Objects()[0].Value()))
		}
	})
}
