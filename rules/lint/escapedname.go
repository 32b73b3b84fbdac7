package lint

import (
	"regexp"
	"strings"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// escapedName finds field names in the escaping of admission policies, where
// the names of a schema's fields must be identifiers. A rule's object has its
// keys as they are stored, so the escaped name is a key that nobody has.
var escapedName = &Check{ID: "escaped-name", Severity: Error, Summary: "A field is named with an escape such as __dash__", Run: func(p *Pass) {
	for _, e := range p.Expressions {
		e.Program.Syntax().Walk(func(n *expression.Node) bool {
			switch n.Kind {
			case expression.Select:
				if real, ok := unescape(n.Name); ok {
					p.Reportf(e.Pos(n.Offset), "%q is the field's name as it stands, not an escape: write %s", n.Name, instead(n, real))
				}
			case expression.Struct:
				for i, field := range n.Fields {
					if real, ok := unescape(field); ok {
						p.Reportf(e.Pos(n.Args[i].Start), "%q is the field's name as it stands, not an escape: write %s in a map, {%s: …}", field, quote(real), quote(real))
					}
				}
			}
			return true
		})
	}
}}

// instead is how the field is selected by its real name.
func instead(n *expression.Node, real string) string {
	target := spell(n.Target, "…")
	switch {
	case n.Test && plainName.MatchString(real):
		return "has(" + target + "." + real + ")"
	case n.Test:
		return quote(real) + " in " + target
	case plainName.MatchString(real):
		return target + "." + real
	case n.Optional:
		return target + "[?" + quote(real) + "]"
	}
	return target + "[" + quote(real) + "]"
}

var escape = regexp.MustCompile(`__(dot|dash|slash|underscores)__`)

// reserved are the words that admission policies escape by two underscores
// around them.
var reserved = regexp.MustCompile(`^__(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)__$`)

var unescaper = strings.NewReplacer("__dot__", ".", "__dash__", "-", "__slash__", "/", "__underscores__", "__")

func unescape(name string) (real string, ok bool) {
	if m := reserved.FindStringSubmatch(name); m != nil {
		return m[1], true
	}
	return unescaper.Replace(name), escape.MatchString(name)
}
