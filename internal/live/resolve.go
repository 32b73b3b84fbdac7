package live

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// Argument is what is written for a resource: RESOURCE, RESOURCE.GROUP or
// RESOURCE.VERSION.GROUP, where RESOURCE is the plural, the singular, a short
// name or the kind.
type Argument struct {
	name, version, group string
	hasGroup             bool
}

// isVersion is what a version of Kubernetes looks like.
var isVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// ParseArgument takes an argument apart. Case does not count.
func ParseArgument(s string) Argument {
	name, rest, hasGroup := strings.Cut(strings.ToLower(s), ".")
	a := Argument{name: name, group: rest, hasGroup: hasGroup}
	if v, group, _ := strings.Cut(rest, "."); isVersion.MatchString(v) {
		a.version, a.group = v, group
	}
	return a
}

// Version is the version that the argument names; empty: it names none.
func (a Argument) Version() string { return a.version }

// String gives the argument as it was written, in lower case.
func (a Argument) String() string {
	parts := []string{a.name}
	if a.version != "" {
		parts = append(parts, a.version)
	}
	if a.group != "" {
		parts = append(parts, a.group)
	}
	return strings.Join(parts, ".")
}

// matches reports whether a resource is meant.
func (a Argument) matches(r resource) bool {
	return slices.ContainsFunc(append(slices.Clip(r.names), r.info.Resource.Resource), func(name string) bool {
		return a.Names(r.info.Resource.GroupVersion().WithResource(name))
	})
}

// UnknownResourceError says that the cluster has no resource of a name.
type UnknownResourceError struct {
	Name       string
	Suggestion string // " (did you mean …?)", or empty
	Unsure     bool   // some groups could not be discovered
}

func (e *UnknownResourceError) Error() string {
	if e.Unsure {
		return fmt.Sprintf("the cluster serves no resource %q that is known: not all of its groups could be discovered%s", e.Name, e.Suggestion)
	}
	return fmt.Sprintf("the cluster serves no resource %q%s", e.Name, e.Suggestion)
}

// Resources returns what an argument means: one resource, in all versions that
// are served and that it allows, the preferred one first. Of several
// resources of a name it is the first that prefer says yes to, else the first of
// all. The error is an *UnknownResourceError.
func (c *Cluster) Resources(a Argument, prefer func(schema.GroupResource) bool) ([]schema.GroupVersionResource, error) {
	var found []schema.GroupVersionResource
	for _, r := range c.resources {
		if r.listed && a.matches(r) {
			found = append(found, r.info.Resource)
		}
	}
	if len(found) == 0 {
		return nil, &UnknownResourceError{a.String(), suggest.DidYouMean(a.name, c.Names()), len(c.failed) > 0}
	}
	chosen := found[0].GroupResource()
	for _, f := range found {
		if prefer(f.GroupResource()) {
			chosen = f.GroupResource()
			break
		}
	}
	return slices.DeleteFunc(found, func(f schema.GroupVersionResource) bool { return f.GroupResource() != chosen }), nil
}

// Names returns the plural names of all resources that can be read, sorted: of a
// name that several groups have, the later ones with their group.
func (c *Cluster) Names() []string {
	group := map[string]string{}
	var out []string
	for _, r := range c.resources {
		name := r.info.Resource.Resource
		if !r.listed {
			continue
		}
		if first, seen := group[name]; !seen {
			group[name] = r.info.Resource.Group
		} else if first != r.info.Resource.Group {
			name = r.info.Resource.GroupResource().String()
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Versions returns the versions in which a resource is served, the newest first.
func (c *Cluster) Versions(resource schema.GroupResource) []string {
	var out []string
	for _, r := range c.resources {
		if r.info.Resource.GroupResource() == resource {
			out = append(out, r.info.Resource.Version)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return out
}

// Names reports whether the argument means a resource of this name, version and
// group. The name may as well be a singular, a short name or a kind.
func (a Argument) Names(resource schema.GroupVersionResource) bool {
	return a.name == resource.Resource && (!a.hasGroup || a.group == resource.Group) && (a.version == "" || a.version == resource.Version)
}
