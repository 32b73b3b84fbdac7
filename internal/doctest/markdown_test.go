package doctest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a document.
type block struct {
	line      int    // where it begins
	language  string // after the fence
	directive string // of the comment before it
	text      string
}

var comment = regexp.MustCompile(`^<!-- (.*) -->$`)

// blocks returns the fenced blocks of a document.
func blocks(t *testing.T, path string) []block {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	var open *block
	directive := ""
	for i, line := range strings.Split(string(content), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open != nil && isFence:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case isFence:
			open = &block{line: i + 1, language: fence, directive: directive}
			directive = ""
		case comment.MatchString(line):
			directive = comment.FindStringSubmatch(line)[1]
		case line != "":
			directive = ""
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block is not closed", path, open.line)
	}
	return out
}

// command is a command line with the output that a document shows.
type command struct{ line, output string }

// commands reads a console or sh block.
func (b block) commands() []command {
	var out []command
	for line := range strings.Lines(b.text) {
		text := strings.TrimSuffix(line, "\n")
		switch prompt, isPrompt := strings.CutPrefix(text, "$ "); {
		case b.language == "sh" && text != "":
			out = append(out, command{line: text})
		case isPrompt:
			out = append(out, command{line: prompt})
		case b.language == "console" && len(out) > 0:
			out[len(out)-1].output += line
		}
	}
	return out
}

func TestBlocksAndCommandsAreFound(t *testing.T) {
	path := t.TempDir() + "/doc.md"
	doc := "text\n<!-- cluster -->\n```sh\nmake demo   # why\n```\n\n<!-- file: a/b.yaml -->\n```yaml\na: 1\n```\n" +
		"```console\n$ first\nout\n\nmore\n$ second\n```\n<!-- cluster -->\nnot directly before\n```sh\nx\n```\n"
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	got := blocks(t, path)
	if len(got) != 4 || got[0].directive != "cluster" || got[1].directive != "file: a/b.yaml" || got[1].text != "a: 1\n" || got[3].directive != "" || got[2].line != 11 {
		t.Fatalf("got %+v", got)
	}
	commands := got[2].commands()
	if len(commands) != 2 || commands[0] != (command{"first", "out\n\nmore\n"}) || commands[1] != (command{"second", ""}) {
		t.Errorf("got %+v", commands)
	}
	if c := got[0].commands(); len(c) != 1 || c[0].line != "make demo   # why" {
		t.Errorf("got %+v", c)
	}
}
