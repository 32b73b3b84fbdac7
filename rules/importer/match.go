package importer

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.yaml.in/yaml/v3"
)

const wildcard = "*"

// operations are the requests that leave an object behind.
var operations = []string{"CREATE", "UPDATE"}

// matchResources is what a policy or a binding says of the requests it is for.
// The zero value matches all.
type matchResources struct {
	node            *yaml.Node
	rules, excludes []resourceRule
	namespaces      metav1.LabelSelector
	objects         metav1.LabelSelector
	exact           bool // matchPolicy Exact; the API server's default is Equivalent
}

type resourceRule struct {
	node                        *yaml.Node
	groups, versions, resources []text
	operations, names           []text
}

func (r *reader) matchResources(n *yaml.Node, at string) matchResources {
	m := matchResources{node: n}
	r.fields(n, at, map[string]func(*yaml.Node){
		"namespaceSelector": func(n *yaml.Node) { m.namespaces = r.selector(n, at+".namespaceSelector") },
		"objectSelector":    func(n *yaml.Node) { m.objects = r.selector(n, at+".objectSelector") },
		"resourceRules": func(n *yaml.Node) {
			for _, item := range r.list(n, at+".resourceRules") {
				m.rules = append(m.rules, r.resourceRule(item, at+".resourceRules"))
			}
		},
		"excludeResourceRules": func(n *yaml.Node) {
			for _, item := range r.list(n, at+".excludeResourceRules") {
				m.excludes = append(m.excludes, r.resourceRule(item, at+".excludeResourceRules"))
			}
		},
		"matchPolicy": func(n *yaml.Node) {
			switch n.Value {
			case "Equivalent":
			case "Exact":
				m.exact = true
				r.note(n, "matchPolicy Exact: an object that exists is there in every version; the rule acts on it whichever version it was written in")
			default:
				r.lose(n, "matchPolicy is Equivalent or Exact, not %q", n.Value)
			}
		},
	})
	for _, rule := range m.rules {
		r.checkOperations(rule)
		r.checkSubresources(rule)
	}
	return m
}

func (r *reader) resourceRule(n *yaml.Node, at string) resourceRule {
	rule := resourceRule{node: n}
	r.fields(n, at, map[string]func(*yaml.Node){
		"apiGroups":     func(n *yaml.Node) { r.texts(n, at+".apiGroups", &rule.groups) },
		"apiVersions":   func(n *yaml.Node) { r.texts(n, at+".apiVersions", &rule.versions) },
		"resources":     func(n *yaml.Node) { r.texts(n, at+".resources", &rule.resources) },
		"operations":    func(n *yaml.Node) { r.texts(n, at+".operations", &rule.operations) },
		"resourceNames": func(n *yaml.Node) { r.texts(n, at+".resourceNames", &rule.names) },
		"scope": func(n *yaml.Node) {
			switch n.Value {
			case wildcard:
			case "Namespaced", "Cluster":
				r.note(n, "scope %s: a resource has one scope; a rule acts on those that it names, whatever their scope", n.Value)
			default:
				r.lose(n, "scope is Namespaced, Cluster or *, not %q", n.Value)
			}
		},
	})
	for _, part := range [][]text{rule.groups, rule.versions, rule.resources, rule.operations} {
		if len(part) == 0 && !r.lost {
			r.lose(n, "%s: apiGroups, apiVersions, resources and operations are needed", at)
		}
	}
	return rule
}

// checkOperations tells what becomes of the operations: a rule has none.
func (r *reader) checkOperations(rule resourceRule) {
	var kept []string
	for _, op := range operations {
		if has(rule.operations, op) {
			kept = append(kept, op)
		}
	}
	for _, op := range rule.operations {
		switch op.value {
		case "CREATE", "UPDATE", wildcard:
		case "CONNECT", "DELETE":
			r.drop(op.node, "operation %s: a rule acts on objects that exist, and this leaves none behind", op.value)
		default:
			r.lose(op.node, "the operation %q is not known", op.value)
		}
	}
	acts := slices.ContainsFunc(rule.resources, func(t text) bool {
		_, main := mainResource(t.value)
		return main
	})
	if len(kept) == 1 && acts {
		r.note(rule.operations[0].node, "operations: %s only; a rule acts on every object that exists, however it came to be as it is", kept[0])
	}
}

