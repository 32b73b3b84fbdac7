package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
)

// What people write where the format wants something else, and what to write
// instead.

var (
	_ strictyaml.Adviser = (*patchSpec)(nil)
	_ strictyaml.Adviser = (*resource)(nil)
	_ strictyaml.Adviser = (*selectorBody)(nil)
)

// AdviseField implements strictyaml.Adviser: what stands in a patch is most
// likely a part of the object.
func (*patchSpec) AdviseField(*yaml.Node, string) string { return "put it under merge" }

// AdviseValue implements strictyaml.Adviser.
func (*patchSpec) AdviseValue(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "operations go under json; several patches under patches"
	}
	return ""
}

const labelsAdvice = "labels go under matchLabels"

// selectorBody is what a label selector is read as.
type selectorBody struct{ metav1.LabelSelector }

// AdviseField implements strictyaml.Adviser.
func (*selectorBody) AdviseField(*yaml.Node, string) string { return labelsAdvice }

// AdviseValue implements strictyaml.Adviser.
func (*selectorBody) AdviseValue(*yaml.Node) string { return "" }

// AdviseField implements strictyaml.Adviser: manifests name a kind.
func (*resource) AdviseField(n *yaml.Node, key string) string {
	_, value := field(n, key)
	switch {
	case value == nil || value.Kind != yaml.ScalarNode || value.Value == "":
	case key == "kind":
		return fmt.Sprintf("a resource is named by its plural: write resource: %s", plural(strings.ToLower(value.Value)))
	case key == "apiVersion":
		group, version, ok := strings.Cut(value.Value, "/")
		if !ok {
			return "write version: " + value.Value
		}
		return fmt.Sprintf("write group: %s and version: %s", group, version)
	}
	return ""
}

// AdviseValue implements strictyaml.Adviser: it spells out as a mapping what
// kubectl or Go would write as one word.
func (*resource) AdviseValue(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return ""
	}
	group, version, name := takeApart(strings.ToLower(n.Value))
	if group == "" {
		return fmt.Sprintf("write {version: %s, resource: %s}", version, name)
	}
	return fmt.Sprintf("write {group: %s, version: %s, resource: %s}", group, version, name)
}

// kubeVersion is how versions look by convention.
var kubeVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// takeApart reads a resource as deployments.v1.apps, deployments.apps,
// apps/v1/deployments, v1/pods or deployments; capital letters stand for what
// is not said.
func takeApart(s string) (group, version, name string) {
	if parts := strings.Split(s, "/"); len(parts) > 1 {
		name = parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		if last := parts[len(parts)-1]; kubeVersion.MatchString(last) {
			return strings.Join(parts[:len(parts)-1], "/"), last, name
		}
		return strings.Join(parts, "/"), commonVersion(strings.Join(parts, "/")), name
	}
	name, rest, dotted := strings.Cut(s, ".")
	if !dotted {
		return usualGroup(name)
	}
	if first, group, _ := strings.Cut(rest, "."); kubeVersion.MatchString(first) {
		return group, first, name
	}
	return rest, commonVersion(rest), name
}

func commonVersion(group string) string {
	switch {
	case group == "autoscaling":
		return "v2"
	case slices.Contains(builtinGroups, group):
		return "v1"
	}
	return "VERSION"
}

// usualGroups are those of the resources that rules are most about.
var usualGroups = map[string]string{
	"deployments": "apps", "daemonsets": "apps", "statefulsets": "apps", "replicasets": "apps",
	"jobs": "batch", "cronjobs": "batch", "horizontalpodautoscalers": "autoscaling", "poddisruptionbudgets": "policy",
	"ingresses": "networking.k8s.io", "networkpolicies": "networking.k8s.io",
	"pods": "", "services": "", "configmaps": "", "secrets": "", "namespaces": "", "nodes": "", "serviceaccounts": "",
	"persistentvolumes": "", "persistentvolumeclaims": "",
}

func usualGroup(name string) (group, version, resource string) {
	for _, resource := range []string{name, plural(name)} {
		if group, ok := usualGroups[resource]; ok {
			return group, commonVersion(group), resource
		}
	}
	return "GROUP", "VERSION", name
}

// splitGroup tells what to write instead of a group with a version in it.
func splitGroup(group string) string {
	name, version, ok := strings.Cut(group, "/")
	if !ok {
		return ""
	}
	return fmt.Sprintf(": write group: %s and version: %s", name, version)
}

// says reports whether a part of a resource that is not given stands in another
// place, which was reported.
func (r *resource) says(part string) bool {
	others := map[string]string{"version": "apiVersion", "resource": "kind"}
	if _, other := field(r.node, others[part]); other != nil || !lacks(r.node, resource{}, part) {
		return true
	}
	return part == "version" && r.Group != nil && strings.Contains(r.Group.value, "/")
}
