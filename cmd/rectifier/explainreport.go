package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// explainReport is what explain found out: the output of the formats json and
// yaml.
type explainReport struct {
	Objects []explainedObject   `json:"objects"`
	Rules   []explainedRuleCost `json:"rules,omitempty"` // with --cost alone
}

// failed reports whether a rule failed on an object, or cannot run.
func (r explainReport) failed() bool {
	return slices.ContainsFunc(r.Objects, func(o explainedObject) bool {
		return slices.ContainsFunc(o.Rules, func(e explainedRule) bool { return e.Error != "" && e.Outcome != string(rules.Skip) })
	})
}

type explainedObject struct {
	objectRef
	Resource string          `json:"resource,omitempty"` // group/version/resource; empty: not known
	Notes    []string        `json:"notes,omitempty"`    // what could not be read, what no rule is about
	Rules    []explainedRule `json:"rules"`              // in the order of evaluation
}

// parked is the outcome of a rule that the controller does not run on the
// resource.
const parked = "Parked"

type explainedRule struct {
	Rule     string `json:"rule"`
	Position string `json:"position,omitempty"` // of the rule: file:line:column
	Mode     string `json:"mode"`
	// Outcome is Patch, Pass, Skip, Error or Parked.
	Outcome       string              `json:"outcome"`
	Matched       bool                `json:"matched"`
	Reason        string              `json:"reason,omitempty"`
	Error         string              `json:"error,omitempty"`
	OptedOut      bool                `json:"optedOut,omitempty"`
	OptedOutUntil string              `json:"optedOutUntil,omitempty"`
	Lookups       []explainedLookup   `json:"lookups,omitempty"`
	Variables     []explainedVariable `json:"variables,omitempty"`
	Condition     *explainedPart      `json:"condition,omitempty"` // absent: the rule has none, or did not get so far
	Patches       []explainedPatch    `json:"patches,omitempty"`
	Event         *explainedEvent     `json:"event,omitempty"`
	// Failed are the expressions of lookups and patches that failed.
	Failed []*explainedPart `json:"failed,omitempty"`
	// Controller is what a running controller has reported, the latest first.
	Controller []explainedController `json:"controller,omitempty"`
	Cost       *explainedCost        `json:"cost,omitempty"` // with --cost
}

type explainedLookup struct {
	Name     string            `json:"name"`
	Resource string            `json:"resource"`
	Read     bool              `json:"read"`
	Query    string            `json:"query,omitempty"`
	Absent   bool              `json:"absent,omitempty"` // a value that it needs is absent: nothing can be found
	Objects  *[]map[string]any `json:"objects,omitempty"`
	Error    string            `json:"error,omitempty"`
}

type explainedVariable struct {
	Name string `json:"name"`
	Read bool   `json:"read"`
	explainedPart
}

// explainedPart is an expression, or a part of one. It has either a value or an
// error.
type explainedPart struct {
	Source    string           `json:"source,omitempty"`
	Value     *any             `json:"value,omitempty"`
	Error     string           `json:"error,omitempty"`
	Position  string           `json:"position,omitempty"` // with error: where it comes from
	NotNeeded bool             `json:"notNeeded,omitempty"`
	Operator  string           `json:"operator,omitempty"`
	Parts     []*explainedPart `json:"parts,omitempty"`
	Operands  []*explainedPart `json:"operands,omitempty"`

	caret string // the source line with a caret
}

type explainedPatch struct {
	Subresource   string            `json:"subresource,omitempty"`
	Kind          string            `json:"kind"`
	Operations    []explainedChange `json:"operations"`
	NotApplicable string            `json:"notApplicable,omitempty"`
	Error         string            `json:"error,omitempty"`
}

type explainedChange struct {
	Op     string `json:"op"`
	Path   string `json:"path"`
	From   string `json:"from,omitempty"`
	Before *any   `json:"before,omitempty"`
	Value  *any   `json:"value,omitempty"`
}

type explainedEvent struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// writtenRules find where an expression stands in its file.
type writtenRules map[*expression.Program]writtenExpression

type writtenExpression struct {
	*rules.Expression
	rule *rules.Definition
}

func newWrittenRules(definitions []*rules.Definition) writtenRules {
	out := writtenRules{}
	for _, d := range definitions {
		for _, e := range d.Expressions {
			out[e.Program] = writtenExpression{e, d}
		}
	}
	return out
}

