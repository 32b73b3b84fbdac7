package doctest

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stop is a row of the diagram of one event's way: names, the files that declare them,
// and what there is to say of it.
type stop struct {
	names, files []string
	clientGo     bool // names may be its own
}

// column parts the columns of a row.
var column = regexp.MustCompile(` {2,}`)

// eventPath reads the diagram in docs/how-it-works.md, the one that others follow.
func eventPath(t *testing.T) (out []stop) {
	t.Helper()
	for _, b := range blocks(t, root+"/docs/how-it-works.md") {
		if !strings.HasPrefix(b.text, " kube-apiserver") {
			continue
		}
		for line := range strings.Lines(b.text) {
			columns := column.Split(strings.TrimSpace(line), -1)
			if len(columns) < 3 || strings.HasPrefix(columns[0], "│") {
				continue
			}
			s := stop{names: strings.Split(columns[0], " ──▶ ")}
			folder := ""
			for place := range strings.SplitSeq(columns[1], ", ") {
				switch {
				case place == "client-go":
					s.clientGo = true
				case strings.Contains(place, "/"):
					folder = path.Dir(place)
					s.files = append(s.files, place)
				default:
					s.files = append(s.files, path.Join(folder, place))
				}
			}
			out = append(out, s)
		}
	}
	if len(out) < 15 {
		t.Fatalf("only %d rows of the diagram were found: has its form changed?", len(out))
	}
	return out
}

// What the diagram of one event's way names is declared where it says.
func TestTheWayOfAnEvent(t *testing.T) {
	for _, s := range eventPath(t) {
		var known []string
		for _, file := range s.files {
			here := declared(t, filepath.Join(root, file))
			if !slices.ContainsFunc(s.names, func(name string) bool { return slices.Contains(here, name) }) {
				t.Errorf("%s declares none of %q", file, s.names)
			}
			known = append(known, here...)
		}
		for _, name := range s.names {
			if !slices.Contains(known, name) && !s.clientGo {
				t.Errorf("%s is declared in none of %q", name, s.files)
			}
		}
	}
}

// stepLink is a name that links to its file, in CONTRIBUTING.md.
var stepLink = regexp.MustCompile("\\[`(\\w+)`\\]\\(([^)]+)\\)")

// The steps in CONTRIBUTING.md and in the package comment of engine are some of the
// diagram's, in its order, and in the same files.
func TestOthersTellTheSameWay(t *testing.T) {
	var names, places []string
	for _, s := range eventPath(t) {
		for _, name := range s.names {
			names = append(names, name)
			for _, file := range s.files {
				places = append(places, name+" "+file)
			}
		}
	}
	_, table, _ := strings.Cut(read(t, root+"/CONTRIBUTING.md"), "| step |")
	table, _, _ = strings.Cut(table, "\n\n")
	var steps []string
	for _, m := range stepLink.FindAllStringSubmatch(table, -1) {
		steps = append(steps, m[1])
		if !slices.Contains(places, m[1]+" "+m[2]) {
			t.Errorf("CONTRIBUTING.md has %s in %s, where the diagram has it not", m[1], m[2])
		}
	}
	checkSteps(t, "CONTRIBUTING.md", steps, names)

	doc, _, found := strings.Cut(read(t, root+"/engine/doc.go"), "What it promises")
	if !found {
		t.Fatal("engine/doc.go has no heading where its diagram ends")
	}
	steps = nil
	for line := range strings.Lines(doc) {
		if drawn, isDrawn := strings.CutPrefix(line, "//\t"); isDrawn {
			steps = append(steps, regexp.MustCompile(`[A-Za-z]+`).FindAllString(drawn, -1)...)
		}
	}
	checkSteps(t, "engine/doc.go", steps, names)
}

// checkSteps holds steps to be some of the names in their order.
func checkSteps(t *testing.T, document string, steps, names []string) {
	t.Helper()
	if len(steps) < 8 {
		t.Errorf("%s: only %d steps were found: %q", document, len(steps), steps)
	}
	for _, step := range steps {
		i := slices.Index(names, step)
		if i < 0 {
			t.Errorf("%s: %s is not in the diagram, or not in this order", document, step)
			continue
		}
		names = names[i+1:]
	}
}
