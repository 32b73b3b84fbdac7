package engine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

const examplesFolder = "../examples/"

// longVariable makes the test of the examples watch for a whole minute.
const longVariable = "RECTIFIER_LONG"

// impatient says what has to change in an example that is about time: the API
// server makes no objects that are old.
var impatient = map[string]struct {
	rule    *strings.Replacer
	without string // an object that is too young in the example
}{
	"service-without-workload": {rule: strings.NewReplacer("duration('1h')", "duration('1s')", "recheckAfter: 1h", "recheckAfter: 1s"), without: "wishlist"},
	"stuck-application":        {rule: strings.NewReplacer("duration('1h')", "duration('1s')", "recheckAfter: 30m", "recheckAfter: 1s")},
	"stale-job":                {rule: strings.NewReplacer("'720h'", "'720000h'")}, // its month is over
}

// The rules of all examples, in one engine: what was there before them becomes
// what after.yaml says, by one request for each object that is wrong, and then
// there is silence.
func TestExamplesOnExistingObjects(t *testing.T) {
	f := newFixture(t)
	examples := readExamples(t)
	c := f.exampleCluster(examples)
	var ruleFiles []string
	wrong := 0
	for _, x := range examples {
		c.create(x)
		ruleFiles = append(ruleFiles, x.limitedRule(t, c.catalog))
		for i, o := range x.before {
			if err := c.check(o, x.after[i]); err != nil {
				wrong++
			}
		}
	}
	f.start(ruleFiles...)
	for _, x := range examples {
		for i, o := range x.before {
			testcluster.Eventually(t, 20*time.Second, func() error {
				if err := c.check(o, x.after[i]); err != nil {
					return fmt.Errorf("example %s: %w", x.name, err)
				}
				return nil
			})
		}
	}
	quiet := 3 * time.Second
	if os.Getenv(longVariable) != "" {
		quiet = time.Minute
	} else {
		t.Logf("watching for %v only; set %s=1 for a minute", quiet, longVariable)
	}
	f.silence(quiet)
	c.checkRequests(examples, wrong)
	t.Logf("%d examples, %d objects put right", len(examples), wrong)
}

// example is a folder of examples.
type example struct {
	name          string
	rule          string
	crds, objects []map[string]any
	before, after []map[string]any // the same objects in the same order
}

func readExamples(t *testing.T) []*example {
	t.Helper()
	folders, err := filepath.Glob(examplesFolder + "*/before.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no example is found: %v", err)
	}
	var out []*example
	for _, path := range folders {
		dir := filepath.Dir(path)
		x := &example{
			name: filepath.Base(dir),
			crds: readObjects(t, dir+"/crd.yaml"), objects: readObjects(t, dir+"/objects.yaml"),
			before: readObjects(t, path), after: readObjects(t, dir+"/after.yaml"),
		}
		rule, err := os.ReadFile(dir + "/rule.yaml")
		if errors.Is(err, os.ErrNotExist) {
			source, e := builtin.Source(x.name)
			rule, err = source.Data, e
		}
		if err != nil {
			t.Fatal(err)
		}
		x.rule = string(rule)
		if change, ok := impatient[x.name]; ok {
			x.rule = change.rule.Replace(x.rule)
			if x.rule == string(rule) {
				t.Fatalf("example %s: the rule has changed, and there is nothing to replace any more", x.name)
			}
			young := func(o map[string]any) bool { return named(o).GetName() == change.without }
			x.before, x.after = slices.DeleteFunc(x.before, young), slices.DeleteFunc(x.after, young)
		}
		out = append(out, x)
	}
	return out
}

// readObjects reads a file of manifests; there are none if there is no file.
func readObjects(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := manifest.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, o := range file.Objects() {
		out = append(out, runtime.DeepCopyJSON(o.Value()))
	}
	return out
}

func named(o map[string]any) *unstructured.Unstructured { return &unstructured.Unstructured{Object: o} }

