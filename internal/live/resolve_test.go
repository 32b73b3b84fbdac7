package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// cluster is one that serves a few resources; nothing can be read from it.
func cluster(t *testing.T) *Cluster {
	t.Helper()
	catalog, err := gvr.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{builtin: catalog, failed: map[schema.GroupVersion]bool{{Group: "metrics.example.io", Version: "v1"}: true}, scale: map[schema.GroupVersionResource][]string{}}
	all := metav1.Verbs{"get", "list", "watch"}
	resource := func(name, singular, kind string, short ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, SingularName: singular, Kind: kind, Namespaced: true, Verbs: all, ShortNames: short}
	}
	c.add(schema.GroupVersion{Version: "v1"}, []metav1.APIResource{
		resource("pods", "pod", "Pod", "po"), {Name: "pods/status", Kind: "Pod"}, {Name: "nodes", SingularName: "node", Kind: "Node", Verbs: all, ShortNames: []string{"no"}},
		resource("events", "event", "Event", "ev"), {Name: "bindings", SingularName: "binding", Kind: "Binding", Verbs: metav1.Verbs{"create"}},
	})
	c.add(schema.GroupVersion{Group: "apps", Version: "v1"}, []metav1.APIResource{
		{Name: "deployments/scale", Kind: "Scale", Group: "autoscaling"}, resource("deployments", "deployment", "Deployment", "deploy"), {Name: "deployments/status", Kind: "Deployment"},
	})
	c.add(schema.GroupVersion{Group: "autoscaling", Version: "v2"}, []metav1.APIResource{resource("horizontalpodautoscalers", "horizontalpodautoscaler", "HorizontalPodAutoscaler", "hpa")})
	c.add(schema.GroupVersion{Group: "autoscaling", Version: "v1"}, []metav1.APIResource{resource("horizontalpodautoscalers", "horizontalpodautoscaler", "HorizontalPodAutoscaler", "hpa")})
	c.add(schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}, []metav1.APIResource{resource("events", "event", "Event", "ev")})
	c.add(schema.GroupVersion{Group: "vendor.example.io", Version: "v1api20230101"}, []metav1.APIResource{resource("gateways", "gateway", "Gateway", "gw"), resource("deployments", "deployment", "Deployment")})
	return c
}

func TestResources(t *testing.T) {
	c := cluster(t)
	for _, tc := range []struct{ argument, prefer, want string }{
		{"pods", "", "v1/pods"},
		{"pod", "", "v1/pods"},
		{"po", "", "v1/pods"},
		{"Pod", "", "v1/pods"},
		{"PODS", "", "v1/pods"},
		{"pods.", "", "v1/pods"},
		{"pods.v1", "", "v1/pods"},
		{"pods.v1.", "", "v1/pods"},
		{"deploy", "", "apps/v1/deployments"},
		{"deployments.apps", "", "apps/v1/deployments"},
		{"deployments.v1.apps", "", "apps/v1/deployments"},
		{"deployment.v1.apps", "", "apps/v1/deployments"},
		{"deployments", "deployments.vendor.example.io", "vendor.example.io/v1api20230101/deployments"},
		{"deployments.vendor.example.io", "", "vendor.example.io/v1api20230101/deployments"},
		{"hpa", "", "autoscaling/v2/horizontalpodautoscalers autoscaling/v1/horizontalpodautoscalers"},
		{"hpa.v1.autoscaling", "", "autoscaling/v1/horizontalpodautoscalers"},
		{"events", "", "v1/events"},
		{"events", "events.events.k8s.io", "events.k8s.io/v1/events"},
		{"ev.events.k8s.io", "", "events.k8s.io/v1/events"},
		{"gw", "", "vendor.example.io/v1api20230101/gateways"},
		{"deploymets", "", `the cluster serves no resource "deploymets" that is known: not all of its groups could be discovered (did you mean "deployments"?)`},
		{"deployments.v2.apps", "", `the cluster serves no resource "deployments.v2.apps" that is known: not all of its groups could be discovered (did you mean "deployments"?)`},
		{"deployments.apps.v1", "", `the cluster serves no resource "deployments.apps.v1" that is known: not all of its groups could be discovered (did you mean "deployments"?)`},
		{"bindings", "", `the cluster serves no resource "bindings" that is known: not all of its groups could be discovered`},
		{"deployments/status", "", `the cluster serves no resource "deployments/status" that is known: not all of its groups could be discovered`},
		{"", "", `the cluster serves no resource "" that is known: not all of its groups could be discovered`},
	} {
		found, err := c.Resources(ParseArgument(tc.argument), func(r schema.GroupResource) bool { return r.String() == tc.prefer })
		var names []string
		for _, r := range found {
			names = append(names, rules.ResourceName(r))
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if tc.want != got && !strings.HasPrefix(got, tc.want+" (did you mean") {
			t.Errorf("%q: %s, want %s", tc.argument, got, tc.want)
		}
	}
}

func TestInfo(t *testing.T) {
	c := cluster(t)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	info, _, ok := c.Info(t.Context(), deployments)
	want := gvr.Info{Resource: deployments, Kind: "Deployment", Namespaced: true, HasStatus: true, HasScale: true, ReplicasPath: []string{"spec", "replicas"}}
	if diff := cmp.Diff(want, info); !ok || diff != "" {
		t.Errorf("%v (-want +got)\n%s", ok, diff)
	}
	// Of the same name and kind, but not Kubernetes' own.
	other := schema.GroupVersionResource{Group: "vendor.example.io", Version: "v1api20230101", Resource: "deployments"}
	if info, _, ok := c.Info(t.Context(), other); !ok || info.ReplicasPath != nil || info.HasScale {
		t.Errorf("%+v, %v", info, ok)
	}
	for resource, want := range map[schema.GroupVersionResource]string{
		{Group: "autoscaling", Version: "v3", Resource: "horizontalpodautoscalers"}: "version not served (available: v2, v1)",
		{Group: "metrics.example.io", Version: "v1", Resource: "things"}:            "discovery of metrics.example.io/v1 failed",
		{Version: "v1", Resource: "things"}:                                         "not served by the cluster",
	} {
		if _, got, ok := c.Info(t.Context(), resource); ok || got != want {
			t.Errorf("%v: %v %q, want %q", resource, ok, got, want)
		}
	}
}

func TestKnown(t *testing.T) {
	k := Known{cluster(t)}
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	for written, want := range map[schema.GroupVersionResource]string{
		gvr("apps", "v1", "deployment"):                           "apps/v1/deployments",
		gvr("apps", "v1", "deploy"):                               "apps/v1/deployments",
		gvr("apps", "v1", "Deployment"):                           "apps/v1/deployments",
		gvr("apps", "v1beta1", "deployments"):                     "apps/v1/deployments",
		gvr("", "v1", "deployments"):                              "apps/v1/deployments",
		gvr("autoscaling", "v2beta2", "horizontalpodautoscalers"): "autoscaling/v2/horizontalpodautoscalers",
		gvr("apps", "v1", "nothing"):                              "",
		gvr("apps", "v1", ""):                                     "",
	} {
		got := ""
		if meant, ok := k.Spelling(written); ok {
			got = rules.ResourceName(meant)
		}
		if got != want {
			t.Errorf("%v: %q, want %q", written, got, want)
		}
	}
	if got := k.Versions(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}); !cmp.Equal(got, []string{"v2", "v1"}) {
		t.Errorf("versions %v", got)
	}
	if !k.Complete("apps") || k.Complete("metrics.example.io") {
		t.Error("what is complete")
	}
}

