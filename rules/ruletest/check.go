package ruletest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Evaluation is what rules made of an object.
type Evaluation struct {
	rules.Result
	// Seen is the object as the rules saw it.
	Seen map[string]any
	// Placed says that the object has no namespace and Seen has one.
	Placed bool
	// ReplicasPath is where the kind keeps its replica count, if it has one.
	ReplicasPath []string
	// Unmatched says why no rule is about objects of this kind; empty: one is.
	// Then the rest is empty.
	Unmatched string
	// UnknownKind says that the kind is not known at all.
	UnknownKind bool
}

// Evaluate evaluates an object with the rules of a test, all verdicts included
// (rules.Input.Explain).
type Evaluate func(object map[string]any) Evaluation

// Shared is what the rules of several cases may read beside the object: it must
// stay as it is.
type Shared struct {
	Objects []map[string]any
	before  []map[string]any
}

// Share remembers what objects are like. They are not copied for use.
func Share(objects []map[string]any) *Shared {
	s := &Shared{Objects: objects, before: slices.Clone(objects)}
	for i, o := range objects {
		s.before[i] = runtime.DeepCopyJSON(o)
	}
	return s
}

// Check runs a case on its object, which must stay as it is, too.
func Check(c *Case, object map[string]any, shared *Shared, evaluate Evaluate) CaseReport {
	before := runtime.DeepCopyJSON(object)
	e := evaluate(object)
	k := checker{c: c, object: object, e: e, hide: secretive(object, e)}
	k.report = CaseReport{Name: c.Name, Pos: c.Pos}
	k.summarize()
	switch expected := k.outcome(); {
	case expected && e.UnknownKind:
		// To expect Skip would hide a slip in the kind for ever. That rules are
		// not about a kind which there is may well be shown.
		k.itself("%s", e.Unmatched)
	case expected:
		k.rules()
		k.result()
		k.patch()
		k.event()
		k.error()
	}
	k.repeat(evaluate)
	k.replay()
	if !reflect.DeepEqual(before, object) || !reflect.DeepEqual(shared.before, shared.Objects) {
		k.itself("the evaluation modified an object that it was given: that is a fault of Rectifier, please report it")
	}
	return k.report
}

// checker holds an evaluation against what a case expects of it.
type checker struct {
	c      *Case
	object map[string]any
	e      Evaluation
	hide   bool // values may be those of Secrets
	report CaseReport

	patched, failed []rules.Verdict
}

func (k *checker) fail(n *yaml.Node, f Failure) {
	f.Pos = k.c.doc.Pos(n)
	k.report.Failures = append(k.report.Failures, f)
}

// itself reports a failure of what each case checks by itself.
func (k *checker) itself(format string, args ...any) {
	k.report.Failures = append(k.report.Failures, Failure{Pos: k.c.Pos, Message: fmt.Sprintf(format, args...)})
}

// summarize makes one outcome of the verdicts: Error if a rule failed, Patch if
// one patched, Pass if one matched.
func (k *checker) summarize() {
	r := &k.report
	r.Outcome = rules.Skip
	var why []string
	for _, v := range k.e.Verdicts {
		switch v.Outcome {
		case rules.Error:
			k.failed = append(k.failed, v)
		case rules.Patch:
			k.patched = append(k.patched, v)
		case rules.Pass:
			r.Outcome = rules.Pass
		}
		if reason := reasonOf(v); reason != "" {
			why = append(why, reason)
		}
	}
	r.Patched, r.Failed = names(k.patched), names(k.failed)
	switch {
	case len(k.failed) > 0:
		r.Outcome = rules.Error
	case len(k.patched) > 0:
		r.Outcome = rules.Patch
	}
	r.Reason = strings.Join(why, "; ")
	if k.e.Unmatched != "" {
		r.Reason = k.e.Unmatched
	}
}

func names(verdicts []rules.Verdict) []string {
	var out []string
	for _, v := range verdicts {
		out = append(out, v.Rule.Name)
	}
	return out
}

func reasonOf(v rules.Verdict) string {
	switch {
	case v.Outcome == rules.Error:
		return fmt.Sprintf("rule %s failed: %v%s", v.Rule.Name, v.Err, whatToGive(v.Err))
	case v.Outcome == rules.Patch:
		return ""
	case v.Err != nil: // a malformed opt-out
		return fmt.Sprintf("rule %s: %v", v.Rule.Name, v.Err)
	}
	return fmt.Sprintf("rule %s: %s", v.Rule.Name, v.Reason)
}

// whatToGive names the field that makes known what a rule needs to know.
func whatToGive(err error) string {
	var unknown *rules.UnknownError
	switch {
	case errors.Is(err, rules.ErrReplicasUnknown):
		return " (spec.crds tells)"
	case !errors.As(err, &unknown):
		return ""
	case unknown.Schema:
		return " (give its CRD in spec.crds)"
	}
	return " (give it in spec.context)"
}

