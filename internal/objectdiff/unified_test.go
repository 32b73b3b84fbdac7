package objectdiff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnified(t *testing.T) {
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", i+1)
		}
		return b.String()
	}
	for _, tc := range []struct{ name, before, after, want string }{
		{"nothing changes", numbers(9), numbers(9), ""},
		{"two empty texts", "", "", ""},
		{"one line of many", numbers(9), strings.Replace(numbers(9), "line 5", "LINE 5", 1), `--- a/x
+++ b/x
@@ -2,7 +2,7 @@
 line 2
 line 3
 line 4
-line 5
+LINE 5
 line 6
 line 7
 line 8
`},
		{"two changes that stand together", numbers(12), strings.NewReplacer("line 3\n", "LINE 3\n", "line 10\n", "line 9.5\nline 10\n").Replace(numbers(12)), `--- a/x
+++ b/x
@@ -1,12 +1,13 @@
 line 1
 line 2
-line 3
+LINE 3
 line 4
 line 5
 line 6
 line 7
 line 8
 line 9
+line 9.5
 line 10
 line 11
 line 12
`},
		{"two that do not", numbers(20), strings.NewReplacer("line 1\n", "", "line 18\n", "LINE 18\n").Replace(numbers(20)), `--- a/x
+++ b/x
@@ -1,4 +1,3 @@
-line 1
 line 2
 line 3
 line 4
@@ -15,6 +14,6 @@
 line 15
 line 16
 line 17
-line 18
+LINE 18
 line 19
 line 20
`},
		{"no line break at the end", "a\nb", "a\nc", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		{"only the line break at the end", "a\nb", "a\nb\n", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"something of nothing", "", "a\n", "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"},
		{"nothing of something", "a\n", "", "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-a\n"},
		{"CRLF", "a\r\nb\r\n", "a\r\nc\r\n", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"},
		// All lines between the two changes occur twice in the text.
		{"objects that are alike", alike("3", "Always"), alike("5", "Never"), `--- a/x
+++ b/x
@@ -1,9 +1,9 @@
 name: a
 spec:
-  replicas: 3
+  replicas: 5
   selector: {}
   image: x
-  pull: Always
+  pull: Never
   env: []
 ---
 name: b
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := string(Unified("a/x", "b/x", []byte(tc.before), []byte(tc.after)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// alike are two objects that differ in their names; the first has these values.
func alike(replicas, pull string) string {
	const object = "name: %s\nspec:\n  replicas: %s\n  selector: {}\n  image: x\n  pull: %s\n  env: []\n"
	return fmt.Sprintf(object, "a", replicas, pull) + "---\n" + fmt.Sprintf(object, "b", "3", "Always")
}

// What is printed leads from one text to the other, also where lines repeat.
func TestUnifiedLeadsToTheOtherText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(lines []string) string { return strings.Join(lines, "") }
	for range 20_000 {
		before := randomLines(random, 12)
		after := append([]string{}, before...)
		for range random.IntN(4) {
			at := random.IntN(len(after) + 1)
			after = append(after[:at:at], append(randomLines(random, 2), after[min(at+random.IntN(3), len(after)):]...)...)
		}
		if random.IntN(4) == 0 {
			trim(before)
		}
		if random.IntN(4) == 0 {
			trim(after)
		}
		unified := Unified("a/x", "b/x", []byte(text(before)), []byte(text(after)))
		got, err := apply(text(before), string(unified))
		if err != nil || got != text(after) {
			t.Fatalf("%q + %s = %q, %v; want %q", text(before), unified, got, err, text(after))
		}
	}
}

// trim takes the line break off the last line.
func trim(lines []string) {
	if n := len(lines); n > 0 {
		lines[n-1] = strings.TrimSuffix(lines[n-1], "\n")
		if lines[n-1] == "" {
			lines[n-1] = "\n"
		}
	}
}

func randomLines(random *rand.Rand, most int) []string {
	out := make([]string, random.IntN(most+1))
	for i := range out {
		out[i] = []string{"a\n", "b\n", "  c\n", "-\n", "---\n", "+++ x\n", "\n", "@@ -1 +1 @@\n", "\\\n"}[random.IntN(9)]
	}
	return out
}

// apply is what patch does: it holds the header's numbers and all context to the
// letter.
func apply(text, unified string) (string, error) {
	lines := splitLines([]byte(text))
	var out []string
	at := 0
	diff := splitLines([]byte(unified))
	for i := 2; i < len(diff); {
		var from, fromCount, to, toCount int
		if _, err := fmt.Sscanf(numbers(diff[i]), "%d %d %d %d", &from, &fromCount, &to, &toCount); err != nil {
			return "", fmt.Errorf("%q: %w", diff[i], err)
		}
		start := from - 1
		if fromCount == 0 {
			start = from
		}
		if start < at || start > len(lines) {
			return "", fmt.Errorf("%q after line %d", diff[i], at)
		}
		out = append(out, lines[at:start]...)
		at = start
		if want := to - 1; toCount > 0 && want != len(out) || toCount == 0 && to != len(out) {
			return "", fmt.Errorf("%q, and %d lines are there", diff[i], len(out))
		}
		for i++; fromCount > 0 || toCount > 0; i++ {
			mark, line := diff[i][0], diff[i][1:]
			if i+1 < len(diff) && diff[i+1] == "\\ No newline at end of file\n" {
				line = strings.TrimSuffix(line, "\n")
				i++
			}
			if mark != '+' {
				if at >= len(lines) || lines[at] != line {
					return "", fmt.Errorf("line %d is not %q", at+1, line)
				}
				at++
				fromCount--
			}
			if mark != '-' {
				out = append(out, line)
				toCount--
			}
		}
	}
	return strings.Join(append(out, lines[at:]...), ""), nil
}

// numbers makes "1 1 2 3" of "@@ -1 +2,3 @@".
func numbers(header string) string {
	fields := strings.Fields(header)
	var out []string
	for _, f := range fields[1:3] {
		start, count, ok := strings.Cut(f[1:], ",")
		if !ok {
			count = "1"
		}
		out = append(out, start, count)
	}
	return strings.Join(out, " ")
}

// The real tools agree, odd file names included.
func TestGitAppliesIt(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed: it is what this test asks")
	}
	random := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	for i, name := range []string{"plain.yaml", "with space.yaml", `quote".yaml`, `back\slash.yaml`, "tab\t.yaml", "ümlaut.yaml", "-dash.yaml"} {
		before := strings.Join(randomLines(random, 40), "") + "end\n"
		after := strings.Join(randomLines(random, 40), "") + fmt.Sprint(i)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), git, "apply", "-p1")
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(Unified(FileName("a/"+name), FileName("b/"+name), []byte(before), []byte(after)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", name, err, out)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != after {
			t.Errorf("%q: %q, %v; want %q", name, got, err, after)
		}
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{"live/Role ns/a b": "live/Role ns/a b", "x\n--- a/y": `"x\012--- a/y"`, "x\x1b[31m": `"x\033[31m"`, "ü": "ü"} {
		if got := Label(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// A file of 50,000 objects is compared in the time that it takes to read it.
func BenchmarkUnified(b *testing.B) {
	const object = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web-%d\nspec:\n  replicas: %d\n  selector: {}\n  template: {}\n"
	var before, after bytes.Buffer
	for i := range 50_000 {
		fmt.Fprintf(&before, object, i, 3)
		fmt.Fprintf(&after, object, i, 5)
	}
	b.SetBytes(int64(before.Len()))
	for b.Loop() {
		Unified("a", "b", before.Bytes(), after.Bytes())
	}
}

func TestColour(t *testing.T) {
	got := string(Colour([]byte("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\r\n--- was\n+++ is\r\n\\ No newline at end of file\n")))
	want := "\x1b[1m--- a/x\x1b[m\n\x1b[1m+++ b/x\x1b[m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[m\n same\r\n\x1b[31m--- was\x1b[m\n\x1b[32m+++ is\x1b[m\r\n\\ No newline at end of file\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
