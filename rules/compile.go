package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	identifier   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	reasonName   = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// maxReason is the longest event reason that the API server takes.
const maxReason = 128

// compile turns a decoded document, with the mapping of its spec, into a rule.
// It returns nil after a problem; all problems are collected. Parts that could
// not be read are zero: they have been reported.
func (d *decoder) compile(doc document, body *yaml.Node) *Rule {
	mark := len(d.problems)
	d.body = body
	d.unreadNames(doc.Spec)
	d.reads, d.fields = map[string]yamldoc.Position{}, expression.NewAnalysis()
	r := &Rule{
		Name:        doc.Metadata.Name.value,
		Description: doc.Spec.Description,
		Resources:   d.resources(doc.Spec),
		Mode:        d.mode(doc.Spec.Mode),
		match:       d.compileMatch(doc.Spec.Match),
	}
	if name := doc.Metadata.Name.node; name != nil {
		r.Pos = d.doc.Pos(name)
	}
	env := d.declare("object", expression.NewEnv(), expression.Dyn)
	env = d.declare("namespaceObject", env, expression.Dyn)
	env = d.declare("now", env, expression.Timestamp)
	env, r.Lookups = d.compileLookups(env, doc.Spec.Lookups)
	env, r.variables = d.variables(env, doc.Spec.Variables)
	r.condition = d.condition(env, doc.Spec.Condition)
	r.patches = d.patches(env, doc.Spec, r.Resources)
	r.Secret = readsSecrets(r)
	r.NamesNamespaces = r.match.namespaces != nil
	r.NeedsSchema = slices.ContainsFunc(r.patches, func(p patchTemplate) bool { return p.apply != nil })
	r.event = d.event(env, doc.Spec.Event)
	d.checkEvent(r, doc.Spec.Event)
	for _, l := range r.Lookups {
		l.reads = d.fields.Paths(lookupPrefix + l.Name)
	}
	r.objectReads, r.namespaceReads = d.fields.Paths(objectName), d.fields.Paths(namespaceName)
	r.OptOut = d.optOut(doc.Spec.OptOut)
	r.RecheckAfter = d.recheckAfter(doc.Spec.RecheckAfter)
	_, namespaceRead := d.reads[namespaceName]
	r.NeedsNamespace = namespaceRead || r.match.namespaceLabels != nil
	if at, ok := d.reads[nowName]; ok && lacks(body, spec{}, "recheckAfter") {
		d.as(CheckRecheckMissing).failAt(at, "the rule reads now, but nothing makes it look again when time has passed: give recheckAfter, such as 1h")
	}
	if !d.ok(mark) {
		return nil
	}
	writes := d.findWrites(doc.Spec)
	r.writes = writes.found
	r.findReads(writes.taken, writes.tested)
	r.needs = r.objectFields()
	r.digest = digestOf(body)
	return r
}

// compiled notes an expression of the rule, which names it reads, and where.
func (d *decoder) compiled(p *expression.Program, source string, t text, offset int) *expression.Program {
	if p == nil {
		return nil
	}
	e := d.part
	e.Source, e.Program, e.doc, e.node, e.offset = source, p, d.doc, t.node, offset
	d.expressions = append(d.expressions, &e)
	for _, name := range p.Reads() {
		if _, ok := d.reads[name]; !ok {
			d.reads[name] = d.doc.PosIn(t.node, offset+firstRead(p, name))
		}
	}
	return p
}

// firstRead is where a program names what it reads first, 0 if it cannot be
// told.
func firstRead(p *expression.Program, name string) int {
	at := -1
	p.Syntax().Walk(func(n *expression.Node) bool {
		if n.Is(name) && (at < 0 || n.Start < at) {
			at = n.Start
		}
		return true
	})
	return max(at, 0)
}

func (d *decoder) optOut(t *text) bool {
	if t == nil || t.value == "Allowed" {
		return true
	}
	if t.value != "Forbidden" {
		d.fail(t.node, "optOut is Allowed or Forbidden, not %q", t.value)
	}
	return false
}

// minRecheck keeps a slip such as 1ms from becoming a busy loop.
const minRecheck = time.Second

func (d *decoder) recheckAfter(t *text) time.Duration {
	if t == nil {
		return 0
	}
	after, err := time.ParseDuration(t.value)
	switch {
	case err != nil:
		d.fail(t.node, "recheckAfter must be a duration such as 30s, 10m or 1h30m, not %q", t.value)
	case after < minRecheck:
		d.fail(t.node, "recheckAfter must be at least %v", minRecheck)
	}
	return after
}

func (d *decoder) mode(t *text) Mode {
	if t == nil {
		return Enforce
	}
	if m := Mode(t.value); m == Enforce || m == Audit {
		return m
	}
	d.fail(t.node, "mode is Enforce or Audit, not %q", t.value)
	return Enforce
}

func (d *decoder) declare(name string, env *expression.Env, t expression.Type) *expression.Env {
	next, err := env.Declare(name, t)
	if err != nil {
		d.fail(d.spec, "%v", err)
		return env
	}
	return next
}

