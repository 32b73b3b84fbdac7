package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links between documents lead somewhere.
func TestLinks(t *testing.T) {
	for _, document := range markdown(t) {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(content), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", document, m[1])
			}
		}
	}
}

// markdown lists the documents of the repository.
func markdown(t *testing.T) []string {
	t.Helper()
	documents, err := filepath.Glob(root + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"docs", "examples", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".md" {
				documents = append(documents, path)
			}
			if os.IsNotExist(err) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return documents
}
