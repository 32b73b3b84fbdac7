package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

var leasesGVR = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// quick is an election that takes seconds.
var quick = electionTerms{lease: 4 * time.Second, renew: 3 * time.Second, retry: 500 * time.Millisecond}

const followRule = `
resource: {version: v1, resource: configmaps}
condition: object.?data.want.hasValue() && object.data.?is.orValue('') != object.data.want
patch: {merge: {data: {is: "${object.data.want}"}}}`

const followed = `
apiVersion: v1
kind: ConfigMap
metadata: {name: %s}
data: {want: %s}`

// candidate is one of several engines that share a lease.
type candidate struct {
	*fixture
	cancel context.CancelFunc
	ran    chan error
}

// candidate starts an engine beside those of a fixture, under a user of its own.
func (f *fixture) candidate(terms electionTerms) *candidate {
	f.Helper()
	own := *f
	own.user = fmt.Sprintf("engine-%d", users.Add(1))
	config, err := f.cp.User(own.user, "system:masters")
	if err != nil {
		f.Fatal(err)
	}
	opts := f.options(config, Options{
		Lease: types.NamespacedName{Namespace: f.ns, Name: "rectifier"}, terms: terms,
		Registerer: prometheus.NewRegistry(),
	}, rule("follow", followRule))
	if own.engine, err = New(opts); err != nil {
		f.Fatal(err)
	}
	c := &candidate{fixture: &own, ran: make(chan error, 1)}
	_, ctx := ktesting.NewTestContext(f)
	ctx, c.cancel = context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx)))
	go func() { c.ran <- c.engine.Run(ctx) }()
	f.Cleanup(func() {
		c.cancel()
		select {
		case <-c.ran:
		case <-time.After(30 * time.Second):
			f.Errorf("%s does not stop", own.user)
		}
	})
	return c
}

// end waits until Run has returned.
func (c *candidate) end(within time.Duration) error {
	c.Helper()
	select {
	case err := <-c.ran:
		c.ran <- err // for the cleanup
		return err
	case <-time.After(within):
		c.Fatalf("%s still runs after %v", c.user, within)
		return nil
	}
}

func (c *candidate) wantLeaderMetric(want string) {
	c.Helper()
	testcluster.Eventually(c, soon, func() error {
		w := httptest.NewRecorder()
		c.engine.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if !strings.Contains(w.Body.String(), "rectifier_leader "+want+"\n") {
			return fmt.Errorf("rectifier_leader is not %s", want)
		}
		return nil
	})
}

// all are the requests of the engine's user, without questions for rights and
// discovery.
func (c *candidate) all() []controlplane.AuditEvent {
	c.Helper()
	events, err := c.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return e.User.Username == c.user && e.ObjectRef.Resource != ""
	})
	if err != nil {
		c.Fatal(err)
	}
	return events
}

