package doctest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)[/`]")
	testDecl = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\(`)
)

// Tests that documents name, as proof of what they say, are there.
func TestTestsThatAreNamed(t *testing.T) {
	known := map[string]bool{}
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range testDecl.FindAllStringSubmatch(read(t, filepath.Join(root, file)), -1) {
			known[m[1]] = true
		}
	}
	found := 0
	for _, document := range markdown(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, document), -1) {
			found++
			if !known[m[1]] {
				t.Errorf("%s names the test %s, which is not there", document, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names of tests were found", found)
	}
}
