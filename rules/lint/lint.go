package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// Severity says how sure it is that something is wrong.
type Severity string

const (
	Error   Severity = "error"   // the rule does not do what it says
	Warning Severity = "warning" // it may well be meant, but is a known trap
)

// Check is one thing that lint looks for. docs/lint/ID.md explains it.
type Check struct {
	ID       string
	Severity Severity
	Summary  string // one line without a full stop
	// Run looks at one rule and reports what it finds. Checks that need more
	// than the rule find the others in the Pass.
	Run func(*Pass)
}

// Pass is what a check may look at: one rule that compiles, and what is known.
type Pass struct {
	*rules.Definition
	// Set and All are all rules that compile, this one among them.
	Set *rules.Set
	All []*rules.Definition
	// Known tells about resources.
	Known Known
	// Tests are the objects of the rules' tests, with all that rules may read
	// beside them.
	Tests []rules.Input

	check    *Check
	findings []*Finding
	typing   *typing // what schemas say of the rule; shared by its checks
	pairs    *pairs  // what is known of two rules; shared by all passes
}

// Known tells what is known about resources, from a catalogue, CRD files or a
// cluster.
type Known interface {
	// Resource tells about a resource. What is not known for sure is not
	// known: ok is false.
	Resource(ctx context.Context, gvr schema.GroupVersionResource) (r Resource, ok bool)
	// Spelling returns the resource that is meant where a kind or a singular is
	// written instead, or the group or version is another one; ok is false
	// where there is none.
	Spelling(gvr schema.GroupVersionResource) (meant schema.GroupVersionResource, ok bool)
	// Versions returns the versions in which a resource is served, the newest
	// first; none where the resource is not known.
	Versions(schema.GroupResource) []string
	// Complete reports whether all resources of a group are known: what
	// Resource does not know of it does not exist.
	Complete(group string) bool
}

// Resource is what is known about a resource.
type Resource struct {
	Kind       string
	Namespaced bool
	HasStatus  bool
	HasScale   bool
	// ReplicasPath is where spec.replicas of its scale subresource is stored.
	ReplicasPath []string
	// Preferred is the version to write through, if that is another one: of what
	// is built in, all versions hold the same.
	Preferred string
	Schema    Schema // nil: not known
}

// Schema is the OpenAPI v3 schema of a kind.
type Schema interface {
	rules.Schema
	// Definitions returns the definitions that the kind needs, and the name of
	// its own; references have the form #/components/schemas/NAME. The result
	// is the caller's.
	Definitions() (root string, definitions map[string]*spec.Schema, err error)
}

// Finding is what a check found.
type Finding struct {
	Check   *Check
	Problem *rules.Problem
}

// Reportf reports what the check found, at a position in the rule's file.
func (p *Pass) Reportf(at yamldoc.Position, format string, args ...any) {
	p.findings = append(p.findings, &Finding{p.check, p.Problem(at, fmt.Sprintf(format, args...))})
}

// Report is what Run found.
type Report struct {
	Rules    int        // how many there are, those that do not compile among them
	Findings []*Finding // in the order of the files
	Ignored  int        // findings that a comment in the rule's file silences
	Unknown  []Unknown  // what could not be checked, in the order of the rules
}

// Unknown is a resource of which no schema is known: what a rule reads and
// writes of it could not be checked.
type Unknown struct {
	Resource schema.GroupVersionResource
	Rule     string // the first that names it
	Group    string // a known group of nearly the same name, if there is one
}

// Groups is implemented by a Known that can list groups that are not
// Kubernetes' own. One that is nearly what a rule names is likely meant.
type Groups interface{ Groups() []string }

// Run runs all checks on all rules of the sources. What keeps a rule from
// compiling is a finding too.
func Run(known Known, sources ...rules.Source) Report { return RunTested(known, nil, sources...) }

// RunTested is Run where the rules have tests, on whose objects they are tried.
func RunTested(known Known, tests []rules.Input, sources ...rules.Source) Report {
	set, all, problems := rules.LoadDefinitions(sources...)
	report := Report{Rules: len(all)}
	for _, problem := range problems {
		report.Findings = append(report.Findings, &Finding{checkOf(problem), problem})
	}
	all = slices.DeleteFunc(all, func(d *rules.Definition) bool { return d.Rule == nil || !slices.Contains(set.All(), d.Rule) })
	var found []*Finding
	kinds, pairs := newKinds(known), newPairs()
	for _, definition := range all {
		typing := newTyping(kinds, definition)
		for _, check := range Checks {
			if check.Run == nil {
				continue // it is one of loading, or of the comments
			}
			pass := Pass{Definition: definition, Set: set, All: all, Known: known, Tests: tests, check: check, typing: typing, pairs: pairs}
			check.Run(&pass)
			found = append(found, pass.findings...)
		}
	}
	report.Unknown = unchecked(known, kinds, all)
	kept, silenced := ignore(sources, all, found)
	report.Findings, report.Ignored = append(report.Findings, kept...), silenced
	slices.SortStableFunc(report.Findings, func(a, b *Finding) int {
		x, y := a.Problem.Pos, b.Problem.Pos
		return cmp.Or(strings.Compare(x.File, y.File), x.Line-y.Line, x.Column-y.Column, strings.Compare(a.Check.ID, b.Check.ID))
	})
	return report
}

// Find returns the check of an ID, nil if there is none.
func Find(id string) *Check {
	i := slices.IndexFunc(Checks, func(c *Check) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return Checks[i]
}

// Sorted are all checks by ID.
func Sorted() []*Check {
	return slices.SortedFunc(slices.Values(Checks), func(a, b *Check) int { return strings.Compare(a.ID, b.ID) })
}

// checkOf is the check of what the loader found. A test holds that each is
// registered.
func checkOf(p *rules.Problem) *Check {
	if c := Find(p.Check); c != nil {
		return c
	}
	return ruleFormat
}
