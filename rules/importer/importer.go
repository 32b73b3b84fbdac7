package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// Options are choices that the policies leave open.
type Options struct {
	// Unbound imports a MutatingAdmissionPolicy that no binding names as if one
	// bound it without restrictions. The API server never applies such a policy.
	Unbound bool
}

// Severity tells what a finding means for the import.
type Severity string

const (
	// Lost is what could not be carried over.
	Lost Severity = "lost"
	// Note is where a rule differs from admission by its nature.
	Note Severity = "note"
)

// Finding is what there is to say about a place in a policy.
type Finding struct {
	Severity Severity
	Pos      yamldoc.Position
	Policy   string // kind and name; empty where there is none
	Msg      string
	Line     string // the source line, for a caret
}

// String gives the finding on one line: file:line:column: error or note:
// policy: message.
func (f Finding) String() string {
	text := f.Pos.String() + ": error: "
	if f.Severity == Note {
		text = f.Pos.String() + ": note: "
	}
	if f.Policy != "" {
		text += f.Policy + ": "
	}
	return text + f.Msg
}

// Rule is one imported rule.
type Rule struct {
	Name string
	Text string // a YAML document, with a comment that names its source
}

// Result is what became of the policies.
type Result struct {
	Policies int       // that were found
	Dropped  int       // of which no rule came
	Rules    []Rule    // in the order of the policies
	Findings []Finding // by position
	// Unreadable are the files whose YAML does not parse.
	Unreadable []error
}

// Lost reports whether something could not be carried over.
func (r *Result) Lost() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Lost })
}

// YAML returns all rules as one stream of documents.
func (r *Result) YAML() string {
	texts := make([]string, len(r.Rules))
	for i, rule := range r.Rules {
		texts[i] = rule.Text
	}
	return strings.Join(texts, "---\n")
}

// Import reads policies and bindings from all files, which may be in any
// order, and makes rules of them.
func Import(files []input.File, o Options) *Result {
	im := &importer{options: o, result: &Result{}, names: map[string]bool{}}
	for _, f := range files {
		im.file(f)
	}
	im.checkNames()
	for _, b := range im.bindings {
		im.bind(b)
	}
	for _, p := range im.policies {
		before := len(im.result.Rules)
		if im.policy(p); len(im.result.Rules) == before {
			im.result.Dropped++
		}
	}
	im.finish()
	return im.result
}

type importer struct {
	options  Options
	result   *Result
	policies []*policy
	bindings []*binding
	names    map[string]bool // of rules
}

func (im *importer) file(f input.File) {
	docs, err := yamldoc.Parse(f.Name, f.Data, yamldoc.ManifestLimits)
	if err != nil {
		im.result.Unreadable = append(im.result.Unreadable, err)
		return
	}
	for _, doc := range docs {
		im.document(doc, doc.Root, f.Listed)
	}
}

// Groups whose kinds are policies: what of them is not understood is lost.
const (
	admissionGroup = "admissionregistration.k8s.io"
	kyvernoGroup   = "policies.kyverno.io"
)

func (im *importer) document(doc *yamldoc.Document, n *yaml.Node, listed bool) {
	n = yamldoc.Resolve(n)
	r := &reader{im: im, doc: doc, node: n}
	version, kind := scalarField(n, "apiVersion"), scalarField(n, "kind")
	group, _, _ := strings.Cut(version, "/")
	r.subject = strings.TrimSpace(kind)
	if _, items := yamldoc.Field(n, "items"); items != nil && strings.HasSuffix(kind, "List") {
		for _, item := range items.Content {
			im.document(doc, item, listed)
		}
		return
	}
	switch {
	case group == admissionGroup && kind == "MutatingAdmissionPolicy" && r.version(version, "v1", "v1beta1", "v1alpha1"):
		im.addPolicy(r.admissionPolicy())
	case group == admissionGroup && kind == "MutatingAdmissionPolicyBinding" && r.version(version, "v1", "v1beta1", "v1alpha1"):
		im.bindings = append(im.bindings, r.binding())
	case group == kyvernoGroup && kind == "MutatingPolicy" && r.version(version, "v1", "v1beta1", "v1alpha1"):
		im.addPolicy(r.kyvernoPolicy())
	case r.lost: // a version that is not known
	case group == admissionGroup || group == kyvernoGroup || group == "kyverno.io":
		r.lose(n, "%s of %s cannot be imported: only MutatingAdmissionPolicy, its binding and Kyverno's MutatingPolicy can", orNone(kind), version)
	case !listed:
		r.note(n, "%s of %s is not a policy: left out", orNone(kind), orNone(version))
	}
}

