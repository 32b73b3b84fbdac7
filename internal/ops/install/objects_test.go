package install

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects are manifests, by KIND/NAME or KIND/NAMESPACE/NAME where not all are
// in one namespace.
type objects map[string]*unstructured.Unstructured

const release = "rectifier"

func parse(t *testing.T, stream string) objects {
	t.Helper()
	out := objects{}
	for doc := range strings.SplitSeq("\n"+stream, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(doc), &u.Object); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if len(u.Object) == 0 {
			continue
		}
		name := u.GetKind() + "/" + u.GetName()
		if ns := u.GetNamespace(); ns != "" && ns != release {
			name = u.GetKind() + "/" + ns + "/" + u.GetName()
		}
		if out[name] != nil {
			t.Fatalf("there are two of %s", name)
		}
		out[name] = u
	}
	return out
}

// names lists the objects, sorted.
func (o objects) names() []string {
	var out []string
	for name := range o {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// into reads an object, which must be there, as its Go type: unknown fields are
// errors.
func (o objects) into(t *testing.T, name string, out any) {
	t.Helper()
	u := o[name]
	if u == nil {
		t.Fatalf("there is no %s among %v", name, o.names())
	}
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = yaml.UnmarshalStrict(data, out)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func (o objects) args(t *testing.T) []string {
	t.Helper()
	var d appsv1.Deployment
	o.into(t, "Deployment/"+release, &d)
	return d.Spec.Template.Spec.Containers[0].Args
}

// rights lists what a role grants, one verb a line: "patch deployments.apps/scale".
func rights(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				name := strings.TrimSuffix(strings.TrimSuffix(resource+"."+group, ".")+"/"+subresource, "/")
				for _, only := range append(slices.Clone(r.ResourceNames), "")[:max(1, len(r.ResourceNames))] {
					for _, verb := range r.Verbs {
						out = append(out, strings.TrimSuffix(verb+" "+name+" "+only, " "))
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
