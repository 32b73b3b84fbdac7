package rules

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	// Both are DNS-1035 labels: a CRD may call its version v1api20230101.
	versionName  = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	resourceName = versionName
)

func (d *decoder) resources(s spec) []schema.GroupVersionResource {
	all := s.Resources
	switch {
	case s.Resource != nil && s.Resources != nil:
		d.fail(d.spec, "both resource and resources are given: use one of them")
	case s.Resource != nil:
		all = []resource{*s.Resource}
	case len(s.Resources) == 0 && (s.Resources != nil || lacks(d.body, spec{}, "resource") && lacks(d.body, spec{}, "resources")):
		d.fail(d.spec, "spec.resource is missing: name the group, version and resource of the objects")
	}
	var out []schema.GroupVersionResource
	for _, res := range all {
		if res.node == nil {
			continue // it is no mapping
		}
		gvr := d.gvr(res)
		if gvr.Resource != "" && slices.Contains(out, gvr) {
			d.fail(res.node, "%s is given twice", ResourceName(gvr))
		}
		out = append(out, gvr)
	}
	return out
}

// gvr checks the name of a resource.
func (d *decoder) gvr(res resource) schema.GroupVersionResource {
	gvr := schema.GroupVersionResource{Version: res.Version.value, Resource: res.Resource.value}
	if res.Group != nil {
		gvr.Group = res.Group.value
		if gvr.Group != "" && len(validation.IsDNS1123Subdomain(gvr.Group)) > 0 {
			d.fail(res.Group.node, "%q is not an API group%s", gvr.Group, splitGroup(gvr.Group))
		}
	}
	d.checkName(res, res.Version, "version", versionName, "a version such as v1 or v1beta1 (the group has a field of its own)")
	d.checkName(res, res.Resource, "resource", resourceName, "a resource: the plural in lower case, such as deployments; not the kind, and without a subresource")
	if singular(gvr) && res.Resource.node != nil {
		d.as(CheckResourceName).fail(res.Resource.node, "%q is not a resource of %s: the plural is meant%s", gvr.Resource, groupName(gvr.Group), meantResource(gvr.Resource))
	}
	return gvr
}

// builtinGroups are the groups of Kubernetes itself. All their resources end
// in s; those of a CRD may look like anything.
var builtinGroups = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling", "batch",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
}

// singular reports whether the singular is written where the plural is due,
// which would otherwise wait for ever for a resource that nobody serves.
func singular(gvr schema.GroupVersionResource) bool {
	return resourceName.MatchString(gvr.Resource) && !strings.HasSuffix(gvr.Resource, "s") && slices.Contains(builtinGroups, gvr.Group)
}

func groupName(group string) string {
	if group == "" {
		return "the core group"
	}
	return group
}

func (d *decoder) checkName(res resource, t text, field string, pattern *regexp.Regexp, want string) {
	switch {
	case t.node == nil && !res.says(field):
		d.fail(res.node, "%s is missing: a resource is named by group, version and resource", field)
	case t.node != nil && !pattern.MatchString(t.value):
		check := CheckRuleFormat
		if field == "resource" {
			check = CheckResourceName
		}
		d.as(check).fail(t.node, "%q is not %s", t.value, want)
	}
}
