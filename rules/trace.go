package rules

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/rectifier-dev/rectifier/rules/expression"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Trace is how a rule came to its verdict on an object, for people: what it
// read, what the parts of its condition gave, what its patches would write.
// Values are read-only; those that hold data of Secrets are Masked, and errors
// of rules that read Secrets say only that there was one.
type Trace struct {
	// Matched says that the match block fits and nobody opted out. If not, or if
	// that is not known, the verdict says why, and nothing below is there but
	// OptedOutUntil.
	Matched bool
	// OptedOutUntil is the end of an opt-out; zero: it has none.
	OptedOutUntil time.Time
	Lookups       []TracedLookup
	Variables     []TracedVariable
	// Condition is nil where the rule has none: it is true then.
	Condition *TracedExpression
	// Patches are those that were evaluated, up to the first that failed: none if
	// the condition is not true.
	Patches []TracedPatch
	// Failed are the expressions of lookups and patches that failed.
	Failed []*TracedExpression
}

// Masked stands for a value that holds data of a Secret.
const Masked = expression.Opaque("***")

// TracedLookup is what one lookup found.
type TracedLookup struct {
	*Lookup
	// Read says that the evaluation read it. What was not read was looked up for
	// the trace.
	Read bool
	// Query is what was asked for; nil: a value that it needs is absent, so
	// nothing can be found, or Err. Values that hold data of Secrets are masked,
	// and a selector is left out.
	Query   *Query
	Objects []map[string]any
	Err     error
}

// TracedVariable is what one variable gave.
type TracedVariable struct {
	Name string
	// Read says that the evaluation read it.
	Read bool
	*TracedExpression
}

// TracedExpression is an expression, or a part of one, with what it gave.
type TracedExpression struct {
	// Program is what it is a part of: that of a Definition's Expression.
	Program *expression.Program
	// Source is how it is written, on one line; empty for operands of functions.
	Source string
	// Offset is where it begins in the source of the program, in bytes.
	Offset int
	// Operator joins Parts (&& || ! ?:) or Operands (a comparison, a function).
	Operator        string
	Parts, Operands []*TracedExpression
	// Value is JSON-shaped, or an expression.Opaque.
	Value any
	Err   error
	// ErrOffset is where in the source of the program the failure comes from, with
	// Err; -1 where that is not known.
	ErrOffset int
	// NotNeeded says that another part had decided already.
	NotNeeded bool
}

// TracedPatch is what one patch of the rule would do.
type TracedPatch struct {
	Subresource string
	Kind        string // merge, json or applyConfiguration
	// Changes are empty if the patch changes nothing.
	Changes []TracedChange
	// NotApplicable says why it does not fit the object, which is no failure.
	NotApplicable error
	Err           error
}

// TracedChange is one operation, and the value that was there before.
type TracedChange struct {
	patch.Op
	// Before is nil where nothing was there.
	Before any
	// Existed tells a null from nothing.
	Existed bool
}

// errHidden stands for an error that may hold data of a Secret.
var errHidden = errors.New("it failed (the rule reads Secrets: what failed is not shown)")

// trace tells how the rule came to a verdict. It comes after the evaluation,
// and evaluates again what that evaluated, and what it left out.
func (s *scope) trace(v Verdict) *Trace {
	t := &Trace{Matched: v.Outcome != Skip && !s.unknownNamespace(v), OptedOutUntil: s.until(v)}
	if !t.Matched {
		return t
	}
	again := tracer{scope: *s, secret: s.secrets()}
	again.object = s.start
	// Which were read, before the trace reads all.
	vars, found := slices.Clone(s.vars), slices.Clone(s.found)
	for i, l := range s.rule.Lookups {
		t.Lookups = append(t.Lookups, again.lookupTrace(t, l, i < len(found) && found[i].done))
	}
	for i, variable := range s.rule.variables {
		t.Variables = append(t.Variables, TracedVariable{variable.name, i < len(vars) && vars[i].done, again.explain(variable.program, atStart{&again.scope})})
	}
	if s.rule.condition != nil {
		t.Condition = again.explain(s.rule.condition, &again.scope)
	}
	if hit, err := again.condition(); err == nil && hit {
		again.patches(t)
	}
	return t
}

func (s *scope) until(v Verdict) time.Time {
	if v.OptedOut {
		return s.recheck
	}
	return time.Time{}
}

// unknownNamespace reports whether the rule did not get as far as its CEL.
func (s *scope) unknownNamespace(v Verdict) bool {
	return s.rule.NeedsNamespace && s.in.NamespaceObject == nil && errors.As(v.Err, new(*UnknownError)) && s.vars == nil && s.found == nil
}

// tracer is a scope of its own: what it reads does not count as read.
type tracer struct {
	scope
	secret *secrets
}

