package engine

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/gallery"
)

// longVariable makes the test of the examples watch for a whole minute.
const longVariable = "RECTIFIER_LONG"

// The rules of all examples, in one engine: what was there before them becomes
// what after.yaml says, by one request for each object that is wrong, and then
// there is silence. The requests are the same where the engine has the objects whole.
func TestExamplesOnExistingObjects(t *testing.T) {
	patches := map[string]map[string]string{}
	for name, full := range map[string]bool{"projected": false, "whole": true} {
		t.Run(name, func(t *testing.T) { patches[name] = fixExamples(t, full) })
		testcluster.Eventually(t, 30*time.Second, func() error { // the next one installs them anew
			left, err := testcluster.Dynamic(t).Resource(crds).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, crd := range left.Items {
				if crd.GetDeletionTimestamp() != nil {
					return fmt.Errorf("%s is being deleted", crd.GetName())
				}
			}
			return nil
		})
	}
	if diff := cmp.Diff(patches["whole"], patches["projected"]); diff != "" {
		t.Errorf("patches of whole and projected objects differ (-whole +projected):\n%s", diff)
	}
}

// fixExamples returns the bodies of the requests, by object, without its version.
func fixExamples(t *testing.T, full bool) map[string]string {
	f := newFixture(t)
	examples := gallery.Read(t, "../examples")
	c := gallery.NewCluster(t, f.client, examples)
	var ruleFiles []string
	wrong := 0
	for _, x := range examples {
		c.Create(x)
		ruleFiles = append(ruleFiles, x.LimitedRule(t, c.Catalog))
		for i, o := range x.Before {
			if err := c.Check(o, x.After[i]); err != nil {
				wrong++
			}
		}
	}
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.startAs(config, Options{FullObjects: full}, ruleFiles...)
	for _, x := range examples {
		for i, o := range x.Before {
			testcluster.Eventually(t, soon, func() error {
				if err := c.Check(o, x.After[i]); err != nil {
					return fmt.Errorf("example %s: %w", x.Name, err)
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
	f.checkRequests(c, examples, wrong)
	t.Logf("%d examples, %d objects put right", len(examples), wrong)
	return f.bodies()
}

var (
	versionsInBodies = regexp.MustCompile(`"(uid|resourceVersion)":"[^"]*"`)
	timesInBodies    = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`)
	versionTests     = regexp.MustCompile(`("path":"/metadata/(?:uid|resourceVersion)","value":)"[^"]*"`)
)

// bodies are those of the engine's requests, by object, without uid, version and time.
func (f *fixture) bodies() map[string]string {
	out := map[string]string{}
	for _, e := range f.changes() {
		body := versionsInBodies.ReplaceAllString(string(e.RequestObject), `"$1":""`)
		body = timesInBodies.ReplaceAllString(body, `"now"`)
		body = versionTests.ReplaceAllString(body, `$1""`)
		at := strings.Join([]string{e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Namespace, e.ObjectRef.Name}, " ")
		out[at] += body + "\n"
	}
	return out
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
func (f *fixture) checkRequests(c *gallery.Cluster, examples []*gallery.Example, wrong int) {
	f.Helper()
	wanted := map[string]bool{}
	for _, x := range examples {
		for i, o := range x.Before {
			u := &unstructured.Unstructured{Object: o}
			_, info := c.Resource(u)
			wanted[info.Resource.Resource+" "+u.GetNamespace()+"/"+u.GetName()] = gallery.Holds(o, o, x.After[i]) != nil
		}
	}
	requests := f.changes()
	for _, e := range requests {
		namespace := e.ObjectRef.Namespace
		if e.ObjectRef.Resource == "namespaces" {
			namespace = "" // the audit log has a Namespace in itself
		}
		what := e.ObjectRef.Resource + " " + namespace + "/" + e.ObjectRef.Name
		switch {
		case e.Verb != "patch" || e.ResponseStatus.Code != 200 || !guarded(e.RequestObject):
			f.Errorf("a %s to %s, answered with %d", e.Verb, e.RequestURI, e.ResponseStatus.Code)
		case !wanted[what]:
			f.Errorf("%s was written, which was right, or once too often: %s", what, e.RequestObject)
		}
		wanted[what] = false
	}
	if len(requests) != wrong {
		f.Errorf("%d requests for %d objects that were wrong", len(requests), wrong)
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
	testcluster.Eventually(t, soon, func() error {
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