// Only the leader watches and writes. A standby is ready, follows the lease,
// takes new rules and takes over when the lease is released.
func TestAStandbyOnlyFollowsTheLease(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, followed, "first", "a")
	leader := f.candidate(quick)
	f.eventually(soon, configmaps, "first", "a", "data", "is")
	leader.wantReadyz(soon, "[+] leader election: leader\n", "[+] v1/configmaps: synced")
	leader.wantLeaderMetric("1")

	standby := f.candidate(quick)
	standby.wantReadyz(soon, "[+] leader election: standby; leader is "+leader.engine.election.identity+"\n",
		"[+] rules: 1 loaded, 0 invalid\n", "\nready\n")
	if code, body := standby.readyz(); code != 200 || strings.Contains(body, "configmaps") || strings.Contains(body, "discovery") {
		t.Errorf("a standby answers %d:\n%s", code, body)
	}
	standby.wantLeaderMetric("0")
	w := httptest.NewRecorder()
	standby.engine.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if strings.Contains(w.Body.String(), "rectifier_resource_state{") || strings.Contains(w.Body.String(), "rectifier_rule_parked{") {
		t.Errorf("a standby tells of resources:\n%s", w.Body)
	}
	reloaded := f.options(nil, Options{}, rule("follow", followRule), rule("mark", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [third]}
patch: {merge: {metadata: {labels: {by: second}}}}`)).Rules
	if _, err := standby.engine.SetRules(reloaded, nil); err != nil {
		t.Fatal(err)
	}
	standby.wantReadyz(soon, "[+] rules: 2 loaded, 0 invalid\n", "\nready\n")
	f.create(configmaps, followed, "second", "b")
	f.eventually(soon, configmaps, "second", "b", "data", "is")
	for _, e := range standby.all() {
		if e.ObjectRef.Resource != "leases" || e.Verb != "get" {
			t.Errorf("a standby sent %s %s", e.Verb, e.RequestURI)
		}
	}

	leader.cancel()
	if err := leader.end(20 * time.Second); err != nil {
		t.Errorf("the leader ended with %v", err)
	}
	leader.wantLeaderMetric("0")
	f.create(configmaps, followed, "third", "c")
	f.eventually(soon, configmaps, "third", "c", "data", "is")
	f.eventually(soon, configmaps, "third", "second", "metadata", "labels", "by")
	standby.wantReadyz(soon, "[+] leader election: leader\n")
	standby.wantLeaderMetric("1")
	if accepted, all := standby.writes("configmaps"); accepted != 1 || all != 1 {
		t.Errorf("the second leader sent %d writes, %d were accepted", all, accepted)
	}
}

// A leader that may not be one any more sends nothing, however much it has to
// do, and ends at once.
func TestADeposedLeaderWritesNothing(t *testing.T) {
	f := newFixture(t)
	terms := quick
	terms.lease, terms.renew, terms.retry = time.Hour, 30*time.Minute, 20*time.Minute // it does not look again by itself
	leader := f.candidate(terms)
	f.create(configmaps, followed, "first", "a")
	f.eventually(soon, configmaps, "first", "a", "data", "is")

	l := leader.engine.election
	l.mu.Lock()
	l.renewed = l.renewed.Add(-time.Hour) // as if it had been frozen
	l.mu.Unlock()
	f.create(configmaps, followed, "second", "b")
	if err := leader.end(20 * time.Second); !errors.Is(err, ErrLeaseLost) {
		t.Fatalf("Run returned %v", err)
	}
	if _, all := leader.writes("configmaps"); all != 1 {
		t.Errorf("%d writes were sent, want the first one only", all)
	}
	if held := f.get(leasesGVR, "rectifier"); leaseHolder(held) != l.identity {
		t.Errorf("a lease that was lost has been written: holder %q", leaseHolder(held))
	}
	if code, body := leader.readyz(); code != 503 || !strings.Contains(body, "[-] leader election: the lease is lost") {
		t.Errorf("readyz answers %d:\n%s", code, body)
	}
}

func leaseHolder(lease *unstructured.Unstructured) string {
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

// A write that is on its way when the lease is lost is cut off.
func TestAWriteOnItsWayIsCutOff(t *testing.T) {
	f := newFixture(t)
	leader := f.candidate(quick)
	w := testwebhook.Start(t, f.client, testwebhook.Options{
		Kind: testwebhook.Validating, Namespace: f.ns, User: leader.user, Timeout: 30 * time.Second,
	}, func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Answer{Hang: true} })
	f.create(configmaps, followed, "first", "a")
	testcluster.Eventually(t, soon, func() error {
		if w.Calls() == 0 {
			return errors.New("no write is on its way")
		}
		return nil
	})
	f.merge(leasesGVR, "rectifier", `{"spec":{"holderIdentity":"somebody else"}}`)
	if err := leader.end(20 * time.Second); !errors.Is(err, ErrLeaseLost) {
		t.Fatalf("Run returned %v", err)
	}
	testcluster.Eventually(t, 30*time.Second, func() error {
		sent := leader.requests("configmaps")
		if len(sent) == 0 {
			return errors.New("the write is still on its way")
		}
		if took := sent[0].StageTimestamp.Sub(sent[0].RequestReceivedTimestamp); took > writeTimeout*3/4 {
			t.Errorf("the write was on its way for %v: it was waited for", took)
		}
		return nil
	})
	if holder := leaseHolder(f.get(leasesGVR, "rectifier")); holder != "somebody else" {
		t.Errorf("the lease of another was written: holder %q", holder)
	}
}
