package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentsStayInOrder fixes documents side by side that take unequally long, with
// some that cannot be read among them.
func TestDocumentsStayInOrder(t *testing.T) {
	var in strings.Builder
	unreadable := 0
	for i := range 600 {
		text := "---\n" + fill(deploymentTemplate, i)
		switch {
		case i%7 == 3:
			text = "---\nkind: [\n"
			unreadable++
		case i%11 == 5:
			text += "# " + strings.Repeat("-", 50_000) + "\n"
		}
		in.WriteString(text)
	}
	var out, told bytes.Buffer
	code := execute(context.Background(), []string{"fix", "--builtin", "expected-replicas", "-"}, streams{strings.NewReader(in.String()), &out, &told})
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  name: (web-\d+)$`).FindAllStringSubmatch(out.String(), -1) {
		names = append(names, m[1])
	}
	if len(names) != 600-unreadable {
		t.Fatalf("%d documents are printed, want %d", len(names), 600-unreadable)
	}
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			t.Fatalf("%s is printed before %s", names[i-1], names[i])
		}
	}
	line, lines := 0, regexp.MustCompile(`<stdin>:(\d+):`).FindAllStringSubmatch(told.String(), -1)
	if len(lines) < 300 {
		t.Errorf("only %d places are told of", len(lines))
	}
	for _, m := range lines {
		next, err := strconv.Atoi(m[1])
		if err != nil || next < line {
			t.Fatalf("line %s is told of behind line %d", m[1], line)
		}
		line = next
	}
	if n := strings.Count(told.String(), "rectifier: "); n != unreadable {
		t.Errorf("%d documents are told to be unreadable, want %d", n, unreadable)
	}
}

// fullDisk takes so many bytes.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.room -= len(p); d.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// TestFixEndsWhenNobodyTakesWhatItPrints has a disk that is full after a few of many
// documents.
func TestFixEndsWhenNobodyTakesWhatItPrints(t *testing.T) {
	var told bytes.Buffer
	code := execute(context.Background(), []string{"fix", "--builtin", "expected-replicas", "-"},
		streams{&manyDeployments{layout: "documents", n: 3000}, &fullDisk{1 << 20}, &told})
	if code != exitUsage || !strings.HasSuffix(told.String(), "rectifier: print the manifests: no space left\n") {
		t.Errorf("exit code %d, told …%s", code, told.String()[max(0, told.Len()-300):])
	}
	if n := strings.Count(told.String(), "<stdin>:"); n < 100 || n > 700 {
		t.Errorf("%d documents are told to have changed, want those up to 1 MB, and few more", n)
	}
}
