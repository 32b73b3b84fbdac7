package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Fixer applies rules to manifests. It is immutable and safe for concurrent
// use; a manifest.File is not.
type Fixer struct {
	Rules   *rules.Set
	Catalog *gvr.Catalog
	// Namespace is where objects of namespaced kinds are that do not say so.
	Namespace string
	// World answers lookups and knows Namespaces.
	World *World
	// Types knows the schemas of kinds, for rules that apply configurations.
	Types openapi.Types
	// Now is the time that rules read.
	Now time.Time
	// Trace asks for how each rule came to its verdict, see rules.Input.
	Trace bool
}

// Finding is what one rule made of one object.
type Finding struct {
	Pos     yamldoc.Position
	Object  string // Kind namespace/name
	Verdict rules.Verdict
}

// Report is what a Fixer did with a file.
type Report struct {
	Objects  int // all objects of the file
	Matched  int // those that a rule's resource and match block fit
	Changed  int
	Failures int       // how often a rule failed
	Findings []Finding // changes and failures, in the order of objects and rules
}

// Count adds the counts of another report, not its findings.
func (r *Report) Count(other Report) {
	r.Objects += other.Objects
	r.Matched += other.Matched
	r.Changed += other.Changed
	r.Failures += other.Failures
}

// Fix evaluates all objects of a file and records in it what the rules change.
// What a rule cannot do to an object is a finding; the object keeps what the
// other rules do. An error means that a change cannot be written into the
// manifest.
func (f *Fixer) Fix(file *manifest.File) (Report, error) {
	var report Report
	for _, object := range file.Objects() {
		report.Objects++
		info, ok := f.resource(object.Value())
		if !ok {
			continue
		}
		value, placed := f.place(info, object.Value())
		result := f.evaluate(info, value)
		if matched(result) {
			report.Matched++
		}
		for _, v := range result.Verdicts {
			if v.Outcome == rules.Patch || v.Err != nil {
				report.Findings = append(report.Findings, Finding{object.Position(), describe(value), v})
			}
			if v.Err != nil {
				report.Failures++
			}
		}
		if len(result.Requests) == 0 {
			continue
		}
		report.Changed++
		if placed {
			result.Object = patch.ApplyMerge(result.Object, map[string]any{"metadata": map[string]any{"namespace": nil}})
		}
		if err := object.Update(result.Object); err != nil {
			return report, fmt.Errorf("change %s at %s: %w", describe(value), object.Position(), err)
		}
	}
	return report, nil
}

// Evaluation is what the rules make of one object.
type Evaluation struct {
	Info   gvr.Info
	Object map[string]any // as the rules saw it: with its namespace
	rules.Result
}

// Evaluate evaluates one object; it is not modified. ok is false if no rule is
// about objects of its kind.
func (f *Fixer) Evaluate(object map[string]any) (e Evaluation, ok bool) {
	info, ok := f.resource(object)
	if !ok {
		return Evaluation{}, false
	}
	value, _ := f.place(info, object)
	return Evaluation{info, value, f.evaluate(info, value)}, true
}

// resource finds what resource an object is of, among those that rules name.
func (f *Fixer) resource(object map[string]any) (gvr.Info, bool) {
	for _, info := range f.Catalog.Info(kindOf(object)) {
		if len(f.Rules.For(info.Resource)) > 0 {
			return info, true
		}
	}
	return gvr.Info{}, false
}

func (f *Fixer) evaluate(info gvr.Info, object map[string]any) rules.Result {
	all, unfit := f.fit(info)
	result := rules.Settle(all, f.input(info, object))
	for _, v := range unfit {
		at, _ := slices.BinarySearchFunc(result.Verdicts, v, func(a, b rules.Verdict) int { return strings.Compare(a.Rule.Name, b.Rule.Name) })
		result.Verdicts = slices.Insert(slices.Clip(result.Verdicts), at, v)
	}
	return result
}

// input is all that rules may read of an object.
func (f *Fixer) input(info gvr.Info, object map[string]any) rules.Input {
	in := rules.Input{
		Resource: info.Resource, Object: object, ReplicasPath: info.ReplicasPath, HasStatus: info.HasStatus,
		Lookups: f.World, Now: f.Now, Explain: true, Trace: f.Trace,
	}
	if info.Namespaced {
		in.NamespaceObject = f.World.Namespace(namespaceOf(object))
	}
	needs := func(r *rules.Rule) bool { return r.NeedsSchema }
	if slices.ContainsFunc(f.Rules.For(info.Resource), needs) {
		// Without a schema, the rules that need it say so.
		if t, err := f.Types.Type(context.Background(), kindOf(object)); err == nil {
			in.Schema = t
		}
	}
	return in
}

// fit returns the rules for a resource that can run on it, and verdicts of
// those that cannot: a controller would park them. Of kinds that are not known
// for sure, all are taken to fit.
func (f *Fixer) fit(info gvr.Info) (fit []*rules.Rule, unfit []rules.Verdict) {
	all := f.Rules.For(info.Resource)
	traits := rules.Traits{Namespaced: info.Namespaced, HasStatus: info.HasStatus, HasScale: info.HasScale, ReplicasPath: info.ReplicasPath}
	why := func(r *rules.Rule) string {
		if why := r.Unfit(traits); why != rules.ErrReplicasUnknown.Error() { // the evaluation says that
			return why
		}
		return ""
	}
	known := f.Catalog.Known(info.Resource.GroupVersion().WithKind(info.Kind).GroupKind())
	if !known || !slices.ContainsFunc(all, func(r *rules.Rule) bool { return why(r) != "" }) {
		return all, nil
	}
	for _, r := range all {
		if why := why(r); why != "" {
			unfit = append(unfit, rules.Verdict{Rule: r, Outcome: rules.Error, Err: errors.New(why)})
			continue
		}
		fit = append(fit, r)
	}
	return fit, unfit
}

// place gives an object that does not say where it is the namespace in which
// it would be created: rules see it as the cluster would show it. It reports
// whether it did.
func (f *Fixer) place(info gvr.Info, object map[string]any) (map[string]any, bool) {
	if !info.Namespaced || namespaceOf(object) != "" {
		return object, false
	}
	return in(object, f.Namespace), true
}

func matched(r rules.Result) bool {
	for _, v := range r.Verdicts {
		if v.Outcome != rules.Skip {
			return true
		}
	}
	return false
}
