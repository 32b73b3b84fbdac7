package engine

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// markHPAs has the autoscalers watched, without an index.
var markHPAs = rule("mark-hpas", `
resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}
condition: object.metadata.name == "nobody"
patch: {merge: {metadata: {labels: {marked: "yes"}}}}`)

// A lookup that comes on a resource that is watched already finds all that is
// there, and has what it reads of that read once; when it goes, what depended on it
// is forgotten.
func TestALookupComesAndGoes(t *testing.T) {
	f := newFixture(t)
	const n = 20
	for i := range n {
		f.create(deployments, deploymentYAML, web(i), "1", 2)
		f.create(hpas, hpaYAML, web(i), web(i))
	}
	f.start(markHPAs)
	f.wantReadyz(10*time.Second, "horizontalpodautoscalers: synced")
	f.reload(markHPAs, expectedReplicas(t))
	f.wantReadyz(10*time.Second, "deployments: synced")
	f.quietQueue()
	testcluster.Eventually(t, 5*time.Second, func() error { return f.remembers(0, n) })
	f.wantWrites("deployments", 0)
	f.deleteHPA(web(3))
	f.eventually(5*time.Second, deployments, web(3), int64(1), "spec", "replicas")
	f.wantWrites("deployments", 1)

	f.reload(markHPAs)
	testcluster.Eventually(t, 5*time.Second, func() error { return f.remembers(0, 0) })
	f.wantReadyz(time.Second, "rules: 1 loaded, 0 invalid")
	if _, body := f.readyz(); strings.Contains(body, "deployments") {
		t.Errorf("readyz tells of a resource that no rule names:\n%s", body)
	}
	f.wantInformers("horizontalpodautoscalers", 2) // once without what the lookup reads
}

// The same again and again, the informer of what is looked up being started and
// stopped: a cache that has not synced is never taken for an empty one.
func TestALookupOfWhatIsNotWatchedYet(t *testing.T) {
	f := newFixture(t)
	const n, reloads = 20, 30
	for i := range n {
		f.create(deployments, deploymentYAML, web(i), "1", 2)
		f.create(hpas, hpaYAML, web(i), web(i))
	}
	other := rule("other", `
resource: {group: apps, version: v1, resource: deployments}
condition: object.metadata.name == "nobody"
patch: {merge: {metadata: {labels: {marked: "yes"}}}}`)
	f.start(other)
	f.wantReadyz(10*time.Second, "deployments: synced")
	for range reloads {
		f.reload(other, expectedReplicas(t))
		testcluster.Eventually(t, 10*time.Second, func() error {
			if available, reason := f.engine.informers.Availability(hpas); available != gvr.Available {
				return fmt.Errorf("not synced yet: %s", reason)
			}
			return nil
		})
		f.reload(other)
	}
	f.reload(other, expectedReplicas(t))
	f.wantReadyz(10*time.Second, "horizontalpodautoscalers: synced")
	f.deleteHPA(web(3)) // it was not for lack of trying
	f.eventually(5*time.Second, deployments, web(3), int64(1), "spec", "replicas")
	f.wantWrites("deployments", 1)
	f.reload(other)
	testcluster.Eventually(t, 5*time.Second, func() error { return f.remembers(0, 0) })
	f.wantInformers("deployments", 2) // once more for what the second rule reads, not at each reload
}

// A rule that reads managedFields makes its resource be read anew, with them, and
// no other.
func TestARuleThatReadsManagedFieldsComes(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {some: owner}}`)
	services := rule("services", `
