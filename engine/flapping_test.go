package engine

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

// An object that is right for a moment between failures is tried no more often
// than one that never is, and told of no more often.
func TestAnObjectThatIsRightForAMoment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	w := f.webhook(testwebhook.Validating, func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Deny(503, "down") })
	f.configMap("cm")
	f.start(sets("mark", "fixed", "merge", "cm"))
	f.wantReadyz(soon, "configmaps: synced, ")
	for i := range 40 {
		f.merge(configmaps, "cm", fmt.Sprintf(`{"data":{"fixed":"no-%d"}}`, i))
		time.Sleep(20 * time.Millisecond)
		f.merge(configmaps, "cm", `{"data":{"fixed":"yes"}}`)
		time.Sleep(20 * time.Millisecond)
	}
	sent := f.requestsAbout("configmaps", "cm")
	if len(sent) < 3 {
		t.Fatalf("%d requests: nothing is put to the test", len(sent))
	}
	elapsed := sent[len(sent)-1].RequestReceivedTimestamp.Sub(sent[0].RequestReceivedTimestamp)
	if most := 2 + int(math.Log2(float64(elapsed/firstRetry)+1)); len(sent) > most {
		t.Errorf("%d requests in %v, of at most %d", len(sent), elapsed, most)
	}
	if got := logs.matching("Sync failed"); len(got) != 1 {
		t.Errorf("%d lines tell of it, want 1:\n%s", len(got), strings.Join(got, ""))
	}
	w.Unregister()
	f.merge(configmaps, "cm", `{"data":{"fixed":"no"}}`)
	f.eventually(soon, configmaps, "cm", "yes", "data", "fixed")
}

func (f *fixture) keyOf(configMap string) Key {
	return Key{Resource: configmaps.GroupResource(), Namespace: f.ns, Name: configMap}
}

// An outage is told in a few lines, not in one for each object.
func TestAnOutageIsToldInAFewLines(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	const n = 30
	for i := range n {
		f.configMap(fmt.Sprintf("cm-%d", i))
	}
	tried := make([]attempts, n)
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		for i := range tried {
			if f.patches(r, fmt.Sprintf("cm-%d", i)) {
				tried[i].note()
				return answerWith(r, outOfOrder)
			}
		}
		return next.RoundTrip(r)
	})
	began := time.Now()
	f.startAs(config, Options{}, rule("mark", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: ["cm-*"]}
patch: {merge: {data: {fixed: "yes"}}}`))
	testcluster.Eventually(t, 30*time.Second, func() error {
		for i := range tried {
			if len(tried[i].times()) < 2 {
				return fmt.Errorf("cm-%d has not been tried twice", i)
			}
		}
		return nil
	})
	most := failureLines + int(time.Since(began)/failureInterval)
	if got := logs.matching("Sync failed"); len(got) == 0 || len(got) > most {
		t.Errorf("%d lines tell of it, want 1 to %d:\n%s", len(got), most, strings.Join(got, ""))
	}
}

func TestFailuresAreForgottenWhenItIsQuiet(t *testing.T) {
	e := &Engine{}
	key := Key{Resource: schema.GroupResource{Resource: "configmaps"}, Name: "a"}
	s := newObjectState("uid")
	s.delays = 3
	d := &decision{Engine: e, key: key, state: s}

	began := time.Now()
	s.putOff(time.Minute, began)
	d.forgiveFailures()
	e.objects.keep(key, s)
	if !e.objects.tellFailure(key) {
		t.Error("the first failure that is logged may come after some that are not")
	}
	if want := began.Add(2 * time.Minute); s.delays != 3 || e.objects.tellFailure(key) || !d.recheck.Equal(want) {
		t.Errorf("%d failures, looked at again at %v; want 3 that have been told, and again at %v", s.delays, d.recheck, want)
	}
	s.putOff(firstRetry, began)
	if quiet := s.quietAt().Sub(began); quiet != firstRetry+minQuiet {
		t.Errorf("after a short wait it is quiet after %v", quiet)
	}
	s.putOff(time.Minute, began.Add(-2*time.Minute))
	d.forgiveFailures()
	e.objects.keep(key, s)
	if s.delays != 0 || s.told || len(e.objects.states) != 0 {
		t.Error("the failures are remembered for ever")
	}
	s.delays = 3
	s.putOff(time.Minute, began)
	d.wrote = true
	if d.forgiveFailures(); s.delays != 0 {
		t.Error("a write does not end the failures")
	}
}

// A dry run that goes on keeps no account of objects: only Once gives one.
func TestALongDryRunKeepsNoAccount(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	f.configMap("cm")
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.startAs(config, Options{DryRun: true}, sets("mark", "fixed", "merge", "cm"))
	testcluster.Eventually(t, soon, func() error {
		if len(logs.matching("Would be fixed (dry run)")) == 0 {
			return fmt.Errorf("nothing would be fixed")
		}
		return nil
	})
	f.stop()
	if n := len(f.engine.tally.wouldBe); n != 0 {
		t.Errorf("%d objects are remembered", n)
	}
}

// Informers that do not run end the engine: it is started again.
func TestInformersThatDoNotRun(t *testing.T) {
	e, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Rules: testRules(t, strings.ReplaceAll(rule("mark", mark), "NS", "a"))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.informers.Run(ctx); err != nil { // they run once
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Run(t.Context()) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the engine ended without an error")
		}
	case <-time.After(10 * time.Second):
		t.Error("the engine goes on without informers")
	}
}
