package openapi

import (
	"os"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestBuiltinVersion: the embedded schemas are those of the API server that the tests run.
func TestBuiltinVersion(t *testing.T) {
	gomod, err := os.ReadFile("../../internal/controlplane/kubernetes/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(gomod)
	if match == nil || string(match[1]) != BuiltinVersion {
		t.Errorf("BuiltinVersion is %s, the API server's is %s", BuiltinVersion, match)
	}
}

func TestBuiltinKnowsAllKinds(t *testing.T) {
	kinds := builtinKinds(t)
	if len(kinds) < 80 {
		t.Errorf("only %d kinds", len(kinds))
	}
	for _, gvk := range kinds {
		typ, err := Builtin().Type(t.Context(), gvk)
		if err != nil {
			t.Error(err)
			continue
		}
		if again, _ := Builtin().Type(t.Context(), gvk); again != typ {
			t.Errorf("%s is built anew", gvk)
		}
		if root, definitions, err := typ.Definitions(); err != nil || definitions[root] == nil {
			t.Errorf("%s: definitions: %v", gvk, err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		{Group: "autoscaling", Version: "v1", Kind: "Scale"}, {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		mustBuiltin(t, gvk)
	}
}
