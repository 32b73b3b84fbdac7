package gvr

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, uid: one, resourceVersion: "7", managedFields: [{manager: kubectl}]}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1beta1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
status:
  conditions:
  - {type: NamesAccepted, status: "True"}
  - {type: Established, status: "True"}
`

// manifest decodes YAML, after replacing pairs of strings in it.
func manifest(t testing.TB, document string, oldnew ...string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(oldnew...).Replace(document)), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestCatalogInfo(t *testing.T) {
	catalog, err := NewCatalog(manifest(t, widgetCRD))
	if err != nil {
		t.Fatal(err)
	}
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	for _, c := range []struct {
		gvk  schema.GroupVersionKind
		want []Info
	}{{
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		[]Info{{
			Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment",
			Namespaced: true, HasStatus: true, HasScale: true, ReplicasPath: []string{"spec", "replicas"},
		}},
	}, {
		schema.GroupVersionKind{Version: "v1", Kind: "Node"},
		[]Info{{Resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Kind: "Node", HasStatus: true}},
	}, {
		schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		[]Info{{
			Resource: widgets.WithVersion("v1"), Kind: "Widget", Namespaced: true, HasStatus: true, HasScale: true,
			ReplicasPath: []string{"spec", "size"},
		}},
	}, {
		schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Widget"},
		[]Info{{Resource: widgets.WithVersion("v1alpha1"), Kind: "Widget", Namespaced: true, Preferred: "v1"}},
	}, {
		schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Widget"}, nil, // not served
	}, {
		schema.GroupVersionKind{Group: "other.example.com", Version: "v1", Kind: "Gateway"},
		[]Info{
			{Resource: schema.GroupVersionResource{Group: "other.example.com", Version: "v1", Resource: "gateways"}, Kind: "Gateway", Namespaced: true},
			{Resource: schema.GroupVersionResource{Group: "other.example.com", Version: "v1", Resource: "gatewaies"}, Kind: "Gateway", Namespaced: true},
			{Resource: schema.GroupVersionResource{Group: "other.example.com", Version: "v1", Resource: "gateway"}, Kind: "Gateway", Namespaced: true},
		},
	}} {
		if diff := cmp.Diff(c.want, catalog.Info(c.gvk)); diff != "" {
			t.Errorf("Info(%s) (-want +got):\n%s", c.gvk, diff)
		}
	}
	if !catalog.Known(schema.GroupKind{Group: "example.com", Kind: "Widget"}) || !catalog.Known(schema.GroupKind{Kind: "Pod"}) ||
		catalog.Known(schema.GroupKind{Group: "example.com", Kind: "Gadget"}) {
		t.Error("Known is wrong")
	}
}

func TestNewCatalogErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		oldnew []string
		want   string
	}{
		{"another kind", []string{"CustomResourceDefinition", "ConfigMap"}, `read CRD "widgets.example.com": it is a ConfigMap`},
		{"an old version", []string{"apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"}, "v1beta1"},
		{"no plural", []string{"plural: widgets, ", ""}, "spec.names.plural"},
		{"a bad scope", []string{"Namespaced", "Everywhere"}, "spec.scope"},
		{"a version without a name", []string{"- name: v1beta1\n", "- x: y\n"}, "spec.versions[2]: name is required"},
		{"no versions", []string{"versions:", "verions:"}, "spec.versions is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewCatalog(manifest(t, widgetCRD, c.oldnew...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want it to contain %q", err, c.want)
			}
		})
	}
	_, err := NewCatalog(manifest(t, widgetCRD), manifest(t, widgetCRD, "plural: widgets", "plural: widgetry"))
	if err == nil || !strings.Contains(err.Error(), "already defined by \"widgets.example.com\"") {
		t.Errorf("two CRDs for one kind: error %v", err)
	}
}

// What the CRD informer keeps must say the same as the whole CRD.
func TestPruneCRD(t *testing.T) {
	whole := manifest(t, widgetCRD)
	want, err := parseCRD(whole)
	if err != nil {
		t.Fatal(err)
	}
	once, err := pruneCRD(&unstructured.Unstructured{Object: whole})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := pruneCRD(once)
	if err != nil {
		t.Fatal(err)
	}
	pruned := twice.(*unstructured.Unstructured)
	got, err := parseCRD(pruned.Object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(crd{}, crdVersion{})); diff != "" {
		t.Errorf("pruning changed the CRD (-whole +pruned):\n%s", diff)
	}
	if !got.established || got.uid != "one" || pruned.GetResourceVersion() != "7" {
		t.Errorf("pruned CRD is %+v", pruned.Object)
	}
	if text, _ := json.Marshal(pruned); strings.Contains(string(text), "openAPIV3Schema") || strings.Contains(string(text), "managedFields") {
		t.Errorf("pruned CRD still holds what it should not: %s", text)
	}
}

func FuzzParseCRD(f *testing.F) {
	whole, err := json.Marshal(manifest(f, widgetCRD))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"spec":{"versions":[null,1,{"subresources":[]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := map[string]any{}
		if json.Unmarshal(data, &object) != nil {
			return
		}
		definition, err := parseCRD(object)
		if err != nil {
			return
		}
		pruned, err := pruneCRD(&unstructured.Unstructured{Object: object})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseCRD(pruned.(*unstructured.Unstructured).Object)
		if err != nil {
			t.Fatalf("a pruned CRD can not be read: %v", err)
		}
		if diff := cmp.Diff(definition, again, cmp.AllowUnexported(crd{}, crdVersion{})); diff != "" {
			t.Fatalf("pruning changed the CRD:\n%s", diff)
		}
	})
}
