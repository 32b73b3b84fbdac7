package ruletest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// odd is text that XML and terminals do not take well.
const odd = "<a href=\"x\">&]]>\x00\x1b[31m\x7f\ufffe\xff é\n\ttwo"

func oddReport() Report {
	at := yamldoc.Position{File: odd, Line: 3, Column: 4}
	return Report{Unpatched: []string{"idle"}, Files: []FileReport{{
		Name:     odd,
		Problems: []*rules.Problem{{Pos: at, Msg: odd, Line: odd}},
		Tests: []TestReport{{Name: odd, Cases: []CaseReport{
			{Name: "passes", Pos: at, Outcome: rules.Pass, Reason: odd},
			{Name: odd, Pos: at, Outcome: rules.Patch, Patched: []string{"r"}, Failures: []Failure{
				{Pos: at, Field: "expect.object", Path: "a", Message: odd, Want: odd, Got: "two\nlines"},
				{Pos: at, Message: "another"},
			}},
		}}},
	}}}
}

func TestJUnitIsXMLWhateverIsInIt(t *testing.T) {
	var out bytes.Buffer
	if err := PrintJUnit(&out, oddReport()); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in:\n%s", err, out.String())
	}
	if got.Tests != 3 || got.Failures != 1 || got.Errors != 1 || len(got.Suites) != 2 {
		t.Fatalf("got %+v", got)
	}
	problem, failed := got.Suites[0].Cases[0].Error, got.Suites[1].Cases[1].Failure
	const readable = "<a href=\"x\">&]]>\ufffd\ufffd[31m\ufffd\ufffd\ufffd é\n"
	if problem == nil || failed == nil || got.Suites[1].Cases[0].Failure != nil {
		t.Fatalf("got %+v", got)
	}
	for _, text := range []string{problem.Text, failed.Text} {
		if !strings.Contains(text, readable) {
			t.Errorf("got %q", text)
		}
	}
	if !strings.Contains(failed.Text, "\n  + two\n  + lines\n") || !strings.HasSuffix(failed.Text, ":3:4: another\n") {
		t.Errorf("got %q", failed.Text)
	}
}

func TestTextLeavesTheTerminalAlone(t *testing.T) {
	var out bytes.Buffer
	if err := PrintText(&out, oddReport(), true); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x00\x1b\x7f") || !strings.Contains(out.String(), "1 of 2 cases failed, 1 problem\nnote: no case is patched by idle\n") {
		t.Errorf("got %q", out.String())
	}
}

// failing takes some bytes and then no more, as a closed pipe does.
type failing struct{ left int }

var errClosed = errors.New("closed")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errClosed
	}
	return len(p), nil
}

func TestAWriterThatFailsIsReported(t *testing.T) {
	for _, left := range []int{0, 60, 200} {
		if err := PrintText(&failing{left}, oddReport(), true); !errors.Is(err, errClosed) {
			t.Errorf("text after %d bytes: %v", left, err)
		}
		if err := PrintJUnit(&failing{left}, oddReport()); !errors.Is(err, errClosed) {
			t.Errorf("JUnit after %d bytes: %v", left, err)
		}
	}
}
