package strictyaml

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// Pair is an entry of a mapping.
type Pair struct{ Key, Value *yaml.Node }

// Pairs lists a mapping's entries in order, merge keys (<<) expanded; an
// explicit entry wins over a merged one. Aliases of values are followed.
func Pairs(n *yaml.Node) []Pair {
	var out []Pair
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], yamldoc.Resolve(n.Content[i+1])
		if k.Tag == "!!merge" {
			merged = append(merged, v)
			continue
		}
		seen[k.Value] = true
		out = append(out, Pair{k, v})
	}
	for _, m := range merged {
		sources := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content
		}
		for _, s := range sources {
			for _, p := range Pairs(yamldoc.Resolve(s)) {
				if !seen[p.Key.Value] {
					seen[p.Key.Value] = true
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// IsNull reports whether a node is null: written so, or left empty.
func IsNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Tagged reports whether a scalar has a tag of its own: an unquoted !has(…).
func Tagged(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// Describe names what a node holds, in the words of YAML.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	v, err := yamldoc.Value(n)
	if err != nil {
		return "a value that cannot be read"
	}
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	}
	return "a string"
}
