package offline

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/rules"
)

const (
	ruleHead = "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r}\nspec:\n  resource: {version: v1, resource: configmaps}\n  patch: {merge: {data: {a: b}}}\n"
	// looksUp needs autoscalers, and Namespaces because objects may opt out by them.
	looksUp    = ruleHead + "  lookups: [{name: hpas, resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}}]\n  condition: lookups.hpas.size() == 0\n"
	looksUpOwn = ruleHead + "  optOut: Forbidden\n  lookups: [{name: ws, resource: {group: example.io, version: v1, resource: widgets}}]\n  condition: lookups.ws.size() == 0\n"
	alone      = ruleHead + "  optOut: Forbidden\n"
	optOut     = ruleHead
)

func ruleSet(t *testing.T, text string) *rules.Set {
	t.Helper()
	set, problems := rules.Load(rules.Source{Name: "rule.yaml", Data: []byte(text)})
	for _, p := range problems {
		t.Fatal(p)
	}
	return set
}

const world = `apiVersion: v1
kind: Namespace
metadata: {name: plain}
---
{"apiVersion": "v1", "kind": "Name\u0073pace", "metadata": {"name": "escaped"}}
---
apiVersion: v1
kind: "Name\
  space"
metadata: {name: folded}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: listed}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: plain}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h}
---
apiVersion: example.io/v1
kind: Widget
metadata: {name: w}
---
apiVersion: v1
kind: [
---
apiVersion: v1
kind: Secret
metadata: {name: "\x41"}
`

// kept lists what a World holds.
func kept(w *World) []string {
	var out []string
	for name := range w.namespaces {
		out = append(out, "Namespace "+name)
	}
	for resource, objects := range w.byResource {
		for _, o := range objects {
			out = append(out, rules.ResourceName(resource)+" "+namespaceOf(o)+"/"+nameOf(o))
		}
	}
	slices.Sort(out)
	return out
}

func TestWorldKeepsWhatRulesAskFor(t *testing.T) {
	catalog, err := gvr.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	namespaces := []string{"Namespace escaped", "Namespace folded", "Namespace listed", "Namespace plain"}
	for name, tc := range map[string]struct {
		rule  string
		want  []string
		keeps bool
	}{
		"lookups":             {looksUp, append(slices.Clone(namespaces), "autoscaling/v2/horizontalpodautoscalers default/h"), true},
		"opt-outs":            {optOut, namespaces, true},
		"nothing":             {alone, nil, false},
		"kinds not yet known": {looksUpOwn, []string{"example.io/v1/widgets default/w"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(catalog, "default")
			w.Only(ruleSet(t, tc.rule))
			if w.Keeps() != tc.keeps {
				t.Errorf("keeps: %v", w.Keeps())
			}
			if err := w.Learn("world.yaml", strings.NewReader(world)); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(kept(w), func(s string) bool {
				return !tc.keeps || name == "kinds not yet known" && strings.HasPrefix(s, "Namespace")
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnwantedTextsAreNotParsed checks the short cut, and that escapes which spell no letters do not defeat it.
func TestUnwantedTextsAreNotParsed(t *testing.T) {
	catalog, err := gvr.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld(catalog, "default")
	w.Only(ruleSet(t, looksUp))
	for text, want := range map[string]bool{
		"kind: Deployment\nmetadata: {namespace: shop}": false,
		"kind: Namespace": true, "kind: HorizontalPodAutoscalerList": true,
		`{"a": "\"kind\":\"Deployment\" \u003cb\u003e \\n \t"}`: false,
		`{"kind": "\u004eamespace"}`:                            true,
		`"\x4eamespace"`:                                        true, `"\U0000004eamespace"`: true, "\"Name\\\nspace\"": true, "\"Name\\\r\nspace\"": true,
		`\`: false, `\u00`: false, `\uzzzz`: false,
	} {
		if got := w.mayKeep([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestLearnReportsReadErrors(t *testing.T) {
	catalog, err := gvr.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := NewWorld(catalog, "default").Learn("f", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestLearnIsAdd checks that without Only a World learns all.
func TestLearnIsAdd(t *testing.T) {
	catalog, err := gvr.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(world, "kind: [", "kind: A", 1)
	file, err := manifest.Parse("world.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	added, learnt := NewWorld(catalog, "x"), NewWorld(catalog, "x")
	added.Add(file)
	if err := learnt.Learn("world.yaml", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept(added), kept(learnt)); diff != "" || len(kept(added)) < 8 {
		t.Errorf("%d objects (-Add +Learn):\n%s", len(kept(added)), diff)
	}
}