resource: {version: v1, resource: services}
condition: object.metadata.name == "nobody"
patch: {merge: {metadata: {labels: {marked: "yes"}}}}`)
	f.start(valueRule("one"), services)
	f.eventually(10*time.Second, configmaps, "c", "one", "data", "value")
	f.settle("configmaps")
	f.reload(valueRule("one"), services, rule("unowned", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?managedFields.orValue([]).size() == 0
patch: {merge: {data: {unowned: "yes"}}}`), rule("owned", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?managedFields.orValue([]).size() > 0
patch: {merge: {data: {owned: "yes"}}}`))
	f.eventually(10*time.Second, configmaps, "c", "yes", "data", "owned")
	f.settle("configmaps")
	if got := f.get(configmaps, "c").Object["data"].(map[string]any)["unowned"]; got != nil {
		t.Error("an object was taken for one without managedFields")
	}
	f.wantOneInformer("services")
	testcluster.Eventually(t, 10*time.Second, func() error { // the last one may not be logged yet
		if got := len(f.reads("configmaps")); got != 2 {
			return fmt.Errorf("%d lists and watches of ConfigMaps, want 2", got)
		}
		return nil
	})
}

// A rule that needs a schema comes where none did.
func TestARuleThatNeedsASchemaComes(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	f.start(valueRule("one"))
	f.eventually(10*time.Second, configmaps, "c", "one", "data", "value")
	f.reload(valueRule("one"), rule("apply", `
resource: {version: v1, resource: configmaps}
patch: {applyConfiguration: {data: {applied: "yes"}}}`))
	f.eventually(30*time.Second, configmaps, "c", "yes", "data", "applied")
}

// A rule that has changed is not held because the one before was, and nothing is
// left of one that went.
func TestAFightEndsWithItsRule(t *testing.T) {
	f := &fixture{T: t}
	opts := f.options(&rest.Config{Host: "http://127.0.0.1:1"}, Options{Registerer: prometheus.NewRegistry()}, valueRule("one"))
	e, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	f.engine = e
	key, now := Key{Resource: configmaps.GroupResource(), Namespace: "a", Name: "c"}, time.Now()
	const change = 1
	for range DefaultContentionCount {
		e.contentions.wrote(key, "uid", author{"value", 0}, change, "", now)
	}
	if _, held := e.contentions.giveWay("uid", author{"value", 0}, change, now); !held {
		t.Fatal("there is no fight")
	}
	f.wantMetrics(`rectifier_contentions_total{resource="configmaps",rule="value"} 1`, `rectifier_contended_objects{resource="configmaps",rule="value"} 1`)
	f.reload(valueRule("one"))
	if free, _, _ := e.contentions.free("uid", e.rules().All(), now); len(free) != 0 {
		t.Error("a reload that changes nothing ends a fight")
	}
	f.reload(valueRule("two"))
	if free, _, _ := e.contentions.free("uid", e.rules().All(), now); len(free) != 1 {
		t.Error("a rule that has changed is held")
	}
	f.wantMetrics(`rectifier_contentions_total{resource="configmaps",rule="value"} 1`)
	f.reload()
	if body := f.metrics(); strings.Contains(body, `rule="value"`) {
		t.Errorf("there are series of a rule that went:\n%s", body)
	}
}

// CEL-15, and all of the above at once: 200 reloads while 8 workers are at it and
// objects drift.
func TestReloadsUnderLoad(t *testing.T) {
	f := newFixture(t)
	const objects, reloads = 60, 200
	for i := range objects {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	for i := range 5 {
		f.create(deployments, deploymentYAML, web(i), "1", 2)
		f.create(hpas, hpaYAML, web(i), web(i))
		f.create(services, `{apiVersion: v1, kind: Service, metadata: {name: s-%d}, spec: {ports: [{port: 80}]}}`, i)
	}
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	service := func(v string) string {
		return rule("service", `
resource: {version: v1, resource: services}
patch: {merge: {metadata: {labels: {value: "`+v+`"}}}}`)
	}
	f.startAs(config, Options{Workers: 8, Contention: Contention{Count: 1 << 20, Cap: 1 << 20}}, valueRule("v0"), markHPAs)
	f.wantReadyz(10*time.Second, "configmaps: synced", "horizontalpodautoscalers: synced")
	goroutines := runtime.NumGoroutine()

	stop := make(chan struct{})
	var drifting sync.WaitGroup
	drifting.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_, err := f.client.Resource(configmaps).Namespace(f.ns).Patch(t.Context(), fmt.Sprintf("c-%d", i%objects), types.MergePatchType,
				[]byte(fmt.Sprintf(`{"data":{"value":"drift-%d"}}`, i)), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	expected := expectedReplicas(t)
	for i := range reloads {
		v := fmt.Sprintf("v%d", i/2) // each value stays for two reloads
		all := []string{valueRule(v), markHPAs}
		if i%3 == 0 {
			all = append(all, expected)
		}
		if i%5 < 2 {
			all = append(all, service(v))
		}
		if i%7 == 0 {
			all[0] += "  nosuchfield: 1\n"
		}
		f.reload(all...)
	}
	close(stop)
	drifting.Wait()
	f.reload(valueRule("last"), markHPAs, expected, service("last"))
	f.allHave(60*time.Second, "last")
	for i := range 5 {
		f.eventually(20*time.Second, services, fmt.Sprintf("s-%d", i), "last", "metadata", "labels", "value")
	}
	f.deleteHPA(web(3))
	f.eventually(20*time.Second, deployments, web(3), int64(1), "spec", "replicas")
	f.wantWrites("deployments", 1)
	f.settle("configmaps")

	f.reload(valueRule("last"), markHPAs) // as at the begin
	testcluster.Eventually(t, 20*time.Second, func() error {
		if now := runtime.NumGoroutine(); now > goroutines+20 {
			return fmt.Errorf("%d goroutines, %d before", now, goroutines)
		}
		return nil
	})
	f.wantOneInformer("configmaps")
	f.wantInformers("horizontalpodautoscalers", 2) // once without what the lookup reads
}
