package rbac

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const apiGroup = "rbac.authorization.k8s.io"

// kind is that of the role, or with "Binding" of its binding.
func (r Role) kind() string {
	if r.Namespace == "" {
		return "ClusterRole"
	}
	return "Role"
}

// YAML writes roles, each with the binding to its subject, as documents for
// `kubectl apply`. Comments tell which rules need an entry. No roles are no text.
func YAML(roles []Role) ([]byte, error) {
	if len(roles) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for i, object := range objects(roles) {
		if i == 0 {
			object.HeadComment = "# What `rectifier run` needs for its rules, and no more. Made by `rectifier rbac`."
		}
		if err := encoder.Encode(object); err != nil {
			return nil, fmt.Errorf("write a role: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write the roles: %w", err)
	}
	return out.Bytes(), nil
}

// List returns the same objects as one v1 List of plain values, for JSON.
func List(roles []Role) (map[string]any, error) {
	items := []any{}
	for _, object := range objects(roles) {
		var item map[string]any
		if err := object.Decode(&item); err != nil {
			return nil, fmt.Errorf("write a role: %w", err)
		}
		items = append(items, item)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, nil
}

func objects(roles []Role) []*yaml.Node {
	var out []*yaml.Node
	for _, r := range roles {
		out = append(out, r.role())
		if r.Subject.Name != "" {
			out = append(out, r.binding())
		}
	}
	return out
}

func (r Role) role() *yaml.Node {
	grants := &yaml.Node{Kind: yaml.SequenceNode}
	for _, g := range r.Grants {
		grants.Content = append(grants.Content, g.node())
	}
	return mapping("apiVersion", scalar(apiGroup+"/v1"), "kind", scalar(r.kind()), "metadata", r.metadata(), "rules", grants)
}

func (r Role) binding() *yaml.Node {
	subject := mapping("kind", scalar("ServiceAccount"), "name", scalar(r.Subject.Name), "namespace", scalar(r.Subject.Namespace))
	return mapping("apiVersion", scalar(apiGroup+"/v1"), "kind", scalar(r.kind()+"Binding"), "metadata", r.metadata(),
		"roleRef", mapping("apiGroup", scalar(apiGroup), "kind", scalar(r.kind()), "name", scalar(r.Name)),
		"subjects", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{subject}})
}

func (r Role) metadata() *yaml.Node {
	if r.Namespace == "" {
		return mapping("name", scalar(r.Name))
	}
	return mapping("name", scalar(r.Name), "namespace", scalar(r.Namespace))
}

func (g Grant) node() *yaml.Node {
	resource := strings.TrimSuffix(g.Resource.Resource+"/"+g.Subresource, "/")
	n := mapping("apiGroups", list(g.Resource.Group), "resources", list(resource))
	if len(g.Names) > 0 {
		n.Content = append(n.Content, scalar("resourceNames"), list(g.Names...))
	}
	n.Content = append(n.Content, scalar("verbs"), list(g.Verbs...))
	n.HeadComment = strings.Join(wrapped(g.Reasons), "\n")
	return n
}

// commentWidth is where the comments' lines are broken.
const commentWidth = 100

// wrapped breaks long reasons between words: a right may be for many rules.
func wrapped(reasons []string) []string {
	var out []string
	for _, reason := range reasons {
		line := "#"
		for word := range strings.FieldsSeq(reason) {
			if len(line)+1+len(word) > commentWidth {
				out = append(out, line)
				line = "#  "
			}
			line += " " + word
		}
		out = append(out, line)
	}
	return out
}

// mapping makes a mapping of keys and nodes in turn.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		n.Content = append(n.Content, scalar(pairs[i].(string)), pairs[i+1].(*yaml.Node))
	}
	return n
}

// oldBools are bools for the YAML 1.1 of kubectl, and strings for the library.
var oldBools = []string{"y", "n", "yes", "no", "on", "off"}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	if slices.Contains(oldBools, text) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func list(texts ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, text := range texts {
		n.Content = append(n.Content, scalar(text))
	}
	return n
}
