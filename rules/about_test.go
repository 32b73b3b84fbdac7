package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAbout(t *testing.T) {
	one := configMapRule("one", "patch: {merge: {metadata: {labels: {a: b}}}}")
	set := load(t, strings.Replace(one, "resource: configmaps", "resource: services", 1), strings.NewReplacer("name: one", "name: both",
		"resource: {version: v1, resource: configmaps}", "resources: [{version: v1, resource: configmaps}, {version: v1, resource: services}]").Replace(one))
	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	got := set.About(func(gvr schema.GroupVersionResource) bool { return gvr == configmaps })
	if diff := cmp.Diff([]string{"both"}, ruleNames(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.GroupVersionResource{configmaps}, got.Resources()); diff != "" {
		t.Errorf("the resources (-want +got):\n%s", diff)
	}
	if len(set.Resources()) != 2 || len(set.All()) != 2 || len(set.For(configmaps)) != 1 {
		t.Errorf("the set itself was changed: %v", set.Resources())
	}
	if none := set.About(func(schema.GroupVersionResource) bool { return false }); len(none.All()) != 0 {
		t.Errorf("about nothing: %v", ruleNames(none))
	}
}
