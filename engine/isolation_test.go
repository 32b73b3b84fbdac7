package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
	"github.com/rectifier-dev/rectifier/rules"
)

// roundTripper is a function that does what stands between the engine and the
// API server.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// between gives the config of an engine's user whose requests pass what is
// given: next sends one on to the real API server.
func (f *fixture) between(pass func(r *http.Request, next http.RoundTripper) (*http.Response, error)) *rest.Config {
	f.Helper()
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		f.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return pass(r, next) })
	})
	return config
}

// answerWith makes an answer in the API server's place.
func answerWith(r *http.Request, failure *apierrors.StatusError) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	status := failure.ErrStatus
	body, err := json.Marshal(&status)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if seconds, ok := apierrors.SuggestsClientDelay(failure); ok {
		header.Set("Retry-After", strconv.Itoa(seconds))
	}
	return &http.Response{
		StatusCode: int(status.Code), Header: header, Request: r, ContentLength: int64(len(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

var outOfOrder = apierrors.NewInternalError(errors.New("out of order"))

const mark = `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`

func testRules(t *testing.T, ruleYAML string) *rules.Set {
	t.Helper()
	set, problems := rules.Load(rules.Source{Name: "rule.yaml", Data: []byte(ruleYAML)})
	if len(problems) > 0 {
		t.Fatal(problems[0].Detail())
	}
	return set
}

// patches reports whether a request patches a ConfigMap of the test.
func (f *fixture) patches(r *http.Request, name string) bool {
	return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/namespaces/"+f.ns+"/configmaps/"+name)
}

// counted is the sum over a counter's labels.
func counted(t *testing.T, g prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// attempts counts requests, and when they came.
type attempts struct {
	mu sync.Mutex
	at []time.Time
}

func (a *attempts) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
}

func (a *attempts) times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Time(nil), a.at...)
}

// RTY-09: an object whose PATCH always fails, or meets a conflict, is tried ever
// less often, and one that the server wants later not before that, although all
// of them change all the time. The others are fixed meanwhile.
func TestBackOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	const retryAfter = 2 * time.Second
	var failing, disputed, throttled attempts
	var mended atomic.Bool
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		switch {
		case mended.Load():
		case f.patches(r, "failing"):
			failing.note()
			return answerWith(r, outOfOrder)
		case f.patches(r, "disputed"):
			disputed.note()
			return answerWith(r, apierrors.NewConflict(configmaps.GroupResource(), "disputed", errors.New("somebody else was faster")))
		case f.patches(r, "throttled"):
			throttled.note()
			return answerWith(r, apierrors.NewTooManyRequests("later", int(retryAfter/time.Second)))
		}
		return next.RoundTrip(r)
	})
	f.startAs(config, Options{}, rule("mark", mark))
	busy := []string{"failing", "disputed", "throttled"}
	f.configMap(busy...)
	for i := range 20 {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other-%d}}`, i)
	}
	for i := range 20 {
		f.eventually(soon, configmaps, fmt.Sprintf("other-%d", i), "yes", "data", "fixed")
	}
	touches := 0
	testcluster.Eventually(t, time.Minute, func() error {
		touches++
		for _, name := range busy {
			f.merge(configmaps, name, fmt.Sprintf(`{"data":{"touched":"%d"}}`, touches))
		}
		if a, b, c := len(failing.times()), len(disputed.times()), len(throttled.times()); a < 9 || b < 4 || c < 3 {
			return fmt.Errorf("there have been %d, %d and %d attempts", a, b, c)
		}
		return nil
	})

	for name, of := range map[string]*attempts{"failing": &failing, "disputed": &disputed} {
		times := of.times()
		elapsed := times[len(times)-1].Sub(times[0])
		// 5 ms, 10 ms, 20 ms …: the n-th retry is not before 5 ms · (2^n - 1).
		if most := 2 + int(math.Log2(float64(elapsed/firstRetry)+1)); len(times) > most {
			t.Errorf("%s: %d attempts in %v, of at most %d", name, len(times), elapsed, most)
		}
		t.Logf("%s: %d attempts in %v; it changed %d times meanwhile", name, len(times), elapsed, touches)
	}
	times := throttled.times()
	for i := range times[1:] {
		if gap := times[i+1].Sub(times[i]); gap < retryAfter {
			t.Errorf("attempt %d comes %v after the one before; the server wanted %v", i+1, gap, retryAfter)
			break
		}
	}
	f.wantEvent("failing", "Warning PatchDelayed")
	mended.Store(true)
	for _, name := range busy {
		f.eventually(time.Minute, configmaps, name, "yes", "data", "fixed")
	}

	// EVT-01: one Event tells of the failure, and one line.
	warnings := 0
	for _, e := range f.eventsOn("failing") {
		if strings.HasPrefix(e, "Warning") {
			warnings++
		}
	}
	if got := logs.matching("Sync failed"); warnings != 1 || len(got) != 1 {
		t.Errorf("%d Warnings, and %d lines:\n%s", warnings, len(got), strings.Join(got, ""))
	}
}

// RTY-04: writes go out at the configured rate, not slower; what else the engine
// asks for does not count.
func TestTheRateOfWrites(t *testing.T) {
	f := newFixture(t)
	const objects, qps, burst = 250, 100, 50
	began := time.Now()
	for i := range objects {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	pace := time.Since(began) // of this machine, for as many writes
	var sent attempts
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps/") {
			sent.note()
		}
		return next.RoundTrip(r)
	})
	opts := f.options(config, Options{}, rule("mark", mark))
	opts.QPS, opts.Burst = qps, burst
	f.run(opts)
	testcluster.Eventually(t, time.Minute, func() error {
		if n := len(sent.times()); n < objects {
			return fmt.Errorf("%d of %d writes", n, objects)
		}
		return nil
	})
	times := sent.times()
	took := times[len(times)-1].Sub(times[0])
	ideal := time.Duration(objects-burst) * time.Second / qps
	t.Logf("%d writes took %v; the rate allows them in %v", objects, took, ideal)
	if took < ideal*9/10 {
		t.Errorf("%d writes took only %v: there is no limit", objects, took)
	}
	if took > 5*ideal+2*pace {
		t.Errorf("%d writes took %v: something else limits them", objects, took)
	}
	if len(times) != objects {
		t.Errorf("%d writes for %d objects", len(times), objects)
	}
}

// RTY-07: a panic over one object is counted and told once; the others are fixed,
// and so is this one when it can be.
func TestAPanicStopsNothing(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	registry := prometheus.NewRegistry()
	var mended atomic.Bool
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !mended.Load() && (f.patches(r, "odd") || f.patches(r, "odder")) {
			panic(errors.New("content of the object"))
		}
		return next.RoundTrip(r)
	})
	for _, name := range []string{"odd", "odder"} {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}`, name)
	}
	for i := range 98 {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	f.startAs(config, Options{Registerer: registry}, rule("mark", mark))
	for i := range 98 {
		f.eventually(soon, configmaps, fmt.Sprintf("c-%d", i), "yes", "data", "fixed")
	}
	panics := func() float64 { return counted(t, registry, "rectifier_panics_total") }
	testcluster.Eventually(t, soon, func() error {
		if n := panics(); n < 12 {
			return fmt.Errorf("%v panics so far", n)
		}
		return nil
	})
	if n := panics(); n > 40 {
		t.Errorf("%v panics: there is no back-off", n)
	}
	if got := logs.matching(`"Panic"`); len(got) != 1 {
		t.Errorf("the stack is logged %d times:\n%s", len(got), strings.Join(got, ""))
	} else if stack := strings.Join(logs.matching("isolation_test.go"), ""); !strings.Contains(stack, "TestAPanicStopsNothing") {
		t.Errorf("it does not tell where that was:\n%s", stack)
	}
	for _, object := range []string{"odd", "odder"} {
		line := fmt.Sprintf(`object="%s/%s"`, f.ns, object)
		n := 0
		for _, l := range logs.matching("Sync failed") {
			if strings.Contains(l, line) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d lines tell of %s", n, object)
		}
	}
	if got := logs.matching("content of the object"); len(got) > 0 {
		t.Errorf("what the panic says is logged:\n%s", strings.Join(got, ""))
	}
	mended.Store(true)
	f.eventually(time.Minute, configmaps, "odd", "yes", "data", "fixed")
	f.eventually(time.Minute, configmaps, "odder", "yes", "data", "fixed")
}

