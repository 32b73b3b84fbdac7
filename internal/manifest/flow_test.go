package manifest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// flowText writes a mapping in brackets over several lines. Key kN has the comment "# endN" behind it where it ends its line, and "# overN"
// above it where it begins one, at random.
func flowText(r *rand.Rand, eol string) (text string, keys int) {
	var b strings.Builder
	b.WriteString("data: {")
	keys = 2 + r.IntN(5)
	fresh := false // at the start of a line
	if r.IntN(2) == 0 {
		b.WriteString(eol + "  ")
		fresh = true
	}
	for i := range keys {
		if fresh && r.IntN(3) == 0 {
			fmt.Fprintf(&b, "# over%d%s  ", i, eol)
		}
		fmt.Fprintf(&b, "k%d: v%d", i, i)
		if i < keys-1 || r.IntN(4) == 0 {
			b.WriteString(",")
		}
		fresh = r.IntN(3) > 0
		switch {
		case fresh && r.IntN(2) == 0:
			fmt.Fprintf(&b, " # end%d%s  ", i, eol)
		case fresh:
			b.WriteString(eol + "  ")
		default:
			b.WriteString(" ")
		}
	}
	if fresh && r.IntN(4) == 0 {
		b.WriteString("# last" + eol + "  ")
	}
	return "apiVersion: v1" + eol + "kind: A" + eol + b.String() + "}" + eol, keys
}

// TestUnracedFlowCommentsStayWithTheirKeys changes mappings in brackets at random. A key that stays has the comments that it had, on its line and above it.
func TestUnracedFlowCommentsStayWithTheirKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := 0
	for range 3000 {
		text, keys := flowText(r, []string{"\n", "\r\n"}[r.IntN(2)])
		f := parse(t, text)
		o := f.Objects()[0]
		patch, kept := map[string]any{}, []int{}
		for i := range keys {
			switch r.IntN(3) {
			case 0:
				patch[fmt.Sprintf("k%d", i)] = nil
			case 1:
				patch[fmt.Sprintf("k%d", i)] = "new value"
				fallthrough
			default:
				kept = append(kept, i)
			}
		}
		for i := range r.IntN(3) {
			patch[fmt.Sprintf("n%d", i)] = "x"
		}
		if len(kept) == 0 {
			continue // the mapping is written anew
		}
		data := map[string]any{}
		for k, v := range o.Value()["data"].(map[string]any) {
			data[k] = v
		}
		for k, v := range patch {
			data[k] = v
		}
		if err := o.Update(map[string]any{"apiVersion": "v1", "kind": "A", "data": data}); err != nil {
			t.Fatal(err)
		}
		out := output(t, f)
		for _, i := range kept {
			for _, pattern := range []string{`(?m)\bk%d: [^#\n]*# end%[1]d\r?$`, `# over%d\r?\n *k%[1]d:`} {
				p := regexp.MustCompile(fmt.Sprintf(pattern, i))
				if !p.MatchString(text) {
					continue
				}
				if seen++; !p.MatchString(out) {
					t.Fatalf("a comment of k%d is lost or moved in\n%s\nwhich came out as\n%s", i, text, out)
				}
			}
		}
		if strings.Contains(text, "# last") && !strings.Contains(out, "# last") {
			t.Fatalf("the last comment is lost in\n%s\nwhich came out as\n%s", text, out)
		}
		if strings.Count(out, "\n") != strings.Count(out, "\r\n") && strings.Contains(text, "\r\n") {
			t.Fatalf("line breaks are mixed in %q", out)
		}
	}
	if seen < 1000 {
		t.Errorf("only %d comments were looked at", seen)
	}
}