func (t *tracer) lookupTrace(trace *Trace, l *Lookup, read bool) TracedLookup {
	out := TracedLookup{Lookup: l, Read: read}
	out.Query, out.Err = l.query(atStart{&t.scope})
	if out.Err != nil {
		t.failed(trace, l.programs(), atStart{&t.scope})
	}
	list, err := t.lookup(l.Name)
	out.Err = t.hide(err)
	if found, ok := list.([]any); ok {
		for _, o := range found {
			if object, ok := o.(map[string]any); ok {
				out.Objects = append(out.Objects, redacted(l.Resource, object))
			}
		}
	}
	if out.Query != nil && t.secret.holds(l.programs()...) {
		out.Query = masked(out.Query)
	}
	return out
}

// failed notes the expressions that fail.
func (t *tracer) failed(trace *Trace, programs []*expression.Program, names expression.Resolver) {
	for _, p := range programs {
		if x := t.explain(p, names); x.Err != nil {
			trace.Failed = append(trace.Failed, x)
		}
	}
}

// patches renders the patches again, one by one.
func (t *tracer) patches(trace *Trace) {
	for i := range t.rule.patches {
		p := &t.rule.patches[i]
		out := TracedPatch{Subresource: p.subresource, Kind: p.kind()}
		before := t.object
		c, after, err := p.render(&t.scope, t.object, t.in)
		switch {
		case errors.Is(err, patch.ErrNotApplicable), errors.As(err, new(*patch.TestFailedError)):
			out.NotApplicable = err
		case err != nil:
			out.Err = t.hide(err)
			t.failed(trace, p.programs(), &t.scope)
		case c != nil:
			out.Changes = t.changes(p, c, before)
			t.object = after
		}
		trace.Patches = append(trace.Patches, out)
		if out.Err != nil {
			return
		}
	}
}

// changes gives the operations of a change with the values before each.
func (t *tracer) changes(p *patchTemplate, c *change, doc map[string]any) []TracedChange {
	if c.subresource == scale {
		doc = scaleOf(doc, t.in.ReplicasPath)
	}
	ops := c.ops
	if c.merge != nil {
		ops = patch.MergeToOps(doc, c.merge)
	}
	computed := t.secret.holds(p.programs()...)
	out := make([]TracedChange, len(ops))
	for i, op := range ops {
		out[i].Op = op
		out[i].Before, out[i].Existed = valueAt(doc, op.Path)
		if after, err := patch.ApplyOps(doc, ops[i:i+1]); err == nil {
			doc = after
		}
		if computed {
			out[i].Before, out[i].Value = mask(out[i].Before), mask(op.Value)
			continue
		}
		if t.tainted {
			out[i].Before = mask(out[i].Before)
		}
		out[i].Before = redactedAt(t.in.Resource, op.Path, out[i].Before)
		out[i].Value = redactedAt(t.in.Resource, op.Path, op.Value)
	}
	return out
}

// explain evaluates an expression and hides what is secret in it.
func (t *tracer) explain(p *expression.Program, names expression.Resolver) *TracedExpression {
	return t.traced(p, p.Explain(names), t.secret.holds(p))
}

func (t *tracer) traced(p *expression.Program, x *expression.Explanation, secret bool) *TracedExpression {
	out := &TracedExpression{Program: p, Source: x.Source, Offset: x.Offset, Operator: x.Operator, Err: t.hide(x.Err), ErrOffset: x.ErrOffset, NotNeeded: x.NotNeeded}
	if x.Err == nil {
		// What an expression goes through can hold more than what it reads.
		if out.Value = x.Value.Show(); secret || t.isSecret() && !isScalar(out.Value) {
			out.Value = mask(out.Value)
		}
	}
	for _, part := range x.Parts {
		out.Parts = append(out.Parts, t.traced(p, part, secret))
	}
	for _, operand := range x.Operands {
		out.Operands = append(out.Operands, t.traced(p, operand, secret))
	}
	return out
}

// hide keeps errors that may hold data of a Secret from being shown. That
// something is not known never does.
func (t *tracer) hide(err error) error {
	var unknown *UnknownError
	switch {
	case err == nil || !t.isSecret() || errors.Is(err, expression.ErrNotReached):
		return err
	case errors.As(err, &unknown):
		return unknown
	}
	return errHidden
}

// kind names the kind of patch as the rule file does.
func (p *patchTemplate) kind() string {
	switch {
	case p.merge != nil:
		return "merge"
	case p.json != nil:
		return "json"
	}
	return "applyConfiguration"
}

// programs are those that compute what is written.
func (p *patchTemplate) programs() []*expression.Program {
	return slices.Concat(programsOf(p.merge), programsOf(p.json), programsOf(p.apply))
}

// valueAt is the value that a path leads to.
func valueAt(v any, path patch.Pointer) (value any, exists bool) {
	for _, token := range path {
		switch container := v.(type) {
		case map[string]any:
			if v, exists = container[token]; !exists {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(container) {
				return nil, false
			}
			v = container[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// traceOf is the trace of a rule in a chain; nil if there is none.
func (c *chain) traceOf(r *Rule) *Trace {
	for _, v := range c.verdicts {
		if v.Rule == r {
			return v.Trace
		}
	}
	return nil
}