func TestErrorsHoldNothingOfTheServersMessage(t *testing.T) {
	const secret = "c2VjcmV0"
	for want, err := range map[string]error{
		"Forbidden (HTTP 403)":             apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, secret, errors.New(secret)),
		"Internal Server Error (HTTP 500)": &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: secret}},
		"no answer in time":                fmt.Errorf("get %s: %w", secret, context.DeadlineExceeded),
		"interrupted":                      &url.Error{Op: "Get", URL: secret, Err: context.Canceled},
		"connection refused":               &url.Error{Op: "Get", URL: secret, Err: errors.New("connection refused")},
		"the answer could not be read":     fmt.Errorf("decode %s", secret),
	} {
		if got := (&readError{err}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestListOptions(t *testing.T) {
	set, problems := rules.Load(rules.Source{Name: "r.yaml", Data: []byte(`
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: a}
spec:
  resource: {version: v1, resource: pods}
  lookups:
  - {name: one, resource: {version: v1, resource: secrets}, namespace: x, where: {metadata.name: a, type: b}}
  patch: {merge: {metadata: {labels: {a: b}}}}
`)})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	l := set.Lookups()[0]
	selector, err := labels.Parse("a in (b,c),!d")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		query  rules.Query
		want   string
		nobody bool
	}{
		{"by name", rules.Query{Lookup: l, Values: [][]string{{"a"}, {"b"}}}, " metadata.name=a", false},
		{"one of several names", rules.Query{Lookup: l, Values: [][]string{{"a", "b"}, {"b"}}}, " ", false},
		{"no name", rules.Query{Lookup: l, Values: [][]string{{}, {"b"}}}, " ", false},
		{"the empty name is no selection", rules.Query{Lookup: l, Values: [][]string{{""}, {"b"}}}, " ", false},
		{"labels", rules.Query{Lookup: l, Values: [][]string{{"a", "b"}, {"b"}}, Selector: selector}, "a in (b,c),!d ", false},
		{"all labels", rules.Query{Lookup: l, Values: [][]string{{"a", "b"}, {"b"}}, Selector: labels.Everything()}, " ", false},
		{"no labels", rules.Query{Lookup: l, Values: [][]string{{"a", "b"}, {"b"}}, Selector: labels.Nothing()}, "", true},
	} {
		options := listOptions(tc.query)
		if tc.nobody != (options == nil) {
			t.Errorf("%s: %+v", tc.name, options)
			continue
		}
		if options != nil && options.LabelSelector+" "+options.FieldSelector != tc.want {
			t.Errorf("%s: %q %q", tc.name, options.LabelSelector, options.FieldSelector)
		}
	}
}
