package importer

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// writer writes YAML by hand: expressions are to stand as blocks, line by
// line as in the policy, which an encoder leaves to its own taste.
type writer struct{ strings.Builder }

// line writes a line at a depth of indentation.
func (w *writer) line(depth int, format string, args ...any) {
	w.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

// render writes one rule.
func render(name string, p *policy, b *binding, g group) string {
	w := &writer{}
	w.comment(p, b)
	w.line(0, "apiVersion: %s", rules.APIVersion)
	w.line(0, "kind: %s", rules.Kind)
	w.line(0, "metadata:")
	w.line(1, "name: %s", scalar(name))
	w.line(0, "spec:")
	if p.description.node != nil {
		w.value(1, "description: ", strings.Join(strings.Fields(p.description.value), " "))
	}
	w.resources(g.resources)
	w.match(g)
	if len(p.variables) > 0 {
		w.line(1, "variables:")
	}
	for _, v := range p.variables {
		w.line(2, "- name: %s", scalar(v.name.value))
		w.value(3, "expression: ", v.expression.value)
	}
	w.condition(p.conditions)
	w.patches(p.mutations)
	return w.String()
}

// comment names where the rule comes from.
func (w *writer) comment(p *policy, b *binding) {
	w.line(0, "# Imported from the %s %s (%s) at %s", p.kind, p.name.value, p.apiVersion, place(p.reader))
	if b != nil {
		w.line(0, "# with the binding %s at %s", b.name.value, place(b.reader))
	}
}

// place is file:line; a file's name may hold anything.
func place(r *reader) string {
	pos := r.doc.Pos(r.node)
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
			return '?'
		}
		return c
	}, fmt.Sprintf("%s:%d", pos.File, pos.Line))
}

func (w *writer) resources(list []schema.GroupVersionResource) {
	if len(list) == 1 {
		w.line(1, "resource:")
		w.line(2, "group: %s", scalar(list[0].Group))
		w.line(2, "version: %s", scalar(list[0].Version))
		w.line(2, "resource: %s", scalar(list[0].Resource))
		return
	}
	w.line(1, "resources:")
	for _, r := range list {
		w.line(2, "- {group: %s, version: %s, resource: %s}", flow(r.Group), flow(r.Version), flow(r.Resource))
	}
}

func (w *writer) match(g group) {
	names := g.names.globs()
	if len(names) == 0 && isEmpty(g.labels) && isEmpty(g.namespaces) {
		return
	}
	w.line(1, "match:")
	field := "names"
	if g.names.allBut {
		field = "excludeNames"
	}
	if len(names) > 0 {
		w.line(2, "%s: %s", field, flowList(names))
	}
	w.selector("labelSelector", g.labels)
	w.selector("namespaceSelector", g.namespaces)
}

func (w *writer) selector(field string, s metav1.LabelSelector) {
	if isEmpty(s) {
		return
	}
	w.line(2, "%s:", field)
	if len(s.MatchLabels) > 0 {
		w.line(3, "matchLabels:")
	}
	for _, key := range sortedKeys(s.MatchLabels) {
		w.line(4, "%s: %s", scalar(key), scalar(s.MatchLabels[key]))
	}
	if len(s.MatchExpressions) > 0 {
		w.line(3, "matchExpressions:")
	}
	for _, e := range s.MatchExpressions {
		w.line(4, "- key: %s", scalar(e.Key))
		w.line(5, "operator: %s", scalar(string(e.Operator)))
		if len(e.Values) > 0 {
			w.line(5, "values: %s", flowList(e.Values))
		}
	}
}

// condition writes the match conditions. They are joined by &&, which has the
// meaning that they have in admission: one that is false decides, whatever
// another one's error is; without one that is false an error decides.
func (w *writer) condition(conditions []named) {
	if len(conditions) == 1 {
		w.value(1, "condition: ", conditions[0].expression.value)
		return
	}
	var joined []string
	for i, c := range conditions {
		and := "&& "
		if i == 0 {
			and = ""
		}
		joined = append(joined, "// "+strings.Join(strings.Fields(c.name.value), " "), and+enclose("(", trim(c.expression.value), ")"))
	}
	if joined != nil {
		w.value(1, "condition: ", strings.Join(joined, "\n"))
	}
}

func (w *writer) patches(mutations []mutation) {
	prefix, depth := "", 3
	if len(mutations) == 1 {
		w.line(1, "patch:")
	} else {
		w.line(1, "patches:")
		prefix, depth = "- ", 4
	}
	for _, m := range mutations {
		kind := "json"
		if m.apply {
			kind = "applyConfiguration"
		}
		w.WriteString("    ")
		w.block(prefix+kind+": ", depth, enclose("${", trim(m.expression.value), "}"))
	}
}

// enclose puts an expression between two signs; the second stands on a line of
// its own where a comment would swallow it.
func enclose(open, expression, end string) string {
	last := expression[strings.LastIndexByte(expression, '\n')+1:]
	if strings.Contains(last, "//") {
		end = "\n" + end
	}
	return open + expression + end
}

func trim(s string) string { return strings.Trim(s, " \t\r\n") }

// value writes a field: plain where that is safe and short, else as a block.
func (w *writer) value(depth int, field, s string) {
	s = trim(s)
	w.WriteString(strings.Repeat("  ", depth))
	if scalar(s) == s && len(s) <= wide {
		w.WriteString(field + s + "\n")
		return
	}
	w.block(field, depth+1, s)
}

// block writes the rest of a line and a string as a literal block, or quoted
// where a block cannot hold it.
func (w *writer) block(field string, depth int, s string) {
	unsafe := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == unicode.ReplacementChar)
	}
	if strings.IndexFunc(s, unsafe) >= 0 || s == "" {
		w.WriteString(field + quoted(s) + "\n")
		return
	}
	indent := strings.Repeat("  ", depth)
	style := "|-"
	if !strings.Contains(s, "\n") && len(s) > wide {
		style, s = ">-", fold(s)
	}
	w.WriteString(field + style + "\n")
	for line := range strings.SplitSeq(s, "\n") {
		if line != "" {
			line = indent + line
		}
		w.WriteString(line + "\n")
	}
}

// wide is where a line is long enough to be folded.
const wide = 100

// fold breaks one long line at single spaces, which a folded block (>-) puts
// back: the value stays the same.
func fold(s string) string {
	b := []byte(s)
	start, last := 0, -1
	for i := range b {
		if i > 0 && i < len(b)-1 && b[i] == ' ' && !blank(b[i-1]) && !blank(b[i+1]) {
			last = i
		}
		if i-start > wide && last > start {
			b[last] = '\n'
			start, last = last+1, -1
		}
	}
	return string(b)
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// scalar writes a string on one line as YAML, quoted where it must be.
func scalar(s string) string {
	out, err := yaml.Marshal(s)
	text := strings.TrimSuffix(string(out), "\n")
	if err != nil || strings.Contains(text, "\n") {
		return quoted(s)
	}
	if text == s && !yamldoc.IsString(&yaml.Node{Kind: yaml.ScalarNode, Value: s}) {
		return quoted(s) // a word of YAML 1.1
	}
	return text
}

// quoted is a string between double quotes, on one line.
func quoted(s string) string {
	out, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: s})
	if err != nil {
		panic(fmt.Sprintf("importer: encode a string: %v", err)) // no string has this
	}
	return strings.TrimSuffix(string(out), "\n")
}

// flow writes a string as it may stand within {…} or […].
func flow(s string) string {
	if text := scalar(s); !strings.ContainsAny(text, "{}[],") || text != s {
		return text
	}
	return quoted(s)
}

func flowList(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = flow(s)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
