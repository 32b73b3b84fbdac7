package expression

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

var (
	undeclared    = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	wordAtStart   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	wordAtEnd     = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*$`)
	functionName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]*$`)
	reserved      = regexp.MustCompile(`^reserved identifier: (\w+)`)
	boundVariable = regexp.MustCompile(`\.\s*[A-Za-z_]+\s*\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*,`)
	firstArgument = regexp.MustCompile(`^\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*[,)]`)
)

// operatorWords are what other languages write for what CEL has signs for.
var operatorWords = map[string]string{"and": "&&", "or": "||", "not": "!"}

// issuesOf turns what CEL says of a source into issues, and adds what was
// likely meant. names are those that the source may read.
func issuesOf(source string, errs []*common.Error, names []string) []*Issue {
	out := make([]*Issue, 0, len(errs))
	var known []cause
	for _, err := range errs {
		i := &Issue{Offset: offset(source, err.Location)}
		i.Msg = strings.ReplaceAll(err.Message, " (in container '')", "")
		at := i.Offset
		if name := unknownName(i.Msg); name != "" {
			known = append(known, i.plainKey(source)...)
			if i.Offset == at {
				known = append(known, i.meant(source, name, names)...)
			}
			if name == "if" {
				known = append(known, follows{i})
			}
		} else if i.operatorSign(source) {
			known = append(known, follows{i})
		} else if !i.operatorWord(source) {
			i.Msg += hint(i.Msg, source[min(at, len(source)):])
		}
		out = append(out, i)
	}
	slices.SortStableFunc(out, func(a, b *Issue) int { return a.Offset - b.Offset })
	return slices.DeleteFunc(out, func(i *Issue) bool {
		return slices.ContainsFunc(known, func(k cause) bool { return k.explains(i) })
	})
}

// unknownName is the name that an issue is about, empty if it is about another thing.
func unknownName(msg string) string {
	for _, re := range []*regexp.Regexp{undeclared, reserved} {
		if m := re.FindStringSubmatch(msg); m != nil {
			return m[1]
		}
	}
	return ""
}

// cause is what was told of one issue, and that explains others: those are not
// told.
type cause interface{ explains(*Issue) bool }

// misspelled is a macro that CEL did not know as one: for CEL, the variable that
// it declares is not declared.
type misspelled struct {
	variable   string
	start, end int // of its arguments
}

func (m misspelled) explains(i *Issue) bool {
	name := undeclared.FindStringSubmatch(i.Msg)
	return name != nil && name[1] == m.variable && m.start < i.Offset && i.Offset < m.end
}

// meant adds to an issue of an undeclared name what is close to it. The position
// that CEL gives for a function is that of its parenthesis; that of the name is
// what people look for.
func (i *Issue) meant(source, name string, names []string) []cause {
	rest := source[min(i.Offset, len(source)):]
	if !strings.HasPrefix(rest, "(") {
		for _, m := range boundVariable.FindAllStringSubmatch(source[:i.Offset], -1) {
			names = append(slices.Clip(names), m[1])
		}
		i.Msg += nameHint(name, names, rest)
		return nil
	}
	before := strings.TrimRight(source[:i.Offset], " \t\r\n")
	if !strings.HasSuffix(before, name) {
		return nil
	}
	i.Offset = len(before) - len(name)
	switch {
	case operatorWords[strings.ToLower(name)] != "":
		i.Msg += wordHint(name)
	case name == "now":
		i.Msg += ": now is a variable, not a function"
	case slices.Contains(macroNames(), name):
		i.Msg += ": it takes a name and an expression, such as " + name + "(x, …)"
	default:
		i.Msg += didYouMean(name, append(functionNames(before[:i.Offset]), macroNames()...))
	}
	m := firstArgument.FindStringSubmatch(rest)
	end := scan(source).closing(len(source)-len(rest), len(source))
	if m == nil || end < 0 {
		return nil
	}
	return []cause{misspelled{m[1], len(source) - len(rest), end}}
}

// didYouMean names what is closest, in the quotes of CEL's own messages.
func didYouMean(name string, candidates []string) string {
	if len(name) == 1 {
		return "" // any letter is close to any other
	}
	near := suggest.Near(name, candidates, max(1, len(name)/3))
	if near == "" || near == name {
		return ""
	}
	return fmt.Sprintf(" (did you mean '%s'?)", near)
}

// nameHint tells what an undeclared name is called here; rest is the source from
// it on.
func nameHint(name string, names []string, rest string) string {
	switch name {
	case "Object", "JSONPatch":
		return "" // of patches
	case "request", "oldObject", "params", "authorizer":
		return ": it exists in admission only; a rule sees the stored object"
	case "self", "this":
		return ": the object is called object"
	case "if", "else":
		return ": CEL has no " + name + ": write condition ? a : b"
	case "nil", "None", "Null", "NULL", "undefined":
		return ": write null"
	case "True", "TRUE", "False", "FALSE":
		return ": write " + strings.ToLower(name)
	}
	if name == "namespace" && strings.HasPrefix(rest, name+".") && slices.Contains(names, "namespaceObject") {
		return ": the Namespace is called namespaceObject, its name is object.metadata.namespace"
	}
	var roots []string
	for _, n := range names {
		root, _, _ := strings.Cut(n, ".")
		roots = append(roots, root)
	}
	near := didYouMean(name, roots)
	switch {
	case near != "" || !slices.Contains(names, "object"):
	case slices.Contains(objectFields, name):
		return ": write object." + name
	case slices.Contains(metadataFields, name):
		return ": write object.metadata." + name
	}
	return near
}

// Fields that people name without the object that they are of.
var (
	objectFields   = []string{"apiVersion", "data", "kind", "metadata", "spec", "status"}
	metadataFields = []string{"annotations", "creationTimestamp", "finalizers", "labels", "name", "namespace", "ownerReferences", "uid"}
)

func wordHint(word string) string {
	return fmt.Sprintf(": CEL has no %s: write %s", word, operatorWords[strings.ToLower(word)])
}

// operatorWord tells of a syntax error that comes of a word in the place of an
// operator, and moves the issue there; false if it comes of something else.
func (i *Issue) operatorWord(source string) bool {
	if !strings.HasPrefix(i.Msg, "Syntax error: ") {
		return false
	}
	at := min(i.Offset, len(source))
	word := wordAtStart.FindString(source[at:])
	if operatorWords[strings.ToLower(word)] == "" {
		before := strings.TrimRight(source[:at], " \t\r\n")
		word = wordAtEnd.FindString(before)
		at = len(before) - len(word)
	}
	if operatorWords[strings.ToLower(word)] == "" {
		return false
	}
	i.Offset = at
	i.Msg = "Syntax error" + wordHint(word)
	return true
}

// functionNames are the functions that can be called behind a text: those with
// a namespace only behind it.
func functionNames(before string) []string {
	var out []string
	space := ""
	if strings.HasSuffix(before, ".") {
		space = wordAtEnd.FindString(strings.TrimSuffix(before, "."))
	}
	for name := range base().Functions() {
		namespace, short, dotted := strings.Cut(name, ".")
		switch {
		case !functionName.MatchString(name):
		case dotted && namespace == space:
			out = append(out, short)
		case !dotted:
			out = append(out, name)
		}
	}
	return out
}

func macroNames() []string {
	var out []string
	for _, m := range base().Macros() {
		out = append(out, m.Function())
	}
	return out
}
