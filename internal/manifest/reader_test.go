package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// reading is what comes of reading a manifest and changing its objects.
type reading struct {
	Text     string
	Objects  []string
	Warnings []string
	Errors   []string
}

// touch changes an object, and describes what it was.
func touch(t *testing.T, out *reading, o *Object, change func(map[string]any) map[string]any) {
	t.Helper()
	out.Objects = append(out.Objects, fmt.Sprintf("%v %s %v", o.Position(), o.Path(), o.Value()))
	if err := o.Update(change(o.Value())); err != nil {
		t.Fatal(err)
	}
}

func readWhole(t *testing.T, name, text string, change func(map[string]any) map[string]any) (out reading) {
	t.Helper()
	f, err := Parse(name, []byte(text))
	if err != nil {
		return reading{Errors: []string{err.Error()}}
	}
	for _, o := range f.Objects() {
		touch(t, &out, o, change)
	}
	for _, w := range f.Warnings() {
		out.Warnings = append(out.Warnings, w.Error())
	}
	b, err := f.Bytes()
	if err != nil {
		out.Errors = append(out.Errors, err.Error())
	}
	out.Text = string(b)
	return out
}

func readParts(t *testing.T, name string, in io.Reader, splitFrom int, change func(map[string]any) map[string]any) (out reading) {
	t.Helper()
	r := NewReader(name, in)
	r.scanner.SplitFrom = splitFrom
	for {
		f, err := r.Next()
		switch {
		case err == io.EOF:
			return out
		case errors.As(err, new(*yamldoc.Error)):
			out.Errors = append(out.Errors, err.Error())
			continue
		case err != nil:
			t.Fatal(err)
		}
		for _, o := range f.Objects() {
			touch(t, &out, o, change)
		}
		for _, w := range f.Warnings() {
			out.Warnings = append(out.Warnings, w.Error())
		}
		b, err := f.Bytes()
		if err != nil {
			out.Errors = append(out.Errors, err.Error())
		}
		out.Text += string(b)
	}
}

const never = 1 << 40

// label gives an object a label and a nested entry, and takes its spec away.
func label(o map[string]any) map[string]any {
	out := map[string]any{"added": map[string]any{"to": []any{"it", int64(1)}}}
	for k, v := range o {
		if k != "spec" && k != "kind2" {
			out[k] = v
		}
	}
	return out
}

// seeds is how many generated manifests a test tries.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 8
	}
	return n
}

func same(o map[string]any) map[string]any { return o }

// agree holds a Reader against Parse. Where Parse refuses the whole, at least one part is refused, and the first error is the same.
func agree(t *testing.T, name, text string, splitFrom int) {
	t.Helper()
	for i, change := range []func(map[string]any) map[string]any{same, label} {
		want := readWhole(t, name, text, change)
		readers := []io.Reader{strings.NewReader(text)}
		if i == 0 {
			readers = append(readers, iotest.OneByteReader(strings.NewReader(text)))
		}
		for _, in := range readers {
			got := readParts(t, name, in, splitFrom, change)
			if want.Text == "" && len(want.Errors) > 0 {
				if len(got.Errors) == 0 || got.Errors[0] != want.Errors[0] && splitFrom == never {
					t.Fatalf("%s:\n%s\nParse: %v\nReader: %v", name, text, want.Errors, got.Errors)
				}
				continue
			}
			slices.Sort(got.Errors)
			slices.Sort(want.Errors)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s:\n%s\n(-Parse +Reader)\n%s", name, text, diff)
			}
		}
	}
}