// limitedRule is the rule, for the objects of its example only: the API server
// has those of other examples and of other tests.
func (x *example) limitedRule(t *testing.T, catalog *gvr.Catalog) string {
	t.Helper()
	var rule map[string]any
	if err := yaml.Unmarshal([]byte(x.rule), &rule); err != nil {
		t.Fatal(err)
	}
	names, namespaces := map[string]bool{}, map[string]bool{}
	for _, o := range x.before {
		u := named(o)
		names[u.GetName()] = true
		if catalog.Info(u.GroupVersionKind())[0].Namespaced {
			namespaces[u.GetNamespace()] = true
		}
	}
	spec, _ := rule["spec"].(map[string]any)
	match, _ := spec["match"].(map[string]any)
	if match == nil {
		match = map[string]any{}
	}
	match["names"] = slices.Sorted(maps.Keys(names))
	if len(namespaces) > 0 {
		match["namespaces"] = slices.Sorted(maps.Keys(namespaces))
	}
	spec["match"] = match
	out, err := yaml.Marshal(rule)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// changes are the engine's requests, except for lists, watches and Events.
func (f *fixture) changes() []controlplane.AuditEvent {
	f.Helper()
	events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return e.User.Username == f.user && e.Verb != "list" && e.Verb != "watch" && e.ObjectRef.Resource != "" && e.ObjectRef.Resource != "events"
	})
	if err != nil {
		f.Fatal(err)
	}
	return events
}

// silence fails the test if the engine sends a request within a time, once it
// has come to rest.
func (f *fixture) silence(howLong time.Duration) {
	f.Helper()
	f.quietQueue()
	before, since := len(f.changes()), time.Now()
	testcluster.Eventually(f, howLong+10*time.Second, func() error {
		if now := f.changes(); len(now) > before {
			f.Fatalf("a %s to %s after everything was right", now[len(now)-1].Verb, now[len(now)-1].RequestURI)
		}
		if left := howLong - time.Since(since); left > 0 {
			return fmt.Errorf("%v left", left)
		}
		return nil
	})
}

// checkRequests holds that each wrong object took one request, and the others
// none.
func (c *exampleCluster) checkRequests(examples []*example, wrong int) {
	c.Helper()
	wanted := map[string]bool{}
	for _, x := range examples {
		for i, o := range x.before {
			u := named(o)
			_, info := c.resource(u)
			wanted[info.Resource.Resource+" "+u.GetNamespace()+"/"+u.GetName()] = holds(o, o, x.after[i]) != nil
		}
	}
	requests := c.changes()
	for _, e := range requests {
		namespace := e.ObjectRef.Namespace
		if e.ObjectRef.Resource == "namespaces" {
			namespace = "" // the audit log has a Namespace in itself
		}
		what := e.ObjectRef.Resource + " " + namespace + "/" + e.ObjectRef.Name
		switch {
		case e.Verb != "patch" || e.ResponseStatus.Code != 200 || !guarded(e.RequestObject):
			c.Errorf("a %s to %s, answered with %d", e.Verb, e.RequestURI, e.ResponseStatus.Code)
		case !wanted[what]:
			c.Errorf("%s was written, which was right, or once too often: %s", what, e.RequestObject)
		}
		wanted[what] = false
	}
	if len(requests) != wrong {
		c.Errorf("%d requests for %d objects that were wrong", len(requests), wrong)
	}
}

// Where the rule takes the last finalizer off, the object goes, and nothing is
// sent to where it was.
func TestTheLastFinalizer(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: stuck, finalizers: [example.io/gone]}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: alive, finalizers: [example.io/gone]}}`)
	if err := f.client.Resource(configmaps).Namespace(f.ns).Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.start(rule("let-go", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], deleting: true}
condition: has(object.metadata.deletionTimestamp) && object.metadata.finalizers == ['example.io/gone']
patch:
  json:
  - {op: test, path: /metadata/finalizers/0, value: example.io/gone}
  - {op: remove, path: /metadata/finalizers/0}`))
	testcluster.Eventually(t, 10*time.Second, func() error {
		_, err := f.client.Resource(configmaps).Namespace(f.ns).Get(t.Context(), "stuck", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %v", err)
		}
		return nil
	})
	f.settle("configmaps")
	if accepted, all := f.writes("configmaps"); accepted != 1 || all != 1 {
		t.Errorf("%d requests, %d accepted, want 1", all, accepted)
	}
	for _, e := range f.eventsOn("stuck") {
		if strings.HasPrefix(e, "Warning") {
			t.Errorf("an Event: %s", e)
		}
	}
	f.merge(configmaps, "alive", `{"metadata":{"finalizers":null}}`)
}
