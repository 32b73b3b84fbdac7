// Package offline runs rules on manifests, without a cluster: the work behind
// `rectifier fix`. It evaluates with the same rules.Evaluate as the engine;
// what differs is only where objects come from and where results go.
package offline

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// Fixer applies rules to manifests. It is immutable and safe for concurrent
// use; a manifest.File is not.
type Fixer struct {
	Rules   *rules.Set
	Catalog *gvr.Catalog
	// Namespace is where objects of namespaced kinds are that do not say so.
	Namespace string
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
	Findings []Finding // outcomes Patch and Error, in the order of objects and rules
}

// Add adds the counts and findings of another report.
func (r *Report) Add(other Report) {
	r.Objects += other.Objects
	r.Matched += other.Matched
	r.Changed += other.Changed
	r.Findings = append(r.Findings, other.Findings...)
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
		result := f.evaluate(info, object.Value())
		if matched(result) {
			report.Matched++
		}
		for _, v := range result.Verdicts {
			if v.Outcome == rules.Patch || v.Outcome == rules.Error {
				report.Findings = append(report.Findings, Finding{object.Position(), f.describe(info, object.Value()), v})
			}
		}
		if len(result.Requests) == 0 {
			continue
		}
		report.Changed++
		if err := object.Update(result.Object); err != nil {
			return report, fmt.Errorf("change %s at %s: %w", f.describe(info, object.Value()), object.Position(), err)
		}
	}
	return report, nil
}

// resource finds what resource an object is of, among those that rules name.
func (f *Fixer) resource(object map[string]any) (gvr.Info, bool) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return gvr.Info{}, false
	}
	for _, info := range f.Catalog.Info(gv.WithKind(kind)) {
		if len(f.Rules.For(info.Resource)) > 0 {
			return info, true
		}
	}
	return gvr.Info{}, false
}

func (f *Fixer) evaluate(info gvr.Info, object map[string]any) rules.Result {
	in := rules.Input{Resource: info.Resource, Object: object, ReplicasPath: info.ReplicasPath, Explain: true}
	if info.Namespaced {
		in.Namespace = f.Namespace
	}
	return rules.Evaluate(f.Rules.For(info.Resource), in)
}

func matched(r rules.Result) bool {
	for _, v := range r.Verdicts {
		if v.Outcome != rules.Skip {
			return true
		}
	}
	return false
}

func (f *Fixer) describe(info gvr.Info, object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		name, _ = meta["generateName"].(string)
	}
	namespace, _ := meta["namespace"].(string)
	if namespace == "" && info.Namespaced {
		namespace = f.Namespace
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return info.Kind + " " + name
}