// repositoryManifests are all manifests that the repository holds, whatever they are for.
func repositoryManifests(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		switch ext := filepath.Ext(path); {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return filepath.SkipDir
		case d.IsDir() || ext != ".yaml" && ext != ".json" && ext != ".txtar":
			return nil
		}
		data, err := os.ReadFile(path)
		if filepath.Ext(path) != ".txtar" {
			out[path] = string(data)
			return err
		}
		for i, part := range strings.Split(string(data), "\n-- ")[1:] {
			name, text, _ := strings.Cut(part, " --\n")
			if ext := filepath.Ext(name); ext == ".yaml" || ext == ".json" {
				out[fmt.Sprintf("%s/%d/%s", path, i, name)] = text + "\n"
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUnracedReaderReadsWhatParseReads(t *testing.T) {
	files := repositoryManifests(t)
	if len(files) < 50 {
		t.Fatalf("only %d files", len(files))
	}
	for name, text := range files {
		if len(text) < 1<<20 {
			agree(t, name, text, never)
		}
	}
	together := "# many\n"
	for _, name := range slices.Sorted(mapsKeys(files)) {
		if _, err := Parse("x.yaml", []byte(files[name])); err == nil && len(files[name]) < 10<<10 {
			together += strings.TrimPrefix(strings.TrimSuffix(files[name], "\n"), "\ufeff") + "\n---\n"
		}
	}
	agree(t, "together.yaml", together, never)
}

func mapsKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestUnracedReaderReadsGeneratedDocuments puts random documents together with odd separators.
func TestUnracedReaderReadsGeneratedDocuments(t *testing.T) {
	for seed := range seeds(400) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 4))}
		text := g.pick("", "", "\ufeff", "# head\n\n", "---\n---\n")
		for range 1 + g.IntN(4) {
			body := g.yaml()
			if _, err := Parse("", []byte(body)); err != nil && g.IntN(3) > 0 {
				continue // mostly good ones
			}
			text += strings.TrimSuffix(body, "\n") + "\n" + g.pick("---\n", "--- # c\n", "...\n---\n", "---\n# c\n---\n", "---\t\n", "...\n# c\n", "---\n{\"apiVersion\": \"v1\",\n\"kind\": \"B\"} {\"apiVersion\":\"v1\",\"kind\":\"C\"}\n---\n")
		}
		if seed%5 == 0 {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		agree(t, "m.yaml", text, never)
	}
}

// listOf lays objects out as the items of a list.
func listOf(g *generator, objects []string) string {
	pad := g.pick("", "  ", "    ")
	var b strings.Builder
	kindFirst := g.IntN(2) == 0
	b.WriteString(g.pick("", "# head\n", "---\n") + "apiVersion: v1\n")
	if kindFirst {
		b.WriteString("kind: List\n")
	}
	b.WriteString("items:" + g.pick("", " ", " # c") + "\n")
	for _, o := range objects {
		for i, line := range strings.Split(strings.TrimSuffix(o, "\n"), "\n") {
			switch {
			case i == 0:
				b.WriteString(pad + "- " + line + "\n")
			case line == "":
				b.WriteString("\n")
			default:
				b.WriteString(pad + "  " + line + "\n")
			}
		}
		b.WriteString(g.pick("", "", "\n", "# between\n", pad+"# between\n"))
	}
	if !kindFirst {
		b.WriteString("kind: List\n")
	}
	return b.String() + g.pick("", "metadata:\n  resourceVersion: \"\"\n", "# end\n", "---\n", "---\napiVersion: v1\nkind: ConfigMap\n")
}

// TestUnracedSplitLists checks that a list that is read item by item is the same list.
func TestUnracedSplitLists(t *testing.T) {
	split := 0
	for seed := range seeds(400) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 5))}
		var objects []string
		for range 2 + g.IntN(4) {
			g.anchors = nil
			body := "apiVersion: v1\nkind: Thing\nmetadata:\n  name: x\n  labels: {a: b}\nspec:\n" + g.block(3, g.IntN(3)*2+2) + g.pick("", "tail: |\n  x\n\n  # y\n")
			if strings.Contains(body, "\n# ") || strings.Contains(body, "&a") || strings.Contains(body, "|+") || strings.Contains(body, ">+") {
				continue // names of anchors would meet; what a + block holds depends on what follows
			}
			if _, err := Parse("", []byte(body)); err == nil {
				objects = append(objects, body)
			}
		}
		if len(objects) < 2 {
			continue
		}
		text := listOf(g, objects)
		if seed%5 == 0 {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		r := NewReader("m.yaml", strings.NewReader(text))
		r.scanner.SplitFrom = 0
		if _, err := r.Next(); err == nil && r.list == nil {
			if _, err := r.Next(); err == nil && r.list == nil {
				t.Fatalf("not split:\n%s", text)
			}
		}
		split++
		agree(t, "m.yaml", text, 0)
	}
	if uint64(split) < seeds(400)/3 {
		t.Errorf("only %d lists", split)
	}
}

