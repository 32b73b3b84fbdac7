package ruletest

import "github.com/rectifier-dev/rectifier/internal/yamldoc"

// The shape of -o json and -o yaml. It is a type of its own so that the report
// may change without what scripts read.

type reportData struct {
	Cases    int        `json:"cases"`
	Failed   int        `json:"failed"`
	Problems int        `json:"problems"`
	Files    []fileData `json:"files"`
	// Unpatched are rules that no case shows at work.
	Unpatched []string `json:"unpatched,omitempty"`
}

type fileData struct {
	File     string        `json:"file"`
	Problems []problemData `json:"problems,omitempty"`
	Tests    []testData    `json:"tests"`
}

type problemData struct {
	positionData
	Rule    string `json:"rule,omitempty"`
	Message string `json:"message"`
}

type testData struct {
	Name  string     `json:"name"`
	Cases []caseData `json:"cases"`
}

type caseData struct {
	Name string `json:"name"`
	positionData
	Passed   bool          `json:"passed"`
	Outcome  string        `json:"outcome"`
	Patched  []string      `json:"patched,omitempty"`
	Failing  []string      `json:"failed,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Failures []failureData `json:"failures,omitempty"`
}

type failureData struct {
	positionData
	Field   string `json:"field,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Want    string `json:"want,omitempty"`
	Got     string `json:"got,omitempty"`
}

type positionData struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func position(p yamldoc.Position) positionData { return positionData{p.File, p.Line, p.Column} }

// Data is the report as its JSON has it.
func (r Report) Data() any {
	counts := r.Counts()
	out := reportData{Cases: counts.Cases, Failed: counts.Failed, Problems: counts.Problems, Files: []fileData{}, Unpatched: r.Unpatched}
	for _, f := range r.Files {
		file := fileData{File: f.Name, Tests: []testData{}}
		for _, p := range f.Problems {
			file.Problems = append(file.Problems, problemData{position(p.Pos), p.Rule, p.Msg})
		}
		for _, t := range f.Tests {
			file.Tests = append(file.Tests, t.data())
		}
		out.Files = append(out.Files, file)
	}
	return out
}

func (t TestReport) data() testData {
	out := testData{Name: t.Name}
	for _, c := range t.Cases {
		one := caseData{
			Name: c.Name, positionData: position(c.Pos), Passed: len(c.Failures) == 0, Outcome: string(c.Outcome),
			Patched: c.Patched, Failing: c.Failed, Reason: c.Reason,
		}
		for _, f := range c.Failures {
			one.Failures = append(one.Failures, failureData{position(f.Pos), f.Field, f.Path, f.Message, f.Want, f.Got})
		}
		out.Cases = append(out.Cases, one)
	}
	return out
}