func (im *importer) addPolicy(p *policy) {
	im.result.Policies++
	im.policies = append(im.policies, p)
}

// checkNames finds policies of the same kind and name: which one a binding
// means is not known.
func (im *importer) checkNames() {
	type id struct{ kind, name string }
	first := map[id]*policy{}
	for _, p := range im.policies {
		key := id{p.kind, p.name.value}
		if other := first[key]; other != nil && p.name.node != nil {
			p.lose(p.name.node, "there is another %s of this name at %s", p.kind, other.doc.Pos(other.name.node))
			continue
		}
		first[key] = p
	}
}

// bind finds the policy of a binding.
func (im *importer) bind(b *binding) {
	if b.policyName.node == nil {
		return // reported where it is missing
	}
	for _, p := range im.policies {
		if p.kind == admissionKind && p.name.value == b.policyName.value {
			p.bindings = append(p.bindings, b)
			return
		}
	}
	b.lose(b.policyName.node, "the MutatingAdmissionPolicy %q is not among the input", b.policyName.value)
}

// policy makes the rules of one policy, one or more for each binding.
func (im *importer) policy(p *policy) {
	p.check()
	if p.lost {
		return
	}
	if p.bindings == nil && p.kind == admissionKind && !im.options.Unbound {
		p.lose(p.node, "no MutatingAdmissionPolicyBinding among the input names this policy, and without one it is not in force: add the binding, or give --unbound")
		return
	}
	if p.bindings == nil {
		im.write(p, nil, "")
	}
	for _, b := range p.bindings {
		suffix := ""
		if len(p.bindings) > 1 {
			suffix = b.name.value
		}
		if !b.lost {
			im.write(p, b, suffix)
		}
	}
}

// write makes the rules of a policy under one binding, which is nil where none
// restricts it.
func (im *importer) write(p *policy, b *binding, suffix string) {
	groups := p.resources(b)
	if len(groups) == 0 && !p.dropped {
		p.note(p.node, "it matches no resource that a rule could act on%s: no rule comes of it", under(b))
	}
	for _, g := range groups {
		name := im.ruleName(p.name.value, suffix)
		im.result.Rules = append(im.result.Rules, Rule{name, render(name, p, b, g)})
	}
}

func under(b *binding) string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf(" under the binding %q", b.name.value)
}

// noRule ends the last of what is wrong with a policy, or binding, of which no
// rule comes.
const noRule = ": no rule is written for this "

// finish orders the findings, drops those that several bindings repeat, and
// notes of what was not carried over.
func (im *importer) finish() {
	type source struct{ file, subject string }
	lost := map[source]string{}
	for _, p := range im.policies {
		if p.lost {
			lost[source{p.doc.File, p.subject}] = noRule + "policy"
		}
	}
	for _, b := range im.bindings {
		if b.lost {
			lost[source{b.doc.File, b.subject}] = noRule + "binding"
		}
	}
	all := slices.DeleteFunc(im.result.Findings, func(f Finding) bool {
		return f.Severity == Note && lost[source{f.Pos.File, f.Policy}] != ""
	})
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Pos.File, b.Pos.File), a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column,
			strings.Compare(string(a.Severity), string(b.Severity)))
	})
	all = slices.Compact(all)
	for i := range slices.Backward(all) {
		from := source{all[i].Pos.File, all[i].Policy}
		all[i].Msg += lost[from]
		delete(lost, from)
	}
	im.result.Findings = all
}
