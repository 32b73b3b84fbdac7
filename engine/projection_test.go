package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

// awaitVersion waits until the engine has seen the newest version of an object.
func (f *fixture) awaitVersion(resource schema.GroupVersionResource, name string) {
	f.Helper()
	want := f.get(resource, name).GetResourceVersion()
	testcluster.Eventually(f, soon, func() error {
		u, ok := f.engine.informers.Get(resource, f.ns, name)
		if !ok || older(u.GetResourceVersion(), want) {
			return fmt.Errorf("the cache does not hold version %s of %s", want, name)
		}
		return nil
	})
}

// looked counts how often objects are looked at while something is done to one of
// them.
func (f *fixture) looked(resource schema.GroupVersionResource, name string, do func()) int64 {
	f.Helper()
	f.quietQueue()
	before := f.engine.syncs.Load()
	do()
	f.awaitVersion(resource, name)
	f.quietQueue()
	return f.engine.syncs.Load() - before
}

// What rules do not read of an object costs no look at it; what they read does, and
// is put right by one PATCH, and without a GET. One streamed list is all that is read.
func TestStatusChurnIsNotLookedAt(t *testing.T) {
	for name, full := range map[string]bool{"projected": false, "whole": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.create(deployments, deploymentYAML, "web", "3", 3)
			config, err := f.cp.User(f.user, "system:masters")
			if err != nil {
				t.Fatal(err)
			}
			f.startAs(config, Options{FullObjects: full}, expectedReplicas(t))
			f.wantReadyz(soon, "deployments: synced")
			f.awaitVersion(deployments, "web")
			const beats = 20
			got := f.looked(deployments, "web", func() {
				for i := range beats {
					f.merge(deployments, "web", fmt.Sprintf(`{"status":{"replicas":%d}}`, i), "status")
				}
			})
			if !full && got != 0 || full && got == 0 {
				t.Errorf("%d looks at an object whose status has changed %d times", got, beats)
			}
			got = f.looked(deployments, "web", func() {
				f.merge(deployments, "web", `{"spec":{"replicas":1}}`)
				f.eventually(soon, deployments, "web", int64(3), "spec", "replicas")
			})
			if !full && got != 2 { // at the drift, and at the own write
				t.Errorf("%d looks at an object that was fixed, want 2", got)
			}
			f.settle("deployments")
			f.wantWrites("deployments", 1)
			f.wantOneInformer("deployments")
		})
	}
}

// The engine's own write is waited for, whether or not it has changed what rules
// read: here, a webhook sets that back.
func TestOnceWaitsForAWriteThatChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.webhook(testwebhook.Mutating, func(r *testwebhook.Request) testwebhook.Answer {
		if !r.Wants("lost") {
			return testwebhook.Answer{}
		}
		return r.SetBack("lost", false)
	})
	const n = 30
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("c-%d", i))
	}
	f.configMap(names...)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(f.options(config, Options{}, sets("lost", "lost", "merge", names...)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	summary, err := e.Once(ctx)
	if want := (Summary{Failed: n}); err != nil || summary != want {
		t.Errorf("got %+v, %v; want %+v", summary, err, want)
	}
}

// A reload whose rules need more has the objects of that resource read again, with
// what was read before; its rules wait, the others go on, and what happens meanwhile
// is not lost. One that needs less, or has needed it before, reads nothing.
func TestAReloadThatNeedsMoreFields(t *testing.T) {
	f := newFixture(t)
	service := rule("service", `
resource: {version: v1, resource: services}
patch: {merge: {metadata: {labels: {value: one}}}}`)
	copies := rule("copies", `
resource: {version: v1, resource: configmaps}
condition: has(object.data.source)
patch: {merge: {metadata: {annotations: {copy: "${object.data.source}"}}}}`)
	for _, name := range []string{"changed", "deleted", "asItWas"} {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {source: old}}`, strings.ToLower(name))
	}
	f.create(services, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}`)
	reads := &gate{resource: configmaps.Resource}
	f.startAs(f.between(reads.pass), Options{}, valueRule("one"), service)
	f.allHave(soon, "one")
	f.wantReadyz(soon, "configmaps: synced", "services: synced")
	if u, ok := f.engine.informers.Get(configmaps, f.ns, "changed"); !ok || strings.Contains(fmt.Sprint(u.Object), "old") {
		t.Errorf("the cache holds what no rule reads: %v", u)
	}
	reads.close()
	f.reload(valueRule("one"), service, copies)
	testcluster.Eventually(t, soon, func() error {
		if reads.waited.Load() == 0 {
			return fmt.Errorf("nothing is read")
		}
		return nil
	})
	f.wantReadyz(0, "configmaps: synced", "rule copies on v1/configmaps: parked: it needs fields of v1/configmaps")
	f.merge(configmaps, "changed", `{"data":{"value":"drifted","source":"new"}}`)
	f.eventually(soon, configmaps, "changed", "one", "data", "value")
	f.quietQueue()
	if got := f.get(configmaps, "changed").GetAnnotations()["copy"]; got != "" {
		t.Errorf("the rule that waits has written %q", got)
	}
	reads.open()
	f.eventually(soon, configmaps, "changed", "new", "metadata", "annotations", "copy")
	f.eventually(soon, configmaps, "asitwas", "old", "metadata", "annotations", "copy")
	f.merge(configmaps, "changed", `{"data":{"source":"newer"}}`)
	f.eventually(soon, configmaps, "changed", "newer", "metadata", "annotations", "copy")

	f.reload(valueRule("two"), service) // less
	f.allHave(soon, "two")
	f.reload(valueRule("two"), service, copies) // what is there still
	f.merge(configmaps, "changed", `{"data":{"source":"newest"}}`)
	f.eventually(soon, configmaps, "changed", "newest", "metadata", "annotations", "copy")
	f.wantInformers("configmaps", 2)
	f.wantOneInformer("services")
}