// TestUnracedSplitJSONLists does so for JSON, in the layouts that tools print.
func TestUnracedSplitJSONLists(t *testing.T) {
	for seed := range seeds(300) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 6))}
		var objects []any
		for range 1 + g.IntN(4) {
			f, err := Parse("", []byte(g.yaml()))
			if err == nil {
				objects = append(objects, f.Objects()[0].Value())
			}
		}
		if len(objects) == 0 {
			continue
		}
		indent := g.pick("", "  ", "    ", "\t")
		items, err := json.MarshalIndent(objects, indent, indent)
		if err != nil {
			t.Fatal(err)
		}
		if indent == "" {
			if items, err = json.Marshal(objects); err != nil {
				t.Fatal(err)
			}
		}
		text := fmt.Sprintf("{\n%s\"apiVersion\": \"v1\",\n%s\"items\": %s,\n%s\"kind\": \"List\"\n}", indent, indent, items, indent)
		if indent == "" {
			text = fmt.Sprintf(`{"apiVersion":"v1","items":%s,"kind":"List"}`, items)
		}
		if g.IntN(3) == 0 {
			if items, err = json.Marshal(objects); err != nil {
				t.Fatal(err)
			}
			text = fmt.Sprintf(`{"kind":"List","x":{"items":[{}]},"apiVersion":"v1","items" : [ %s ] }`, items[1:len(items)-1])
		}
		text = g.pick("", "", "--- ") + text + g.pick("", "\n", "\n{\"apiVersion\":\"v1\",\"kind\":\"A\"}\n", "\n---\napiVersion: v1\nkind: B\n")
		r := NewReader("m.yaml", strings.NewReader(text))
		r.scanner.SplitFrom = 0
		if _, err := r.Next(); err != nil || r.list == nil {
			t.Fatalf("not split (%v):\n%s", err, text)
		}
		agree(t, "m.yaml", text, 0)
	}
}

func TestWhatIsNoSplitList(t *testing.T) {
	const item = "- apiVersion: v1\n  kind: A\n"
	const templated = " (the items of a list as large as this are read one by one: an alias reaches no other item)"
	for _, tc := range []struct{ name, text, objects, errors string }{
		{"a list", "apiVersion: v1\nitems:\n" + item + item + "kind: List\n", "items[0] items[1]", ""},
		{"typed", "apiVersion: v1\nkind: AList\nitems:\n- {}\n- spec: 1\n", "items[0] items[1]", ""},
		{"typed, the kind behind: read whole", "apiVersion: v1\nitems:\n- {}\n- {}\nkind: AList\n", "items[0] items[1]", ""},
		{"lists in it", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: AList\n  items:\n  - {}\n" + item, "items[0].items[0] items[1]", ""},
		{"no list", "apiVersion: example.io/v1\nkind: Cart\nitems:\n- 1\n- 2\n", "", ""},
		{"a list with a name is none", "apiVersion: v1\nkind: List\nmetadata: {name: x}\nitems:\n- 1\n- 2\n", "", ""},
		{"no list, as is seen too late", "apiVersion: v1\nitems:\n" + item + item + "kind: Cart\n", "items[0] items[1]",
			"m.yaml:1:1: not a list, as its end shows (kind: Cart): because of its size it was read item by item before"},
		{"a name, seen too late", "apiVersion: v1\nitems:\n" + item + item + "kind: List\nmetadata: {name: x}\n", "items[0] items[1]",
			"m.yaml:1:1: not a list, as its end shows (kind: List): because of its size it was read item by item before"},
		{"no kind at all", "apiVersion: v1\nitems:\n" + item + item + "---\napiVersion: v1\nkind: B\n", "items[0] items[1] ",
			"m.yaml:1:1: not a list, as its end shows (kind: nothing): because of its size it was read item by item before"},
		{"no kind at all, at the end of the file", "apiVersion: v1\nitems:\n" + item + item, "items[0] items[1]",
			"m.yaml:1:1: not a list, as its end shows (kind: nothing): because of its size it was read item by item before"},
		{"a key twice", "apiVersion: v1\nkind: List\nitems:\n" + item + item + "kind: List\n", "items[0] items[1]", `m.yaml:8:1: duplicate key "kind"`},
		{"items twice", "apiVersion: v1\nkind: List\nitems:\n" + item + item + "items: []\n", "items[0] items[1]", `m.yaml:8:1: duplicate key "items"`},
		{"a bad item ends the list", "apiVersion: v1\nkind: List\nitems:\n" + item + item + "- kind: A\n" + item + "x: y\n---\n" + "apiVersion: v1\nkind: B\n", "items[0] items[1] ",
			"m.yaml:8:3: items[2].apiVersion: must be a non-empty string, got nothing"},
		{"a broken item", "apiVersion: v1\nkind: List\nitems:\n" + item + item + "- [\n" + item, "items[0] items[1]",
			"m.yaml:8:1: items[2]: invalid YAML: did not find expected node content"},
		{"a string that goes on at the start of a line", "apiVersion: v1\nkind: List\nitems:\n" + item + item + "- apiVersion: v1\n  kind: \"A\n- b\"\n", "items[0] items[1]",
			"m.yaml:9:3: items[2]: invalid YAML: found unexpected end of stream"},
		{"an alias to another item", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: &x A\n- apiVersion: v1\n  kind: *x\n", "items[0]",
			`m.yaml:7:9: items[1]: unknown anchor "x" in this document` + templated},
		{"an anchor in the head: read whole", "apiVersion: v1\nkind: List\nmetadata: {x: &x A}\nitems:\n- apiVersion: v1\n  kind: *x\n" + item, "items[0] items[1]", ""},
		{"JSON", `{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"A"} , {"apiVersion":"v1","kind":"A"}],"kind":"List"}`, "items[0] items[1]", ""},
		{"JSON, typed", `{"apiVersion":"v1","kind":"AList","items":[{},{"a":[1,{}]}]} {"apiVersion":"v1","kind":"B"}`, "items[0] items[1] ", ""},
		{"JSON, no list", `{"apiVersion":"v1","kind":"Cart","items":[{},{}],"x":1}`, "", ""},
		{"JSON, no list, as is seen too late", `{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"A"}],"kind":"Cart"}{"apiVersion":"v1","kind":"B"}`, "items[0] ",
			"m.yaml:1:1: not a list, as its end shows (kind: Cart): because of its size it was read item by item before"},
		{"JSON, an item that is none", "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"A\"},\n 1]}\n---\n{\"apiVersion\":\"v1\",\"kind\":\"B\"}", "items[0] ",
			"m.yaml:2:2: items[1]: invalid JSON: unexpected '1' after the JSON value"},
		{"JSON, broken", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"A"},{"apiVersion":"v1","kind":"A",}]}`, "items[0]",
			"m.yaml:1:104: items[1]: invalid JSON: expected a quoted key, found '}'"},
		{"JSON, a comma missing", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"A"}{"apiVersion":"v1","kind":"A"}]}`, "items[0]",
			"m.yaml:1:73: items[1]: invalid JSON: expected ',' or ']' after the item"},
		{"JSON, a key twice", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"A"}], "kind":"List"}`, "items[0]", `m.yaml:1:76: duplicate key "kind"`},
		{"JSON, the end missing", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"A"}]`, "items[0]", "m.yaml:1:74: invalid JSON: expected a quoted key, found end of the file"},
		{"items in a text", "apiVersion: v1\nkind: A\ndata: |\n items:\n - a\n - b\n", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := readParts(t, "m.yaml", strings.NewReader(tc.text), 0, func(o map[string]any) map[string]any { return o })
			if errs := strings.Join(got.Errors, "\n"); errs != tc.errors {
				t.Errorf("errors\n%s\nwant\n%s", errs, tc.errors)
			}
			var paths []string
			for _, o := range got.Objects {
				_, path, _ := strings.Cut(o, " ")
				path, _, _ = strings.Cut(path, " ")
				paths = append(paths, path)
			}
			if objects := strings.Join(paths, " "); objects != tc.objects {
				t.Errorf("objects %q, want %q", objects, tc.objects)
			}
			if tc.errors == "" && got.Text != tc.text {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tc.text, got.Text))
			}
		})
	}
}