// outcome reports whether the outcome is as expected: without that, the rest
// would only repeat the failure.
func (k *checker) outcome() bool {
	want, got := k.c.Expect.Outcome, k.report.Outcome
	if want == got {
		return true
	}
	message := fmt.Sprintf("the outcome is %s, not %s", got, want)
	switch {
	case got == rules.Patch:
		message += ": patched by " + strings.Join(k.report.Patched, ", ")
	case k.report.Reason != "":
		message += ": " + k.report.Reason
	}
	k.fail(k.c.Expect.outcome, Failure{Field: "expect.outcome", Message: message, Want: string(want), Got: string(got)})
	return false
}

func (k *checker) rules() {
	if k.c.Expect.Rules == nil {
		return
	}
	did, those := "patched", k.report.Patched
	if k.report.Outcome == rules.Error {
		did, those = "failed", k.report.Failed
	}
	for _, ref := range k.c.Expect.Rules {
		if !slices.Contains(those, ref.Name) {
			k.fail(ref.node, Failure{Field: "expect.rules", Message: fmt.Sprintf("rule %s has not %s%s", ref.Name, did, k.why(ref.Name))})
		}
	}
	for _, name := range those {
		if !slices.ContainsFunc(k.c.Expect.Rules, func(r Ref) bool { return r.Name == name }) {
			k.fail(k.c.Expect.Rules[0].node, Failure{Field: "expect.rules", Message: fmt.Sprintf("rule %s has %s, too", name, did)})
		}
	}
}

// why says what a rule did instead.
func (k *checker) why(rule string) string {
	for _, v := range k.e.Verdicts {
		if v.Rule.Name == rule {
			if reason := reasonOf(v); reason != "" {
				return ": " + strings.TrimPrefix(reason, "rule "+rule+": ")
			}
			return ": it patched"
		}
	}
	return ": it is not about objects of this kind"
}

// result holds the object after the changes against what is expected of it.
func (k *checker) result() {
	got := any(k.after())
	if want := k.c.Expect.Object; want != nil {
		k.differ(want.node, "expect.object", missing(want.Value, got, nil))
	}
	if want := k.c.Expect.ExactObject; want != nil {
		k.differ(want.node, "expect.exactObject", differences(want.Value, got, nil))
	}
}

// after is the object after the changes, without a namespace that it does not
// name itself.
func (k *checker) after() map[string]any {
	switch {
	case k.e.Result.Object == nil:
		return k.object
	case k.e.Placed:
		return patch.ApplyMerge(k.e.Result.Object, map[string]any{"metadata": map[string]any{"namespace": nil}})
	}
	return k.e.Result.Object
}

func (k *checker) differ(n *yaml.Node, field string, all []difference) {
	for i, d := range all {
		f := Failure{Field: field, Path: d.at.String(), Want: k.text(d.want, d.at), Got: k.text(d.got, d.at)}
		switch {
		case isAbsent(d.want):
			f.Message = f.Path + " is not expected"
		case len(d.at) == 0:
			f.Message = "the object is not as expected"
		default:
			f.Message = f.Path + " is not as expected"
		}
		if i == 0 {
			f.Message += k.audited()
		}
		k.fail(nodeAt(n, d.at), f)
	}
}

// audited explains why an object that is patched is as it was.
func (k *checker) audited() string {
	for _, v := range k.patched {
		if v.Rule.Mode == rules.Audit {
			return fmt.Sprintf(" (rule %s has mode Audit: it reports and writes nothing)", v.Rule.Name)
		}
	}
	return ""
}

func (k *checker) event() {
	want := k.c.Expect.Event
	if want == nil {
		return
	}
	var told []string
	for _, v := range k.patched {
		if (want.Reason == nil || *want.Reason == v.Event.Reason) && (want.Message == nil || *want.Message == v.Event.Message) {
			return
		}
		told = append(told, eventText(&v.Event.Reason, &v.Event.Message))
	}
	got := strings.Join(told, "\n")
	if got == "" {
		got = Nothing
	}
	k.fail(want.node, Failure{Field: "expect.event", Message: "no rule tells this event", Want: eventText(want.Reason, want.Message), Got: got})
}

func eventText(reason, message *string) string {
	var lines []string
	if reason != nil {
		lines = append(lines, "reason: "+*reason)
	}
	if message != nil {
		lines = append(lines, "message: "+*message)
	}
	return strings.Join(lines, "\n")
}

func (k *checker) error() {
	want := k.c.Expect.Error
	if want == nil {
		return
	}
	var told []string
	for _, v := range k.failed {
		if want.MatchString(v.Err.Error()) {
			return
		}
		told = append(told, v.Err.Error())
	}
	k.fail(want.node, Failure{Field: "expect.error", Message: "no error of a rule matches the regular expression", Want: want.String(), Got: strings.Join(told, "\n")})
}
