package ruletest

import (
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// Report is what became of test files.
type Report struct {
	Files []FileReport
	// Unpatched are the rules that changed the object of no case, sorted.
	Unpatched []string
}

// FileReport is what became of one file.
type FileReport struct {
	Name  string
	Tests []TestReport
	// Problems are what is wrong with the file, or with what its tests name: a
	// test that has one is not run.
	Problems []*rules.Problem
}

// TestReport is what became of one test.
type TestReport struct {
	Name  string
	Cases []CaseReport // those that were run
}

// CaseReport is what became of one case.
type CaseReport struct {
	Name string
	Pos  yamldoc.Position
	// Outcome is what the rules made of the object.
	Outcome rules.Outcome
	// Patched and Failed are the names of the rules that did.
	Patched, Failed []string
	// Reason says why, with Skip, Pass and Error.
	Reason string
	// Failures are the expectations that do not hold; none: the case passed.
	Failures []Failure
}

// Failure is an expectation of a case that does not hold.
type Failure struct {
	Pos yamldoc.Position
	// Field is the expectation: expect.object. It is empty for what each case
	// checks by itself.
	Field string
	// Path is where in the object or patch, if it is a part of it.
	Path    string
	Message string
	// Want and Got are YAML, values of Secrets hidden; both may be empty. Got is
	// Nothing where there is nothing.
	Want, Got string
}

// Nothing stands for a value that is not there.
const Nothing = "(nothing)"

// Counts are the numbers of a report.
type Counts struct{ Cases, Failed, Problems int }

// Counts counts the cases of all files.
func (r Report) Counts() Counts {
	var c Counts
	for _, f := range r.Files {
		of := f.Counts()
		c.Cases += of.Cases
		c.Failed += of.Failed
		c.Problems += of.Problems
	}
	return c
}

// Counts counts the cases of a file.
func (f FileReport) Counts() Counts {
	c := Counts{Problems: len(f.Problems)}
	for _, t := range f.Tests {
		for _, result := range t.Cases {
			c.Cases++
			if len(result.Failures) > 0 {
				c.Failed++
			}
		}
	}
	return c
}
