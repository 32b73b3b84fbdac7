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

	check    *Check
	findings []*Finding
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
}

// Resource is what is known about a resource.
type Resource struct {
	Kind       string
	Namespaced bool
	HasStatus  bool
	HasScale   bool
	// ReplicasPath is where spec.replicas of its scale subresource is stored.
	ReplicasPath []string
	Schema       Schema // nil: not known
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

// Run runs all checks on all rules of the sources, and returns what they found
// in the order of the files. What keeps a rule from compiling is a finding too.
func Run(known Known, sources ...rules.Source) []*Finding {
	set, all, problems := rules.LoadDefinitions(sources...)
	var findings []*Finding
	for _, problem := range problems {
		findings = append(findings, &Finding{loads, problem})
	}
	all = slices.DeleteFunc(all, func(d *rules.Definition) bool { return d.Rule == nil || !slices.Contains(set.All(), d.Rule) })
	for _, definition := range all {
		for _, check := range Checks {
			if check.Run == nil {
				continue // it is one of loading
			}
			pass := Pass{Definition: definition, Set: set, All: all, Known: known, check: check}
			check.Run(&pass)
			findings = append(findings, pass.findings...)
		}
	}
	slices.SortStableFunc(findings, func(a, b *Finding) int {
		x, y := a.Problem.Pos, b.Problem.Pos
		return cmp.Or(strings.Compare(x.File, y.File), x.Line-y.Line, x.Column-y.Column, strings.Compare(a.Check.ID, b.Check.ID))
	})
	return findings
}

// loads is what the loader finds: the rule is not used at all.
var loads = &Check{ID: "load", Severity: Error, Summary: "The rule does not compile"}
