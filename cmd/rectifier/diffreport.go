package main

import (
	"fmt"
	"slices"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/objectdiff"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// diffReport is what diff found: the output of the formats json and yaml.
type diffReport struct {
	// Objects are those that rules would change, or fail on, in the order in
	// which they were looked at.
	Objects []objectChange `json:"objects"`
	Rules   []ruleCounts   `json:"rules"` // all that are looked at, in the order of evaluation
	Summary diffCounts     `json:"summary"`
	// NotDone is what could not be done at all: resources that may not be read or
	// are not served, rules that cannot run.
	NotDone []string `json:"notDone,omitempty"`
	// Notes are about the difference between this look and a controller.
	Notes []string `json:"notes,omitempty"`

	about   string // what the rules are about
	shield  *rules.Shield
	untried int  // changes that the API server was not to be asked about
	brief   bool // Objects are not kept: what there is to say of them is printed as they come
}

type diffCounts struct {
	Objects int `json:"objects"` // all that were looked at
	Matched int `json:"matched"`
	Changed int `json:"changed"`
	Audited int `json:"audited"` // rules of mode Audit that would change an object
	Failed  int `json:"failed"`  // rules that failed on an object, objects without a decision
	// LeftAlone are the objects that asked not to be touched.
	LeftAlone int `json:"leftAlone,omitempty"`
}

type ruleCounts struct {
	Rule    string `json:"rule"`
	Changed int    `json:"changed"` // objects
	Audited int    `json:"audited"`
	Failed  int    `json:"failed"`
}

// objectRef says which object: one in a file, or a live one.
type objectRef struct {
	File       string `json:"file,omitempty"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String is Kind namespace/name.
func (o objectRef) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Kind + " " + name
}

// where is how messages begin.
func (o objectRef) where() string {
	if o.File == "" {
		return "live: " + o.String()
	}
	return fmt.Sprintf("%s:%d:%d: %s", o.File, o.Line, o.Column, o)
}

// refOf names an object. Its namespace is the one that the rules saw.
func refOf(object map[string]any) objectRef {
	text := func(in map[string]any, field string) string {
		s, _ := in[field].(string)
		return s
	}
	meta, _ := object["metadata"].(map[string]any)
	name := text(meta, "name")
	if name == "" {
		name = text(meta, "generateName")
	}
	return objectRef{APIVersion: text(object, "apiVersion"), Kind: text(object, "kind"), Namespace: text(meta, "namespace"), Name: name}
}

// objectChange is what the rules make of one object.
type objectChange struct {
	objectRef
	Rules []ruleOutcome `json:"rules,omitempty"`
	// Patch leads from the object to what it would be, subresources included;
	// secret values are masked.
	Patch []patch.Op `json:"patch,omitempty"`
	// Server is what the server would store differently from what the rules ask
	// for.
	Server []patch.Op `json:"server,omitempty"`
	// Error says why there is no decision, or no answer of the server.
	Error string `json:"error,omitempty"`

	before, after map[string]any // not masked
	computed      bool           // from Secrets
	leftAlone     bool           // it asks a rule for it
}

// masks are the masks for the object before and after.
func (c *objectChange) masks() (before, after *objectdiff.Mask) {
	return objectdiff.Masks(c.before, c.after, c.computed)
}

// Outcomes of a rule in a diff. Rules that change nothing are not listed.
const (
	outcomePatch   = "Patch"
	outcomeAudit   = "Audit" // it would change the object, if it was enforced
	outcomeError   = "Error"
	outcomeRefused = "Refused" // by the server
)

type ruleOutcome struct {
	Rule    string     `json:"rule"`
	Outcome string     `json:"outcome"`
	Event   *eventText `json:"event,omitempty"` // with Patch and Audit
	Error   string     `json:"error,omitempty"` // with Error and Refused
}

type eventText struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func newDiffReport(set *rules.Set) *diffReport {
	r := &diffReport{Objects: []objectChange{}}
	r.of(set)
	return r
}

// of makes the report one of these rules.
func (r *diffReport) of(set *rules.Set) {
	r.Rules, r.about, r.shield = []ruleCounts{}, whatTheyAreAbout(set), rules.NewShield(set)
	for _, rule := range set.All() {
		r.Rules = append(r.Rules, ruleCounts{Rule: rule.Name})
	}
}

// newChange makes of an evaluation what a diff tells. object is as the rules
// saw it.
func newChange(ref objectRef, object map[string]any, result rules.Result, shield *rules.Shield) *objectChange {
	c := &objectChange{objectRef: ref, before: object, after: object}
	if len(result.Requests) > 0 {
		c.after = result.Object
	}
	hint := whatToGive
	if ref.File == "" {
		hint = func(error) string { return "" } // there is nothing to give
	}
	for _, v := range result.Verdicts {
		c.leftAlone = c.leftAlone || v.OptedOut && v.Err == nil
		switch {
		case v.Err != nil:
			c.Rules = append(c.Rules, ruleOutcome{Rule: v.Rule.Name, Outcome: outcomeError, Error: shield.Error(v.Rule, v.Err) + hint(v.Err)})
		case v.Outcome == rules.Patch:
			o := ruleOutcome{Rule: v.Rule.Name, Outcome: outcomePatch, Event: &eventText{v.Event.Reason, c.message(v, shield)}}
			if v.Rule.Mode == rules.Audit {
				o.Outcome = outcomeAudit
			} else {
				c.computed = c.computed || shield.Covers(v.Rule)
			}
			c.Rules = append(c.Rules, o)
		}
	}
	return c
}

// message is what a rule says of its change, without what is secret.
func (c *objectChange) message(v rules.Verdict, shield *rules.Shield) string {
	told := shield.Message(v)
	if c.Kind != "Secret" {
		return told
	}
	if values := objectdiff.SecretValues(c.before); values.Within(told) {
		return v.Rule.DefaultMessage()
	}
	return told
}

// answered takes in what the server said to the change.
func (c *objectChange) answered(answer *engine.DryRun) {
	for _, refusal := range answer.Refused {
		c.Rules = append(c.Rules, ruleOutcome{Rule: refusal.Rule.Name, Outcome: outcomeRefused, Error: refusal.Reason})
	}
	slices.SortStableFunc(c.Rules, func(a, b ruleOutcome) int {
		if a.Rule == b.Rule {
			return 0
		} else if a.Rule < b.Rule {
			return -1
		}
		return 1
	})
	if answer.Err != nil {
		c.Error = answer.Err.Error()
		return
	}
	predicted := c.after
	c.after = answer.Object
	_, mask := c.masks()
	c.Server = mask.Ops(patch.Diff(predicted, answer.Object))
}

// add counts an object, and keeps it if there is something to tell. matched
// says whether a rule is about it.
func (r *diffReport) add(c *objectChange, matched bool) (news bool) {
	r.Summary.Objects++
	if matched {
		r.Summary.Matched++
	}
	ops := patch.Diff(c.before, c.after)
	if len(ops) > 0 {
		r.Summary.Changed++
		_, mask := c.masks()
		c.Patch = mask.Ops(ops)
	}
	if c.Error != "" {
		r.Summary.Failed++
	}
	if c.leftAlone {
		r.Summary.LeftAlone++
	}
	for _, o := range c.Rules {
		r.count(o)
	}
	if news = len(c.Rules) > 0 || len(ops) > 0 || c.Error != ""; news && !r.brief {
		kept := *c
		kept.before, kept.after = nil, nil
		r.Objects = append(r.Objects, kept)
	}
	return news
}

func (r *diffReport) count(o ruleOutcome) {
	i := slices.IndexFunc(r.Rules, func(c ruleCounts) bool { return c.Rule == o.Rule })
	switch o.Outcome {
	case outcomePatch:
		r.Rules[i].Changed++
	case outcomeAudit:
		r.Rules[i].Audited++
		r.Summary.Audited++
	default:
		r.Rules[i].Failed++
		r.Summary.Failed++
	}
}

func isMatched(verdicts []rules.Verdict) bool {
	return slices.ContainsFunc(verdicts, func(v rules.Verdict) bool { return v.Outcome != rules.Skip })
}
