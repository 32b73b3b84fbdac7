package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// literalExpression finds texts that are written as they stand, but were most
// likely meant to be evaluated: the whole text is a path such as
// object.metadata.name, or a path stands in what other tools evaluate. Only
// names that this rule has count, and only fields that the object has: a host name,
// a shell's $(date) and the templates of other tools are texts like any other.
var literalExpression = &Check{
	ID: "literal-expression", Severity: Warning, Summary: "A text looks like CEL, but is not in ${…}",
	Run: runLiteralExpression,
}

func runLiteralExpression(p *Pass) {
	if slices.ContainsFunc(p.Rule.Resources, holdsPolicies) {
		return
	}
	f := newTextFinder(p)
	for _, n := range p.PatchNodes() {
		for _, kind := range []string{"merge", "json", "applyConfiguration"} {
			if _, patch := yamldoc.Field(n, kind); patch != nil {
				f.visit(patch)
			}
		}
	}
	if lookups := p.Field("spec", "lookups"); lookups != nil {
		for _, item := range lookups.Content {
			item = yamldoc.Resolve(item)
			if _, where := yamldoc.Field(item, "where"); where != nil {
				for _, p := range strictyaml.Pairs(where) { // the keys are paths
					f.visit(p.Value)
				}
			}
			if _, selector := yamldoc.Field(item, "labelSelector"); selector != nil {
				f.visit(selector)
			}
		}
	}
	if message := p.Field("spec", "event", "message"); message != nil {
		f.visit(message)
	}
}

// holdsPolicies reports whether objects of a resource hold expressions of their
// own, about other objects.
func holdsPolicies(resource schema.GroupVersionResource) bool {
	return resource.Group == "admissionregistration.k8s.io" || resource.Group == "apiextensions.k8s.io" ||
		resource.Group == "kyverno.io" || strings.HasSuffix(resource.Group, ".kyverno.io")
}

// policyKeys are those below which objects of any kind hold expressions.
var policyKeys = regexp.MustCompile(`(?i)expression|^validations$|^matchConditions$`)

// textFinder finds texts of one rule that look like its CEL.
type textFinder struct {
	pass    *Pass
	env     *expression.Env // nil: it cannot be built
	begins  *regexp.Regexp  // what a text begins with that is a path
	foreign *regexp.Regexp  // {{ path }} or $( path )
}

// genericFields are the fields at the top of objects whose schema is not known.
var genericFields = []string{"apiVersion", "kind", "metadata", "spec", "status"}

func newTextFinder(p *Pass) *textFinder {
	f := &textFinder{pass: p}
	names := []string{"object", "namespaceObject", "request", "oldObject"}
	fields := slices.Clone(genericFields)
	for _, resource := range p.Rule.Resources {
		if shape := p.typing.kinds.of(resource).shape; shape != nil {
			fields = append(fields, shape.Fields()...)
		}
	}
	for i := range fields {
		fields[i] = regexp.QuoteMeta(fields[i])
	}
	roots := []string{
		`(object|oldObject|request\.object|request\.oldObject)\.\??(` + strings.Join(fields, "|") + `)`,
		`namespaceObject\.\??(metadata|spec|status)`,
	}
	for _, e := range p.Expressions {
		if name := "variables." + e.Name; e.Part == "variable" && !slices.Contains(names, name) {
			names, roots = append(names, name), append(roots, regexp.QuoteMeta(name))
		}
	}
	for _, l := range p.Rule.Lookups {
		names, roots = append(names, "lookups."+l.Name), append(roots, regexp.QuoteMeta("lookups."+l.Name))
	}
	path := `(` + strings.Join(roots, "|") + `)\b`
	f.begins = regexp.MustCompile(`^((string|int|double|bool|size)\()?` + path)
	f.foreign = regexp.MustCompile(`(\{\{-?|\$\()\s*` + path)
	env := expression.NewEnv()
	for _, name := range names {
		var err error
		if env, err = env.Declare(name, expression.Dyn); err != nil {
			return f
		}
	}
	f.env = env
	return f
}

// visit looks at all texts of a value, keys among them.
func (f *textFinder) visit(n *yaml.Node) {
	n = yamldoc.Resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		for _, p := range strictyaml.Pairs(n) {
			f.text(p.Key)
			if !policyKeys.MatchString(p.Key.Value) {
				f.visit(p.Value)
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			f.visit(item)
		}
	case yaml.ScalarNode:
		f.text(n)
	}
}

func (f *textFinder) text(n *yaml.Node) {
	if !yamldoc.IsString(n) || f.env == nil {
		return
	}
	if source := strings.TrimSpace(n.Value); f.begins.MatchString(source) && f.isPath(source) {
		f.pass.Reportf(f.pass.Doc.Pos(n), "this is written as it stands, but looks like CEL: write %s", meant(source))
		return
	}
	for _, at := range f.foreign.FindAllStringIndex(n.Value, -1) {
		if at[0] > 0 && n.Value[at[0]-1] == '$' {
			continue // ${{ begins a map in CEL, $$( is an escape of the shell's
		}
		open, shut := "{{", "}}"
		if strings.HasPrefix(n.Value[at[0]:], "$(") {
			open, shut = "$(", ")"
		}
		inner, _, closed := strings.Cut(n.Value[at[0]+len(open):], shut)
		if inner = strings.Trim(inner, "- \t"); closed {
			f.pass.Reportf(f.pass.Doc.PosIn(n, at[0]), "%s %s is no template here, and written as it stands: write %s", open, shut, meant(inner))
			return // one is enough to see the others
		}
	}
}

// meant is what to write for a path.
func meant(source string) string {
	source = strings.TrimPrefix(strings.TrimPrefix(source, "request."), "oldObject.")
	const most = 60
	if len(source) > most {
		source = "…"
	}
	return fmt.Sprintf("${%s}", source)
}

// isPath reports whether a text is CEL that reads one field, perhaps with a
// default or converted.
func (f *textFinder) isPath(source string) bool {
	program, _ := f.env.Compile(source)
	if program == nil {
		return false
	}
	n := program.Syntax()
	for {
		switch {
		case n.Kind == expression.Ident:
			return n.Declared
		case n.Kind == expression.Select && !n.Test:
			n = n.Target
		case n.Kind == expression.Index && n.Args[0].Kind == expression.Literal:
			n = n.Target
		case n.Kind == expression.Call && n.Target != nil && (n.Name == "orValue" || n.Name == "size" || n.Name == "value"):
			n = n.Target
		case n.Kind == expression.Call && n.Target == nil && len(n.Args) == 1:
			n = n.Args[0]
		default:
			return false
		}
	}
}
