package lint

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

var emptyValue = &Check{
	ID: "empty-value", Severity: Warning, Summary: "A value that is left empty removes a field",
	Run: runEmptyValue,
}

func runEmptyValue(p *Pass) {
	for _, n := range p.PatchNodes() {
		for _, kind := range []string{"merge", "applyConfiguration"} {
			if _, patch := yamldoc.Field(n, kind); patch != nil {
				p.emptyValues(kind, patch, nil)
			}
		}
	}
}

func (p *Pass) emptyValues(kind string, n *yaml.Node, path []string) {
	n = yamldoc.Resolve(n)
	switch {
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			p.emptyValues(kind, item, append(path[:len(path):len(path)], "[]"))
		}
	case n.Kind == yaml.MappingNode:
		for _, entry := range strictyaml.Pairs(n) {
			at := append(path[:len(path):len(path)], entry.Key.Value)
			if !isEmpty(entry.Value) {
				p.emptyValues(kind, entry.Value, at)
				continue
			}
			does := "which removes it"
			if kind != "merge" {
				does = "which sets it to null"
			}
			p.Reportf(p.Doc.Pos(entry.Key), "%s is left empty, %s: write null if that is meant, \"\" for an empty string, {} for an empty map",
				strings.Join(at, "."), does)
		}
	}
}

// isEmpty tells a value that is not there from a null that is written.
func isEmpty(n *yaml.Node) bool {
	return strictyaml.IsNull(n) && n.Value == "" && n.Style == 0
}