// variables are compiled in order: each may read those before it.
func (d *decoder) variables(env *expression.Env, vars []variable) (*expression.Env, []compiledVariable) {
	var out []compiledVariable
	for _, v := range vars {
		d.part = Expression{Part: PartVariable, Name: v.Name.value}
		switch {
		case v.node == nil: // it is no mapping
			continue
		case lacks(v.node, variable{}, "name"), lacks(v.node, variable{}, "expression"):
			d.fail(v.node, "a variable needs a name and an expression")
			continue
		case v.Name.node == nil:
			continue
		case !variableName.MatchString(v.Name.value):
			d.fail(v.Name.node, "%q is not a variable name: letters, digits and _, not a digit first", v.Name.value)
			continue
		case slices.Contains(d.vars, v.Name.value):
			d.fail(v.Name.node, "the variable %q is given twice", v.Name.value)
			continue
		}
		t := expression.Dyn // after a problem, so that what reads it is still checked
		if v.Expression.node == nil {
			// It was reported.
		} else if p := d.expression(env, v.Expression); p != nil {
			t = p.Result()
			out = append(out, compiledVariable{v.Name.value, p})
			d.fields.Bind(variablePrefix+v.Name.value, p)
		}
		env = d.declare(variablePrefix+v.Name.value, env, t)
		d.vars = append(d.vars, v.Name.value)
	}
	return env, out
}

func (d *decoder) expression(env *expression.Env, t text) *expression.Program {
	if s := strings.TrimSpace(t.value); strings.HasPrefix(s, "${") {
		d.as(CheckTemplate).fail(t.node, "this is CEL already: write it without ${…}, which is for strings in patches and events")
		return nil
	}
	p, issues := env.Compile(t.value)
	d.failIssues(t, 0, t.value, issues)
	return d.compiled(p, t.value, t, 0)
}

// failIssues reports what is wrong with the CEL that stands at an offset of a
// string. It knows what the language does not: which names a rule has.
func (d *decoder) failIssues(t text, offset int, source string, issues []*expression.Issue) {
	for _, issue := range issues {
		msg := issue.Msg
		rest := source[min(issue.Offset, len(source)):]
		name := identifier.FindString(strings.TrimPrefix(rest, variablePrefix))
		switch {
		case d.inLookup && (strings.HasPrefix(rest, variablePrefix) || strings.HasPrefix(rest, lookupPrefix)):
			msg = "a lookup can read object, namespaceObject and now only: it comes before variables and other lookups"
		case d.unreadVariables && strings.HasPrefix(rest, variablePrefix), d.unreadLookups && strings.HasPrefix(rest, lookupPrefix):
			continue // what declares it could not be read
		case strings.HasPrefix(rest, variablePrefix) && name != "" && !slices.Contains(d.vars, name):
			msg = fmt.Sprintf("no variable %q is declared before this%s", name, suggest.DidYouMean(name, d.vars))
		case strings.HasPrefix(rest, lookupPrefix):
			name := identifier.FindString(strings.TrimPrefix(rest, lookupPrefix))
			msg = fmt.Sprintf("no lookup %q can be read here%s", name, suggest.DidYouMean(name, d.lookups))
		}
		check := CheckCELCompile
		if issue.Cost {
			check = CheckCostLimit
		}
		d.as(check).failIn(t, offset+issue.Offset, "%s", msg)
	}
}

func (d *decoder) condition(env *expression.Env, t *text) *expression.Program {
	if t == nil {
		return nil
	}
	d.part = Expression{Part: PartCondition}
	p := d.expression(env, *t)
	if p != nil && !p.Result().MayBeBool() {
		advice := ""
		if p.Result().Optional() {
			advice = ": say with orValue() what counts where it is absent"
		}
		d.as(CheckCELCompile).fail(t.node, "condition must be bool, but the expression gives %s%s", p.Result().Spell(), advice)
		return nil
	}
	if p != nil {
		d.fields.Read(p)
	}
	return p
}

func (d *decoder) patches(env *expression.Env, s spec, resources []schema.GroupVersionResource) []patchTemplate {
	all := s.Patches
	switch {
	case s.Patch != nil && s.Patches != nil:
		d.fail(d.spec, "both patch and patches are given: use one of them")
	case s.Patch != nil:
		all = []patchSpec{*s.Patch}
	case len(s.Patches) == 0 && (s.Patches != nil || lacks(d.body, spec{}, "patch") && lacks(d.body, spec{}, "patches")):
		d.fail(d.spec, "spec.patch is missing: say what is to be changed")
	}
	env, err := env.WithPatchTypes()
	if err != nil {
		d.fail(d.spec, "%v", err)
	}
	out := make([]patchTemplate, 0, len(all))
	for i, p := range all {
		if p.node == nil {
			continue // it is no mapping
		}
		d.part = Expression{Part: PartPatch, Patch: i}
		out = append(out, d.patch(env, p, resources))
	}
	return out
}

// event compiles what is told on the object after a fix.
func (d *decoder) event(env *expression.Env, e eventSpec) eventTemplate {
	out := eventTemplate{reason: DefaultReason}
	if e.Reason != nil {
		out.reason = e.Reason.value
		if !reasonName.MatchString(out.reason) || len(out.reason) > maxReason {
			d.fail(e.Reason.node, "%q is not an event reason: one word in CamelCase of at most %d characters", out.reason, maxReason)
		}
	}
	if e.Message != nil {
		segments, err := split(e.Message.value)
		if err != nil {
			d.failSplit(*e.Message, err)
			return out
		}
		d.part = Expression{Part: PartEvent}
		t := templates{decoder: d, env: env}
		switch m := t.mixed(*e.Message, segments).(type) {
		case mixed:
			out.message = m
		case constant:
			text, _ := m.value.(string)
			out.message = mixed{{text: text}}
		}
	}
	return out
}