// A panic in an event handler does not end the process, and the object of the
// event is looked at.
func TestAPanicInAHandler(t *testing.T) {
	logs := captureLogs(t)
	registry := prometheus.NewRegistry()
	e := &Engine{queue: newQueue(1, nil), metrics: newMetrics(registry)}
	defer e.queue.ShutDown()
	p := newPolicy(testRules(t, rule("mark", mark)), nil)
	p.lookups[configmaps] = append(p.lookups[configmaps], nil) // whatever is asked of it panics
	e.policy.Store(p)
	f := &fixture{T: t, ns: "default"}
	o, err := projection.Of(f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: odd}}`), projection.Whole())
	if err != nil {
		t.Fatal(err)
	}
	e.handler(configmaps).OnAdd(o, false)
	if key := take(t, e.queue); key.Name != "odd" {
		t.Errorf("%v is enqueued", key)
	}
	if n := counted(t, registry, "rectifier_panics_total"); n != 1 {
		t.Errorf("%v panics are counted", n)
	}
	if got := logs.matching(`object="default/odd"`); len(got) != 1 {
		t.Errorf("%d lines tell of it", len(got))
	}
}

// A webhook that hangs on one resource does not keep another one waiting.
func TestAHangingWebhookHoldsUpItsOwnResourceOnly(t *testing.T) {
	f := newFixture(t)
	for i := range 8 {
		f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: s-%d}}`, i)
	}
	var asked attempts
	w := testwebhook.Start(f, f.client, testwebhook.Options{
		Kind: testwebhook.Validating, Namespace: f.ns, User: f.user, Timeout: 30 * time.Second,
	}, func(r *testwebhook.Request) testwebhook.Answer {
		if r.Resource.Resource == "secrets" {
			asked.note()
			return testwebhook.Answer{Hang: true}
		}
		return testwebhook.Answer{}
	})
	hanging := func() int { return len(asked.times()) }
	f.start(rule("mark", mark), rule("stuck", `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {fixed: "yes"}}}}`))
	testcluster.Eventually(t, soon, func() error {
		if n := hanging(); n < DefaultWorkers/2 {
			return fmt.Errorf("%d requests hang", n)
		}
		return nil
	})
	for i := range 10 {
		name, began := fmt.Sprintf("canary-%d", i), time.Now()
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}`, name)
		f.eventually(writeTimeout/3, configmaps, name, "yes", "data", "fixed")
		t.Logf("%s was fixed after %v", name, time.Since(began))
	}
	if n := hanging(); n > DefaultWorkers/2 {
		t.Errorf("%d workers are on one resource", n)
	}
	w.Stop() // the shutdown is not to wait for it
}

// SCL-04: each of many resources works as soon as its own informer has synced;
// one whose list takes long keeps none waiting.
func TestManyResourcesAndASlowOne(t *testing.T) {
	f := newFixture(t)
	const resources = 40
	group := f.ns + ".example.io"
	f.widgetCRDs(group, resources)
	gvrOf := func(i int) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: fmt.Sprintf("widgets%d", i)}
	}
	var ruleYAML []string
	for i := range resources {
		ruleYAML = append(ruleYAML, rule(fmt.Sprintf("size-%d", i), fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets%d}
patch: {merge: {spec: {size: 7}}}`, group, i)))
		testcluster.Eventually(t, 30*time.Second, func() error {
			_, err := f.client.Resource(gvrOf(i)).Namespace(f.ns).Create(t.Context(),
				f.object(`{apiVersion: %s/v1, kind: Widget%d, metadata: {name: w}, spec: {size: 1}}`, group, i), metav1.CreateOptions{})
			return err
		})
	}
	slow := make(chan struct{})
	release := sync.OnceFunc(func() { close(slow) })
	t.Cleanup(release)
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets0") {
			select {
			case <-slow:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
	goroutines, heap := footprint()
	f.startAs(config, Options{}, ruleYAML...)
	for i := 1; i < resources; i++ {
		f.eventually(30*time.Second, gvrOf(i), "w", int64(7), "spec", "size")
	}
	f.wantReadyz(soon, "[-] "+group+"/v1/widgets0: syncing", group+"/v1/widgets1: synced, 1 object", "not ready")
	release()
	f.eventually(30*time.Second, gvrOf(0), "w", int64(7), "spec", "size")
	f.wantReadyz(soon, "\nready")
	f.settle("widgets1")
	goroutinesNow, heapNow := footprint()
	const informers = resources + 1 // Namespaces
	each := float64(goroutinesNow-goroutines) / informers
	t.Logf("per idle informer: %.1f goroutines, %d KiB of heap", each, (heapNow-heap)/informers/1024)
	if each > 20 {
		t.Errorf("%.1f goroutines per informer", each)
	}
}

// footprint is how many goroutines there are, and how many bytes are in use.
func footprint() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC() // what the first one has only finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}

// widgetCRDs makes CRDs widgets0, widgets1 … in one group.
func (f *fixture) widgetCRDs(group string, count int) {
	f.Helper()
	for i := range count {
		u := f.object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets%[2]d.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets%[2]d, singular: widget%[2]d, kind: Widget%[2]d, listKind: Widget%[2]dList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
`, group, i)
		u.SetNamespace("")
		if _, err := f.client.Resource(crds).Create(f.Context(), u, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() {
			_ = f.client.Resource(crds).Delete(context.WithoutCancel(f.Context()), u.GetName(), metav1.DeleteOptions{})
		})
	}
}