func (r *reader) checkSubresources(rule resourceRule) {
	for _, res := range rule.resources {
		main, sub, found := strings.Cut(res.value, "/")
		switch {
		case !found:
		case sub == wildcard && main == wildcard:
			r.drop(res.node, "%q: requests to subresources cannot be carried over", res.value)
		case sub == wildcard:
			r.drop(res.node, "%q: requests to subresources cannot be carried over; %s themselves are", res.value, main)
		default:
			r.drop(res.node, "%q: requests to a subresource cannot be carried over; a rule can write through status and scale, see patch.subresource", res.value)
		}
	}
}

func (r *reader) selector(n *yaml.Node, at string) metav1.LabelSelector {
	var s metav1.LabelSelector
	r.fields(n, at, map[string]func(*yaml.Node){
		"matchLabels": func(n *yaml.Node) {
			if n.Kind != yaml.MappingNode {
				r.lose(n, "%s.matchLabels must be a mapping", at)
				return
			}
			s.MatchLabels = map[string]string{}
			for _, m := range members(n) {
				var t text
				r.text(m.value, at+".matchLabels."+m.name, &t)
				s.MatchLabels[m.name] = t.value
			}
		},
		"matchExpressions": func(n *yaml.Node) {
			for _, item := range r.list(n, at+".matchExpressions") {
				s.MatchExpressions = append(s.MatchExpressions, r.requirement(item, at+".matchExpressions"))
			}
		},
	})
	if r.lost {
		return s
	}
	if _, err := metav1.LabelSelectorAsSelector(&s); err != nil {
		r.lose(n, "%s: %v", at, err)
	}
	return s
}

func (r *reader) requirement(n *yaml.Node, at string) metav1.LabelSelectorRequirement {
	var key, operator text
	var values []text
	r.fields(n, at, map[string]func(*yaml.Node){
		"key":      func(n *yaml.Node) { r.text(n, at+".key", &key) },
		"operator": func(n *yaml.Node) { r.text(n, at+".operator", &operator) },
		"values":   func(n *yaml.Node) { r.texts(n, at+".values", &values) },
	})
	req := metav1.LabelSelectorRequirement{Key: key.value, Operator: metav1.LabelSelectorOperator(operator.value)}
	for _, v := range values {
		req.Values = append(req.Values, v.value)
	}
	return req
}

// and joins two selectors: what it selects fits both.
func and(a, b metav1.LabelSelector) metav1.LabelSelector {
	out := metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, s := range []metav1.LabelSelector{a, b} {
		for _, key := range sortedKeys(s.MatchLabels) {
			if v, taken := out.MatchLabels[key]; taken && v != s.MatchLabels[key] {
				out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{s.MatchLabels[key]}})
				continue
			}
			out.MatchLabels[key] = s.MatchLabels[key]
		}
		for _, e := range s.MatchExpressions {
			same := func(o metav1.LabelSelectorRequirement) bool {
				return o.Key == e.Key && o.Operator == e.Operator && slices.Equal(o.Values, e.Values)
			}
			if !slices.ContainsFunc(out.MatchExpressions, same) {
				out.MatchExpressions = append(out.MatchExpressions, e)
			}
		}
	}
	return out
}

func isEmpty(s metav1.LabelSelector) bool { return len(s.MatchLabels)+len(s.MatchExpressions) == 0 }

// has reports whether a list names a value, or all.
func has(list []text, value string) bool {
	return slices.ContainsFunc(list, func(t text) bool { return t.value == value || t.value == wildcard })
}

func find(list []text, value string) (text, bool) {
	i := slices.IndexFunc(list, func(t text) bool { return t.value == value })
	if i < 0 {
		return text{}, false
	}
	return list[i], true
}

// mainResource returns the resource whose objects an entry such as pods, pods/*
// or * names; false if it names subresources only.
func mainResource(entry string) (string, bool) {
	main, sub, found := strings.Cut(entry, "/")
	return main, !found || sub == wildcard
}