// rule explains one verdict. cannot says why the controller does not run the
// rule; empty: it does.
func (w writtenRules) rule(v rules.Verdict, cannot string, whatToGive func(error) string) explainedRule {
	out := explainedRule{
		Rule: v.Rule.Name, Position: v.Rule.Pos.String(), Mode: string(v.Rule.Mode), Outcome: string(v.Outcome),
		Reason: v.Reason, OptedOut: v.OptedOut,
	}
	if v.Err != nil {
		out.Error = v.Err.Error() + whatToGive(v.Err)
	}
	if cannot != "" && v.Outcome != rules.Skip {
		out.Outcome, out.Error = parked, cannot
	}
	if out.Outcome == string(rules.Patch) {
		out.Event = &explainedEvent{v.Event.Reason, v.Event.Message}
	}
	if v.Trace == nil {
		return out
	}
	t := v.Trace
	out.Matched = t.Matched
	if !t.OptedOutUntil.IsZero() {
		out.OptedOutUntil = t.OptedOutUntil.Format(time.RFC3339)
	}
	for _, l := range t.Lookups {
		out.Lookups = append(out.Lookups, explainLookup(l, whatToGive))
	}
	for _, variable := range t.Variables {
		out.Variables = append(out.Variables, explainedVariable{variable.Name, variable.Read, *w.part(variable.TracedExpression)})
	}
	if t.Condition != nil {
		out.Condition = w.part(t.Condition)
	}
	for _, p := range t.Patches {
		out.Patches = append(out.Patches, explainPatch(p, whatToGive))
	}
	for _, failed := range t.Failed {
		out.Failed = append(out.Failed, w.part(failed))
	}
	return out
}

// leaveOut makes the rule one that is not run, for a reason; empty: it is run.
// What it would write, and why, stays: that is worth seeing.
func (r *explainedRule) leaveOut(reason string) {
	if reason == "" {
		return
	}
	r.Outcome, r.Reason = string(rules.Skip), reason
	r.Error, r.Event = "", nil
	r.OptedOut, r.OptedOutUntil = false, ""
}

func explainLookup(l rules.TracedLookup, whatToGive func(error) string) explainedLookup {
	out := explainedLookup{Name: l.Name, Resource: rules.ResourceName(l.Resource), Read: l.Read}
	switch {
	case l.Query != nil:
		out.Query = describeQuery(l)
	case l.Err == nil:
		out.Absent = true
	}
	if l.Err != nil {
		out.Error = l.Err.Error() + whatToGive(l.Err)
		return out
	}
	objects := l.Objects
	if objects == nil {
		objects = []map[string]any{}
	}
	out.Objects = &objects
	return out
}

// describeQuery says what was looked for.
func describeQuery(l rules.TracedLookup) string {
	var parts []string
	if l.Namespaced {
		parts = append(parts, "in namespace "+l.Query.Namespace)
	}
	for i, path := range l.Where {
		parts = append(parts, fmt.Sprintf("%s=%s", path, strings.Join(l.Query.Values[i], " or ")))
	}
	if l.Query.Selector != nil {
		parts = append(parts, fmt.Sprintf("labels %q", l.Query.Selector))
	}
	return strings.Join(parts, ", ")
}

// part explains an expression.
func (w writtenRules) part(x *rules.TracedExpression) *explainedPart {
	out := &explainedPart{Source: x.Source, NotNeeded: x.NotNeeded, Operator: x.Operator}
	if x.Err != nil {
		out.Error = x.Err.Error()
		out.Position, out.caret = w.place(x, out.Error)
	} else {
		out.Value = &x.Value
	}
	for _, p := range x.Parts {
		out.Parts = append(out.Parts, w.part(p))
	}
	for _, o := range x.Operands {
		out.Operands = append(out.Operands, w.part(o))
	}
	return out
}

// place finds where an expression fails: the position, and the line with a caret.
func (w writtenRules) place(x *rules.TracedExpression, msg string) (position, caret string) {
	e, ok := w[x.Program]
	if !ok || x.ErrOffset < 0 {
		return "", ""
	}
	at := e.Pos(x.ErrOffset)
	_, caret, _ = strings.Cut(e.rule.Problem(at, msg).Detail(), "\n")
	return at.String(), caret
}

func explainPatch(p rules.TracedPatch, whatToGive func(error) string) explainedPatch {
	out := explainedPatch{Subresource: p.Subresource, Kind: p.Kind, Operations: []explainedChange{}}
	if p.NotApplicable != nil {
		out.NotApplicable = p.NotApplicable.Error()
	}
	if p.Err != nil {
		out.Error = p.Err.Error() + whatToGive(p.Err)
	}
	for _, c := range p.Changes {
		change := explainedChange{Op: c.Op.Op, Path: c.Path.String()}
		if len(c.From) > 0 {
			change.From = c.From.String()
		}
		if c.Existed {
			change.Before = &c.Before
		}
		if c.HasValue {
			change.Value = &c.Value
		}
		out.Operations = append(out.Operations, change)
	}
	return out
}

// at fills in where an object stands in a file.
func (o *explainedObject) at(pos yamldoc.Position) {
	o.File, o.Line, o.Column = pos.File, pos.Line, pos.Column
}

// whatTheClusterLacks adds to an error what would help, where the cluster was
// asked.
func whatTheClusterLacks(err error) string {
	var unknown *rules.UnknownError
	if errors.As(err, &unknown) && unknown.Err == nil && !unknown.Schema {
		return " (see the notes above)"
	}
	return ""
}
