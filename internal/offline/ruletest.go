package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/ruletest"
)

// RunTests runs the cases that are selected, by "test/case", of test files. A
// test of which no case is selected is not even read further; a file that has
// nothing to tell is left out of the report.
func RunTests(files []*ruletest.File, selected func(name string) bool) ruletest.Report {
	var report ruletest.Report
	patched := map[string]bool{} // by the names of all rules that were tested
	for _, f := range files {
		out := ruletest.FileReport{Name: f.Name, Problems: f.Problems}
		for _, t := range f.Tests {
			cases := slices.DeleteFunc(slices.Clone(t.Cases), func(c *ruletest.Case) bool { return !selected(t.Name + "/" + c.Name) })
			if len(cases) == 0 {
				continue
			}
			b := newBench(f, t)
			result := b.run(cases)
			if len(b.problems) == 0 {
				out.Tests = append(out.Tests, result)
				b.patched(result, patched)
			}
			for _, p := range b.problems {
				// Two tests of a file may name the same broken rule.
				if !slices.ContainsFunc(out.Problems, func(other *rules.Problem) bool { return *other == *p }) {
					out.Problems = append(out.Problems, p)
				}
			}
		}
		if len(out.Tests) > 0 || len(out.Problems) > 0 {
			report.Files = append(report.Files, out)
		}
	}
	for name, shown := range patched {
		if !shown {
			report.Unpatched = append(report.Unpatched, name)
		}
	}
	slices.Sort(report.Unpatched)
	return report
}

// TestInputs are the objects of test files, ready to be evaluated: what lint
// tries rules on. Tests that are broken have none; `rectifier test` says why.
func TestInputs(files []*ruletest.File) []rules.Input {
	var out []rules.Input
	for _, f := range files {
		for _, t := range f.Tests {
			b := newBench(f, t)
			for _, c := range t.Cases {
				object := b.one(c.Object)
				if object == nil || len(b.problems) > 0 {
					break
				}
				fixer := b.fixer(object)
				if info, ok := fixer.resource(object); ok {
					placed, _ := fixer.place(info, object)
					out = append(out, fixer.input(info, placed))
				}
			}
		}
	}
	return out
}

// bench is what the cases of one test share.
type bench struct {
	file     *ruletest.File
	test     *ruletest.Test
	rules    *rules.Set
	catalog  *gvr.Catalog
	types    openapi.Types
	context  []map[string]any
	problems []*rules.Problem
}

func newBench(f *ruletest.File, t *ruletest.Test) *bench {
	b := &bench{file: f, test: t}
	b.loadRules()
	b.loadCRDs()
	for _, o := range t.Context {
		b.context = append(b.context, b.objects(o)...)
	}
	return b
}

// run runs cases. With problems, the report is not of use.
func (b *bench) run(cases []*ruletest.Case) ruletest.TestReport {
	out := ruletest.TestReport{Name: b.test.Name}
	objects := make([]map[string]any, len(cases))
	for i, c := range cases {
		objects[i] = b.one(c.Object)
		b.checkNames(c.Expect.Rules)
	}
	if len(b.problems) > 0 {
		return out
	}
	shared := ruletest.Share(b.context)
	for i, c := range cases {
		out.Cases = append(out.Cases, ruletest.Check(c, objects[i], shared, b.evaluate))
	}
	if len(cases) == len(b.test.Cases) {
		mustMatch(out.Cases)
	}
	return out
}

// mustMatch fails a test none of whose cases is matched by a rule: what leaves
// everything alone is no different from a rule that never works.
func mustMatch(cases []ruletest.CaseReport) {
	skipped := func(c ruletest.CaseReport) bool { return c.Outcome == rules.Skip && len(c.Failures) == 0 }
	for _, c := range cases {
		if !skipped(c) {
			return
		}
	}
	last := &cases[len(cases)-1]
	last.Failures = append(last.Failures, ruletest.Failure{Pos: last.Pos, Message: "0 objects matched: no case of this test has an object that a rule matches"})
}

// patched records which rules of the test changed an object.
func (b *bench) patched(report ruletest.TestReport, seen map[string]bool) {
	for _, r := range b.rules.All() {
		seen[r.Name] = seen[r.Name] || slices.ContainsFunc(report.Cases, func(c ruletest.CaseReport) bool { return slices.Contains(c.Patched, r.Name) })
	}
}

// evaluate evaluates an object among the context objects. It is one of those
// that lookups find, as in a cluster.
func (b *bench) evaluate(object map[string]any) ruletest.Evaluation {
	e, ok := b.fixer(object).Evaluate(object)
	if !ok {
		return ruletest.Evaluation{Unmatched: b.unmatched(object), UnknownKind: !b.catalog.Known(kindOf(object).GroupKind())}
	}
	return ruletest.Evaluation{
		Result: e.Result, Seen: e.Object, ReplicasPath: e.Info.ReplicasPath,
		Placed: namespaceOf(object) != namespaceOf(e.Object),
	}
}

func (b *bench) fixer(object map[string]any) *Fixer {
	world := NewWorld(b.catalog, b.test.Namespace)
	for _, o := range b.context {
		if !b.same(o, object) {
			world.AddObject(o)
		}
	}
	world.AddObject(object)
	return &Fixer{Rules: b.rules, Catalog: b.catalog, Namespace: b.test.Namespace, World: world, Types: b.types, Now: b.test.Now}
}

// same reports whether two objects are one in a cluster, whatever the version.
func (b *bench) same(a, o map[string]any) bool {
	namespace := func(object map[string]any) string {
		if n := namespaceOf(object); n != "" {
			return n
		}
		return b.test.Namespace
	}
	return kindOf(a).GroupKind() == kindOf(o).GroupKind() && nameOf(a) == nameOf(o) && namespace(a) == namespace(o)
}

func (b *bench) unmatched(object map[string]any) string {
	gvk := kindOf(object)
	var about []string
	for _, resource := range b.rules.Resources() {
		about = append(about, rules.ResourceName(resource))
	}
	kind := strings.TrimPrefix(gvk.GroupVersion().String()+" "+gvk.Kind, " ")
	why := fmt.Sprintf("no rule is about objects of %s: the rules name %s", kind, strings.Join(about, ", "))
	if !b.catalog.Known(gvk.GroupKind()) {
		why += " (the kind is not known: give its CRD in spec.crds)"
	}
	return why
}
