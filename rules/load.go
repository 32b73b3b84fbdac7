package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// maxDepth is how deep a rule file may be nested.
const maxDepth = 64

// Load compiles all rules of the sources. What is wrong is returned as
// problems, sorted by file and position: each keeps its rule out of the set
// (or its whole file, where the YAML cannot be read) and none of the others.
func Load(sources ...Source) (*Set, []*Problem) {
	set, _, problems := LoadDefinitions(sources...)
	return set, problems
}

// LoadDefinitions is Load, and gives all rules that have a name beside their
// text, in the order of the sources.
func LoadDefinitions(sources ...Source) (*Set, []*Definition, []*Problem) {
	l := read(sources)
	return newSet(l.compiled()), l.definitions, l.problems
}

// read reads and compiles all rules, and sorts what is wrong with them.
func read(sources []Source) *loader {
	l := &loader{named: map[string][]namesake{}}
	for _, s := range sources {
		l.file(s)
	}
	for name, same := range l.named {
		if len(same) == 1 {
			continue
		}
		for i, n := range same {
			other := same[(i+1)%len(same)]
			l.problems = append(l.problems, &Problem{Pos: n.pos, Rule: name, Check: CheckDuplicateName, Line: n.line,
				Msg: fmt.Sprintf("there is another rule of this name at %s%s", other.pos, neitherUsed)})
		}
	}
	slices.SortStableFunc(l.problems, func(a, b *Problem) int {
		return cmp.Or(strings.Compare(a.Pos.File, b.Pos.File), a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
	})
	return l
}

// neitherUsed ends the message about two rules of one name. At a reload it goes, see
// keep: there the rule stays in force as it was.
const neitherUsed = ": neither is used"

type loader struct {
	named       map[string][]namesake
	definitions []*Definition
	problems    []*Problem
}

// compiled returns the rules that compile and share their name with no other.
func (l *loader) compiled() []*Rule {
	var all []*Rule
	for _, same := range l.named {
		if len(same) == 1 && same[0].rule != nil {
			all = append(all, same[0].rule)
		}
	}
	return all
}

// namesake is one of the rules that claim a name.
type namesake struct {
	pos  yamldoc.Position
	line string
	rule *Rule // nil: it does not compile
}

func (l *loader) file(s Source) {
	if len(s.Data) > MaxFileBytes { // and then it was not read to its end
		l.problems = append(l.problems, &Problem{Pos: yamldoc.Position{File: s.Name, Line: 1, Column: 1}, Check: CheckYAMLSyntax,
			Msg: fmt.Sprintf("the file is larger than %d bytes (1 MiB)", MaxFileBytes)})
		return
	}
	docs, err := yamldoc.Parse(s.Name, s.Data, yamldoc.Limits{MaxBytes: MaxFileBytes, MaxDepth: maxDepth})
	if err != nil {
		l.problems = append(l.problems, unreadable(s, err))
		return
	}
	for _, doc := range docs {
		l.document(doc, doc.Root, s.Listed)
	}
}

// unreadable turns an error of the YAML parser into a problem of the file.
func unreadable(s Source, err error) *Problem {
	p := &Problem{Pos: yamldoc.Position{File: s.Name, Line: 1, Column: 1}, Check: CheckYAMLSyntax, Msg: err.Error()}
	var at *yamldoc.Error
	if errors.As(err, &at) {
		p.Pos, p.Msg = at.Pos, at.Msg
	}
	lines := strings.Split(string(s.Data), "\n")
	if n := p.Pos.Line; n >= 1 && n <= len(lines) {
		p.Line = strings.TrimSuffix(lines[n-1], "\r")
		switch {
		case at != nil && at.Err != nil && strings.Contains(p.Line, "${"):
			p.Check = CheckTemplate
			p.Msg += ": a template with `: `, ` #`, quotes or braces must be quoted or stand in a |- block"
		case strings.Contains(strings.ReplaceAll(p.Line, "${{", ""), "{{"):
			p.Msg += " ({{ looks like a template, which has to be rendered first)"
		case at != nil && at.Err != nil:
			p.unquoted()
		}
	}
	return p
}

// document loads a rule, or the items of a List.
func (l *loader) document(doc *yamldoc.Document, n *yaml.Node, listed bool) {
	n = yamldoc.Resolve(n)
	d := &decoder{doc: doc}
	defer func() { l.problems = append(l.problems, d.problems...) }()
	if n.Kind != yaml.MappingNode {
		d.fail(n, "a rule must be a mapping, not %s", strictyaml.Describe(n))
		return
	}
	_, version := field(n, "apiVersion")
	_, kind := field(n, "kind")
	switch {
	case version != nil && kind != nil && version.Value == APIVersion && kind.Value == Kind:
		l.rule(d, n)
	case version != nil && kind != nil && version.Value == APIVersion && kind.Value == "RuleTest":
		// Tests stand beside the rules that they test.
	case version != nil && kind != nil && isList(version.Value, kind.Value):
		l.list(d, n, listed)
	case listed && version != nil && kind != nil && !strings.HasPrefix(version.Value, "rectifier.dev/") && kind.Value != Kind:
		// Manifests, kustomizations and the like beside rules in a folder.
	default:
		d.fail(n, "not a rule: a rule has apiVersion %s and kind %s, this has %s and %s", APIVersion, Kind, found(version), found(kind))
	}
}

func found(n *yaml.Node) string {
	switch {
	case n == nil:
		return "none"
	case n.Kind != yaml.ScalarNode:
		return strictyaml.Describe(n)
	}
	return n.Value
}

// isList reports whether a document wraps others: what `kubectl get -o yaml`
// prints, or a list of rules.
func isList(version, kind string) bool {
	return version == "v1" && kind == "List" || version == APIVersion && kind == Kind+"List"
}

func (l *loader) list(d *decoder, n *yaml.Node, listed bool) {
	_, items := field(n, "items")
	if items == nil || strictyaml.IsNull(items) {
		return
	}
	if items.Kind != yaml.SequenceNode {
		d.fail(items, "items must be a list, not %s", strictyaml.Describe(items))
		return
	}
	for _, item := range items.Content {
		l.document(d.doc, item, listed)
	}
}

func (l *loader) rule(d *decoder, n *yaml.Node) {
	var doc document
	d.spec, _ = field(n, "spec")
	if _, meta := field(n, "metadata"); meta != nil && meta.Kind == yaml.MappingNode {
		if _, name := field(meta, "name"); name != nil {
			d.rule = name.Value // so that all problems are named
		}
	}
	mark := len(d.problems)
	d.strict().Decode(n, &doc, "")
	doc.Spec.forgetUnread()
	name := doc.Metadata.Name
	_, meta := field(n, "metadata")
	switch {
	case name.node == nil && lacks(n, document{}, "metadata"), name.node == nil && meta != nil && meta.Kind == yaml.MappingNode && lacks(meta, metadata{}, "name"):
		d.fail(n, "metadata.name is missing")
	case name.node != nil && len(validation.IsDNS1123Label(name.value)) > 0:
		d.fail(name.node, "%q is not a rule name: lower-case letters, digits and -, at most 63 characters", name.value)
	}
	if lacks(n, document{}, "spec") {
		d.fail(n, "spec is missing")
	}
	// What could be read of a broken rule is looked at all the same, so that all
	// that is wrong is told at once.
	var compiled *Rule
	if _, body := field(n, "spec"); body != nil && body.Kind == yaml.MappingNode {
		compiled = d.compile(doc, body)
	}
	if name.node == nil {
		return
	}
	claim := namesake{pos: d.doc.Pos(name.node)}
	claim.line = d.doc.Line(claim.pos.Line)
	if d.ok(mark) {
		claim.rule = compiled
	}
	l.definitions = append(l.definitions, &Definition{claim.rule, name.value, d.doc, n, d.expressions})
	l.named[name.value] = append(l.named[name.value], claim)
}
