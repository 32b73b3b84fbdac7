package lint

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// resourceName finds resources that nobody serves. Custom resources of which
// nothing is known may well be served.
var resourceName = &Check{
	ID: "resource-name", Severity: Error, Summary: "The rule names a resource that does not exist",
	Run: func(p *Pass) {
		for _, r := range p.namedResources() {
			if p.typing.kinds.of(r.gvr).known {
				continue
			}
			if at, msg := p.misnamed(r); msg != "" {
				p.Reportf(at, "%s", msg)
			}
		}
	},
}

// namedResource is a resource that a rule names, and where.
type namedResource struct {
	gvr  schema.GroupVersionResource
	node *yaml.Node // the mapping
}

// field is where one of group, version and resource stands, or the mapping if
// it is left out.
func (p *Pass) resourceField(r namedResource, name string) yamldoc.Position {
	if _, v := yamldoc.Field(r.node, name); v != nil {
		return p.Doc.Pos(v)
	}
	return p.Doc.Pos(r.node)
}

// namedResources are those of the rule, and those that it looks up.
func (p *Pass) namedResources() []namedResource {
	var out []namedResource
	add := func(n *yaml.Node) {
		if n == nil {
			return
		}
		n = yamldoc.Resolve(n)
		text := func(key string) string {
			if _, v := yamldoc.Field(n, key); v != nil {
				return yamldoc.Resolve(v).Value
			}
			return ""
		}
		out = append(out, namedResource{schema.GroupVersionResource{Group: text("group"), Version: text("version"), Resource: text("resource")}, n})
	}
	add(p.Field("spec", "resource"))
	if n := p.Field("spec", "resources"); n != nil {
		for _, item := range n.Content {
			add(item)
		}
	}
	if n := p.Field("spec", "lookups"); n != nil {
		for _, item := range n.Content {
			_, v := yamldoc.Field(yamldoc.Resolve(item), "resource")
			add(v)
		}
	}
	return out
}

// misnamed says what is wrong with a resource that is not known, if anything
// is for sure.
func (p *Pass) misnamed(r namedResource) (yamldoc.Position, string) {
	if versions := p.Known.Versions(r.gvr.GroupResource()); len(versions) > 0 {
		return p.resourceField(r, "version"), fmt.Sprintf("%s is not served in version %s (available: %s)", r.gvr.GroupResource(), r.gvr.Version, strings.Join(versions, ", "))
	}
	meant, ok := p.Known.Spelling(r.gvr)
	switch {
	case ok && meant.Group != r.gvr.Group:
		return p.resourceField(r, "group"), fmt.Sprintf("%s is not a resource of %s (did you mean group %s?)", r.gvr.Resource, groupName(r.gvr.Group), meant.Group)
	case ok:
		return p.resourceField(r, "resource"), fmt.Sprintf("%q is not a resource of %s (did you mean %q?)", r.gvr.Resource, groupName(r.gvr.Group), meant.Resource)
	case nearGroup(p.Known, r.gvr.Group) != "":
		return p.resourceField(r, "group"), fmt.Sprintf("%s is not known (did you mean group %s?)", groupName(r.gvr.Group), nearGroup(p.Known, r.gvr.Group))
	case p.Known.Complete(r.gvr.Group):
		return p.resourceField(r, "resource"), fmt.Sprintf("%q is not a resource of %s: %s does not exist", r.gvr.Resource, groupName(r.gvr.Group), rules.ResourceName(r.gvr))
	}
	return yamldoc.Position{}, ""
}

// groupSlips is how many slips make another group of one. Names of groups are
// long, and those of one company much alike.
const groupSlips = 2

// nearGroup is the known group that is meant by one that is not known; empty if
// there is none.
func nearGroup(known Known, group string) string {
	if groups, ok := known.(Groups); ok && group != "" {
		if all := groups.Groups(); !slices.Contains(all, group) {
			return suggest.Near(group, all, groupSlips)
		}
	}
	return ""
}

// unchecked are the resources that rules name and of which there is no schema,
// each once. What was found not to exist is none of them.
func unchecked(known Known, kinds *kinds, all []*rules.Definition) []Unknown {
	var out []Unknown
	seen := map[schema.GroupVersionResource]bool{}
	for _, definition := range all {
		p := Pass{Definition: definition, Known: known}
		for _, r := range p.namedResources() {
			if seen[r.gvr] || kinds.of(r.gvr).shape != nil {
				continue
			}
			if _, msg := p.misnamed(r); msg != "" && !kinds.of(r.gvr).known {
				continue
			}
			seen[r.gvr] = true
			note := Unknown{Resource: r.gvr, Rule: definition.Name}
			if groups, ok := known.(Groups); ok && !slices.Contains(groups.Groups(), r.gvr.Group) {
				note.Group = suggest.Closest(r.gvr.Group, groups.Groups())
			}
			out = append(out, note)
		}
	}
	return out
}

func groupName(group string) string {
	if group == "" {
		return "the core group"
	}
	return "group " + group
}
