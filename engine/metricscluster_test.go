package engine

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/clientmetrics"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
	"github.com/rectifier-dev/rectifier/internal/processmetrics"
)

// Each PATCH is counted by what came of it, and no name of an object or value of a
// Secret is in any metric.
func TestPatchesAreCountedByTheirResult(t *testing.T) {
	t.Parallel()
	const value = "s3cr3t"
	f := newFixture(t)
	f.webhook(testwebhook.Mutating, func(r *testwebhook.Request) testwebhook.Answer {
		switch r.Name {
		case "object-undone":
			return r.SetBack("fixed", true)
		case "object-denied":
			return testwebhook.Deny(http.StatusForbidden, "no: "+value)
		case "object-policy":
			return testwebhook.Deny(http.StatusBadRequest, "no: "+value)
		}
		return testwebhook.Answer{}
	})
	var met sync.Map // what the first request for an object has met
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		path := strings.Split(r.URL.Path, "/")
		name := path[len(path)-1]
		if _, again := met.LoadOrStore(name, true); r.Method != http.MethodPatch || again {
			return next.RoundTrip(r)
		}
		objects := f.client.Resource(configmaps).Namespace(f.ns)
		switch name {
		case "object-changed":
			if _, err := objects.Patch(r.Context(), name, types.MergePatchType, []byte(`{"data":{"other":"change"}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		case "object-gone":
			if err := objects.Delete(r.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		case "object-throttled":
			return answerWith(r, apierrors.NewTooManyRequests("slowly", 1))
		case "object-broken":
			return answerWith(r, outOfOrder)
		}
		return next.RoundTrip(r)
	})
	registry := prometheus.NewRegistry()
	clientmetrics.Register(registry)
	processmetrics.Register(registry, "v1.2.3")
	want := map[string]string{ // the results for one object
		"object-plain": "success", "object-undone": "ineffective", "object-denied": "denied", "object-policy": "denied",
		"object-changed": "conflict success", "object-gone": "gone", "object-throttled": "throttled success", "object-broken": "unavailable success",
		"object-invalid": "invalid",
	}
	sums := map[string]float64{}
	for name, results := range want {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {there: already}}`, name)
		for result := range strings.FieldsSeq(results) {
			sums[result]++
		}
	}
	f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: object-secret}, data: {password: %s}}`, base64.StdEncoding.EncodeToString([]byte(value)))
	f.startAs(config, Options{Registerer: registry},
		rule("mark", "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS], excludeNames: [object-invalid, probe]}\npatch: {merge: {data: {fixed: \"yes\"}}}"),
		rule("bad", "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS], names: [object-invalid]}\npatch: {merge: {metadata: {labels: {a: \"not a label!\"}}}}"),
		rule("secret", "resource: {version: v1, resource: secrets}\ncondition: object.data[object.data.password] == ''\npatch: {merge: {metadata: {labels: {a: b}}}}"))

	got := func() map[string]float64 {
		out := map[string]float64{}
		for _, m := range seriesOf(t, registry, "rectifier_patches_total", "resource=configmaps,subresource=") {
			for _, l := range m.GetLabel() {
				if l.GetName() == "result" {
					out[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		return out
	}
	testcluster.Eventually(t, 30*time.Second, func() error {
		if sumOf(t, registry, "rectifier_patches_total", "result=success") < sums["success"] || sumOf(t, registry, "rectifier_rule_failures_total", "") < 5 {
			return fmt.Errorf("only %v so far", got())
		}
		return nil
	})
	f.settle("configmaps")
	results := got()
	if results["denied"] < sums["denied"] || results["ineffective"] < sums["ineffective"] {
		t.Errorf("results are %v", results)
	}
	// Webhooks are asked again after a while: how often depends on the time.
	delete(results, "denied")
	delete(results, "ineffective")
	delete(sums, "denied")
	delete(sums, "ineffective")
	if diff := cmp.Diff(sums, results); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantSum(t, registry, "rectifier_fixes_total", "rule=mark", sums["success"])
	wantSum(t, registry, "rectifier_rule_failures_total", "rule=mark,reason=PatchRefused", 2)
	wantSum(t, registry, "rectifier_rule_failures_total", "rule=mark,reason=Ineffective", 1)
	wantSum(t, registry, "rectifier_rule_failures_total", "rule=bad,reason=PatchRefused", 1)
	wantSum(t, registry, "rectifier_rule_failures_total", "rule=secret,reason=EvaluationFailed", 1)
	if n := seriesOf(t, registry, "rectifier_drift_to_fix_seconds", "resource=configmaps")[0].GetHistogram().GetSampleCount(); n != uint64(sums["success"]) {
		t.Errorf("%d times from drift to fix for %v fixes", n, sums["success"])
	}
	wantNoSecrets(t, registry, "object-", value, base64.StdEncoding.EncodeToString([]byte(value)))
}

// wantNoSecrets fails if a label of any metric contains one of some texts.
func wantNoSecrets(t *testing.T, g prometheus.Gatherer, texts ...string) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				labels++
				for _, text := range texts {
					if strings.Contains(l.GetValue(), text) {
						t.Errorf("%s has the label %s=%q", family.GetName(), l.GetName(), l.GetValue())
					}
				}
			}
		}
	}
	if labels < 100 {
		t.Errorf("only %d labels were looked at", labels)
	}
}

// A request that a permission is missing for is counted, and the rule shows as
// parked.
func TestAForbiddenPatchIsCounted(t *testing.T) {
	f := newFixture(t)
	f.grant("namespaces", "list", "watch")
	f.grant("configmaps", "list", "watch")
	f.configMap("c")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	f.startAs(config, Options{Registerer: registry}, rule("mark", mark))
	testcluster.Eventually(t, soon, func() error {
		if sumOf(t, registry, "rectifier_patches_total", "resource=configmaps,result=forbidden") == 0 {
			return fmt.Errorf("no forbidden request is counted")
		}
		if sumOf(t, registry, "rectifier_rule_parked", "rule=mark,resource=configmaps,reason=patch_forbidden") != 1 {
			return fmt.Errorf("the rule does not show as parked")
		}
		return nil
	})
	wantSum(t, registry, "rectifier_fixes_total", "rule=mark", 0)
}

// The time from drift to fix begins with the event that brought the drift, not
// with those before, and goes on through a conflict. Nothing is remembered of
// objects that are right, or gone.
func TestTheTimeFromDriftToFix(t *testing.T) {
	f := newFixture(t)
	var requests []time.Time // for the object, in order; one worker has it at a time
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if f.patches(r, "c") {
			if requests = append(requests, time.Now()); len(requests) == 1 {
				f.merge(configmaps, "c", `{"data":{"other":"change"}}`)
			}
		}
		return next.RoundTrip(r)
	})
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {fixed: "yes"}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: goes}, data: {fixed: "yes"}}`)
	registry := prometheus.NewRegistry()
	f.startAs(config, Options{Registerer: registry}, rule("mark", mark))
	testcluster.Eventually(t, soon, func() error {
		if n := sumOf(t, registry, "rectifier_evaluations_total", "rule=mark,outcome=pass"); n < 2 {
			return fmt.Errorf("%v objects are found right", n)
		}
		return nil
	})
	begin := time.Now()
	f.merge(configmaps, "c", `{"data":{"fixed":"no"}}`)
	f.eventually(soon, configmaps, "c", "yes", "data", "fixed")
	var drift *dto.Histogram
	testcluster.Eventually(t, soon, func() error {
		if all := seriesOf(t, registry, "rectifier_drift_to_fix_seconds", "resource=configmaps"); len(all) == 1 {
			drift = all[0].GetHistogram()
			return nil
		}
		return fmt.Errorf("the time is not there")
	})
	atMost := time.Since(begin).Seconds()
	f.settle("configmaps")
	wantSum(t, registry, "rectifier_patches_total", "result=conflict", 1)
	atLeast := requests[1].Sub(requests[0]).Seconds()
	if got := drift.GetSampleSum(); drift.GetSampleCount() != 1 || got < atLeast || got > atMost {
		t.Errorf("%d fixes took %v s: between the two requests were %v s, and it was all over after %v s", drift.GetSampleCount(), got, atLeast, atMost)
	}
	if err := f.client.Resource(configmaps).Namespace(f.ns).Delete(f.Context(), "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, soon, func() error {
		if _, there := f.engine.informers.Get(configmaps, f.ns, "goes"); there || f.engine.queue.Len() > 0 {
			return fmt.Errorf("the object is still there")
		}
		if n := f.engine.arrivals.len(); n > 0 {
			return fmt.Errorf("%d keys are remembered", n)
		}
		return nil
	})
}