// As TestAReloadThatNeedsMoreFields, but objects change all the time, and each reload
// needs one field more.
func TestReloadsThatNeedMoreLoseNothing(t *testing.T) {
	f := newFixture(t)
	const objects, reloads = 20, 15
	for i := range objects {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}, data: {value: one}}`, i)
	}
	copies := func(i int) string {
		return rule("copies", fmt.Sprintf(`
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {annotations: {copy: "${object.data.?s%d.orValue('none')}"}}}}`, i))
	}
	f.start(copies(0))
	f.wantReadyz(soon, "configmaps: synced")
	for i := range reloads {
		f.reload(copies(i + 1))
		f.inParallel(objects, func(_ context.Context, c int) error {
			f.merge(configmaps, fmt.Sprintf("c-%d", c), fmt.Sprintf(`{"data":{"s%d":"v%d"}}`, i+1, i+1))
			return nil
		})
	}
	for c := range objects {
		f.eventually(soon, configmaps, fmt.Sprintf("c-%d", c), fmt.Sprintf("v%d", reloads), "metadata", "annotations", "copy")
	}
}

// Of a resource that is only looked up, only what is looked at is kept; what the
// engine itself reads is, where rules are about the objects.
func TestWhatIsKept(t *testing.T) {
	f := newFixture(t)
	f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {a: b}}, data: {key: dmFsdWU=}}`)
	f.create(deployments, deploymentYAML, "web", "2", 2)
	f.start(rule("secret", `
resource: {version: v1, resource: secrets}
condition: object.metadata.?labels.?a.orValue('') == 'c'
patch: {merge: {metadata: {labels: {a: d}}}}`), expectedReplicas(t))
	f.wantReadyz(soon, "deployments: synced", "secrets: synced")
	for resource, wanted := range map[schema.GroupVersionResource][2][]string{
		secrets:     {{"labels", "dmFsdWU="}, {"type", "creationTimestamp", "managedFields"}},
		deployments: {{"replicas", "annotations"}, {"containers", "status", "strategy", "managedFields"}},
	} {
		name := map[schema.GroupVersionResource]string{secrets: "s", deployments: "web"}[resource]
		u, ok := f.engine.informers.Get(resource, f.ns, name)
		if !ok {
			t.Fatalf("%s is not there", name)
		}
		text, err := json.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range wanted[0] {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s is not kept: %s", part, text)
			}
		}
		for _, part := range wanted[1] {
			if strings.Contains(string(text), part) {
				t.Errorf("%s is kept, and nobody reads it: %s", part, text)
			}
		}
	}
	fields := f.engine.keep(deployments, gvr.Info{}).Set
	if !fields.Covers(finalizers) {
		t.Errorf("finalizers are not kept: %s", fields)
	}
}

// Of the answer to a write, what rules and the engine read is decoded: not the rest of
// the object, but when it was last written. So it is with a Scale.
func TestAnswersAreReadAsFarAsNeeded(t *testing.T) {
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "2", 2)
	f.start(expectedReplicas(t))
	p := f.engine.policy.Load()
	f.wantReadyz(soon, "deployments: synced")
	needed := f.engine.need(p, deployments, f.engine.survey(p).infos[deployments])
	client, err := f.engine.writing.reading(deployments, needed)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := f.engine.writing.reading(deployments, f.engine.need(p, deployments, f.engine.survey(p).infos[deployments])); again != client {
		t.Error("a client is made for each write")
	}
	patch := func(body string, subresources ...string) string {
		u, err := client.Resource(deployments).Namespace(f.ns).Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
		if err != nil {
			t.Fatal(err)
		}
		if len(subresources) == 0 && (newestTime(u) == "" || !time.Now().Before(at(t, newestTime(u)).Add(time.Minute))) {
			t.Errorf("it is not known when it was written: %v", u.Object)
		}
		return fmt.Sprint(u.Object)
	}
	answer := patch(`{"metadata":{"finalizers":["example.io/kept"],"annotations":{"rectifier.dev/skip":"*"}},"spec":{"minReadySeconds":7}}`)
	for part, want := range map[string]bool{"replicas:2": true, "example.io/kept": true, "rectifier.dev/skip": true, "minReadySeconds": false, "containers": false, "fieldsV1": false} {
		if strings.Contains(answer, part) != want {
			t.Errorf("%s in the answer: %v, want %v: %s", part, !want, want, answer)
		}
	}
	if scale := patch(`{"spec":{"replicas":3}}`, "scale"); strings.Contains(scale, "selector:app=web") || !strings.Contains(scale, "replicas:3") || !strings.Contains(scale, "resourceVersion:") {
		t.Errorf("the Scale is not what is needed of it: %s", scale)
	}
	patch(`{"metadata":{"finalizers":null}}`)
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
