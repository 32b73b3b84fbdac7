package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The index of the documentation lists every page, and so does the page about
// moving to Rectifier its own.
func TestIndexOfPages(t *testing.T) {
	for _, index := range []struct{ page, pattern string }{
		{"README.md", "*.md"},
		{"README.md", "*/README.md"},
		{"migration.md", "migration/*.md"},
	} {
		pages, err := filepath.Glob(root + "/docs/" + index.pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: nothing is found: %v", index.pattern, err)
		}
		list := read(t, root+"/docs/"+index.page)
		for _, page := range pages {
			name, err := filepath.Rel(root+"/docs", page)
			if err != nil {
				t.Fatal(err)
			}
			if name != index.page && !strings.Contains(list, "]("+filepath.ToSlash(name)+")") {
				t.Errorf("docs/%s does not list %s", index.page, name)
			}
		}
	}
}

// Links to a place in a document lead to a heading of it.
func TestAnchors(t *testing.T) {
	for _, document := range markdown(t) {
		for _, m := range link.FindAllStringSubmatch(prose(read(t, document)), -1) {
			target, anchor, has := strings.Cut(m[1], "#")
			if !has || strings.Contains(target, "://") {
				continue
			}
			path := document
			if target != "" {
				path = filepath.Join(filepath.Dir(document), target)
			}
			if _, err := os.Stat(path); err != nil || filepath.Ext(path) != ".md" {
				continue // TestLinks tells of what is not there
			}
			if !slices.Contains(anchors(read(t, path)), anchor) {
				t.Errorf("%s links to %s, where no such heading is", document, m[1])
			}
		}
	}
}

// prose is a document without its fenced blocks.
func prose(text string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			out.WriteString(line)
		}
	}
	return out.String()
}

var (
	heading    = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	inlineLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are those that GitHub gives the headings of a document: a heading that
// is there twice gets a number.
func anchors(text string) []string {
	var out []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(prose(text), -1) {
		name := strings.ToLower(strings.TrimSpace(inlineLink.ReplaceAllString(m[1], "$1")))
		name = strings.ReplaceAll(notAnchor.ReplaceAllString(name, ""), " ", "-")
		if n := seen[name]; n > 0 {
			out = append(out, fmt.Sprintf("%s-%d", name, n))
		} else {
			out = append(out, name)
		}
		seen[name]++
	}
	return out
}

func TestAnchorsOfHeadings(t *testing.T) {
	text := "# A `b.c` and *d*\n## Same\n```\n# no heading\n```\n## Same\n### [link](x.md): what?\n"
	if got, want := anchors(text), []string{"a-bc-and-d", "same", "same-1", "link-what"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