// What rules made of objects, what the caches hold, and what the queue did.
func TestEvaluationsCachesAndQueueInMetrics(t *testing.T) {
	f := newFixture(t)
	const objects, kibibytes = 40, 2
	for i := range objects {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}, data: {large: %s}}`, i, bytes.Repeat([]byte("x"), kibibytes<<10))
	}
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	f.startAs(config, Options{Registerer: registry, Namespaces: []string{f.ns}, FullObjects: true},
		rule("one", "resource: {version: v1, resource: configmaps}\nmatch: {names: [c-1]}\noptOut: Forbidden\npatch: {merge: {metadata: {labels: {a: b}}}}"),
		rule("audit", "resource: {version: v1, resource: configmaps}\nmode: Audit\noptOut: Forbidden\npatch: {merge: {metadata: {labels: {c: d}}}}\nmatch: {}"))
	testcluster.Eventually(t, soon, func() error {
		if n := sumOf(t, registry, "rectifier_fixes_total", "rule=one"); n != 1 {
			return fmt.Errorf("%v objects are fixed", n)
		}
		if n := sumOf(t, registry, "rectifier_evaluations_total", "rule=audit,outcome=audit"); n < objects {
			return fmt.Errorf("%v objects are looked at", n)
		}
		return nil
	})
	f.settle("configmaps")
	counts := f.engine.metrics.counts()
	for _, rule := range []string{"one", "audit"} {
		c := counts[ruleOn{rule, "configmaps"}]
		if c.Evaluations < objects || c.Evaluations > 2*objects || time.Since(c.LastEvaluated) > time.Minute {
			t.Errorf("rule %s: %+v", rule, c)
		}
	}
	if c := counts[ruleOn{"one", "configmaps"}]; c.Patch != 1 || c.Pass < 1 || c.NoMatch < objects-1 || c.Fixed != 1 || c.Failed != 0 {
		t.Errorf("rule one: %+v", c)
	}
	list, err := f.client.Resource(configmaps).Namespace(f.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantSum(t, registry, "rectifier_cached_objects", "resource=configmaps,namespace="+f.ns, float64(len(list.Items)))
	size := sumOf(t, registry, "rectifier_cached_bytes", "resource=configmaps,namespace="+f.ns)
	if content := float64(objects * kibibytes << 10); size < content || size > 2*content {
		t.Errorf("the cache takes %v bytes for a content of %v", size, content)
	}
	wantSum(t, registry, "rectifier_rules", "mode=enforce", 1)
	wantSum(t, registry, "rectifier_rules", "mode=audit", 1)
	wantSum(t, registry, "rectifier_rule_reload_success", "", 1)
	wantSum(t, registry, "workqueue_depth", "name=rectifier", 0)
	if n := sumOf(t, registry, "workqueue_adds_total", "name=rectifier"); n < objects {
		t.Errorf("%v objects were added to the queue", n)
	}
	for _, name := range []string{"workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"} {
		all := seriesOf(t, registry, name, "name=rectifier")
		if len(all) != 1 || all[0].GetHistogram().GetSampleCount() < objects {
			t.Errorf("%s: %v", name, all)
		}
	}
	for _, name := range []string{"workqueue_retries_total", "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds"} {
		if len(seriesOf(t, registry, name, "name=rectifier")) != 1 {
			t.Errorf("there is no %s", name)
		}
	}
}

// A reload takes the series of a rule that has gone with it, and leaves the others.
func TestAReloadDropsSeries(t *testing.T) {
	f := newFixture(t)
	f.configMap("c")
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	stays, goes := sets("stays", "a", "merge", "c"), sets("goes", "b", "merge", "c")
	f.startAs(config, Options{Registerer: registry}, stays, goes)
	f.eventually(soon, configmaps, "c", "yes", "data", "b")
	testcluster.Eventually(t, soon, func() error {
		if n := sumOf(t, registry, "rectifier_fixes_total", ""); n != 2 {
			return fmt.Errorf("%v fixes are counted", n)
		}
		return nil
	})
	f.reload(stays)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if hasLabels(m, "rule=goes") {
				t.Errorf("%s has a series of a rule that has gone", family.GetName())
			}
		}
	}
	wantSum(t, registry, "rectifier_fixes_total", "rule=stays", 1)
	wantSum(t, registry, "rectifier_rules", "mode=enforce", 1)
	f.engine.KeepRules(fmt.Errorf("cannot be read"))
	wantSum(t, registry, "rectifier_rule_reload_success", "", 0)
	f.reload(stays)
	wantSum(t, registry, "rectifier_rule_reload_success", "", 1)
}

// No watch is timed: an engine that has nothing to do but watch leaves no long
// times behind.
func TestWatchesAreNotTimed(t *testing.T) {
	f := newFixture(t)
	registry := prometheus.NewRegistry()
	clientmetrics.Register(registry)
	watching := func() float64 { return sumOf(t, registry, "rest_client_requests_total", "code=200,method=GET") }
	timed := func() (n uint64) {
		for _, m := range seriesOf(t, registry, "rest_client_request_duration_seconds", "method=GET") {
			n += m.GetHistogram().GetSampleCount()
		}
		return n
	}
	before, timedBefore := watching(), timed()
	f.start(rule("mark", mark))
	f.wantReadyz(soon, "configmaps: synced", "namespaces: synced")
	f.stop()
	requests, times := watching()-before, float64(timed()-timedBefore)
	if watches := requests - times; requests < 4 || watches < 2 {
		t.Errorf("of %v requests %v were timed: that leaves no watch", requests, times)
	}
}
