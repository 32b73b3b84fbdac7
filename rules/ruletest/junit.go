package ruletest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	File     string      `xml:"file,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",cdata"`
}

// PrintJUnit prints a report as JUnit XML, which CI systems show. A suite is a
// test; the problems of a file are errors in a suite of its name.
func PrintJUnit(w io.Writer, r Report) error {
	out := junitSuites{Name: "rectifier test"}
	for _, f := range r.Files {
		if len(f.Problems) > 0 {
			out.add(problemSuite(f))
		}
		for _, t := range f.Tests {
			out.add(suite(f.Name, t))
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuites) add(one junitSuite) {
	s.Tests += one.Tests
	s.Failures += one.Failures
	s.Errors += one.Errors
	s.Suites = append(s.Suites, one)
}

func suite(file string, t TestReport) junitSuite {
	out := junitSuite{Name: t.Name, File: file, Tests: len(t.Cases)}
	for _, c := range t.Cases {
		result := junitCase{Name: c.Name, Class: t.Name, File: file, Line: c.Pos.Line}
		if len(c.Failures) > 0 {
			out.Failures++
			var all strings.Builder
			for _, f := range c.Failures {
				all.WriteString(f.Text())
			}
			result.Failure = &junitMessage{Message: c.Failures[0].Message, Text: printable(all.String())}
		}
		out.Cases = append(out.Cases, result)
	}
	return out
}

func problemSuite(f FileReport) junitSuite {
	out := junitSuite{Name: f.Name, File: f.Name, Tests: len(f.Problems), Errors: len(f.Problems)}
	for _, p := range f.Problems {
		out.Cases = append(out.Cases, junitCase{
			Name: p.Pos.String(), Class: f.Name, File: p.Pos.File, Line: p.Pos.Line,
			Error: &junitMessage{Message: p.Msg, Text: printable(p.Detail())},
		})
	}
	return out
}

// printable replaces control characters, and what XML cannot hold, escaped or
// not.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\uFFFE' || r == '\uFFFF' {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