// TestReaderGoesOnBehindABadDocument checks that only the bad ones are missing.
func TestReaderGoesOnBehindABadDocument(t *testing.T) {
	const a, b = "apiVersion: v1\nkind: A\n", "apiVersion: v1\nkind: B\n"
	got := readParts(t, "m.yaml", strings.NewReader(a+"---\nkind: [\n---\n"+b+"---\nx: {{ y }}\n---\nkind: C\n--- # d\n"+a), never, label)
	want := []string{"m.yaml:4:1: invalid YAML: did not find expected node content",
		"m.yaml:9:5: a key must be a string, not a list or a mapping ({{ looks like a template, which has to be rendered first)",
		"m.yaml:11:1: apiVersion: must be a non-empty string, got nothing"}
	if diff := cmp.Diff(want, got.Errors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const added = "added:\n  to:\n  - it\n  - 1\n"
	if diff := cmp.Diff(a+added+"---\n"+b+added+"--- # d\n"+a+added, got.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\ndata: {y: '1', 'n': '2', Off: '3', 012: x, true: t, 1.0: z, <<: {a: b}}\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: AList\n  items: []\n---\napiVersion: v1\nkind: List\n"
	tell := func(key, name string) string {
		return fmt.Sprintf("YAML 1.1 reads the key %s as %s, and so does kubectl: quote it if it is meant as a string", key, name)
	}
	want := []string{"m.yaml:3:8: " + tell("y", "true"), "m.yaml:3:26: " + tell("Off", "false"), "m.yaml:3:36: " + tell("012", "10"), "m.yaml:3:53: " + tell("1.0", "1"),
		"m.yaml:8:3: items[0]: the list is empty: it has no items", "m.yaml:12:1: the list is empty: it has no items"}
	if _, err := Parse("m.yaml", []byte(text)); err == nil {
		t.Fatal("true and y are one key")
	}
	text = strings.Replace(text, " true: t,", "", 1)
	want[3] = "m.yaml:3:44: " + tell("1.0", "1")
	f, err := Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range f.Warnings() {
		got = append(got, w.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
