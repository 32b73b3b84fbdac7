package engine

import (
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

// Rules that undo each other write nothing, also where the rules are sent one by
// one because another one is refused.
func TestRulesThatUndoEachOtherBesideARefusedOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		if r.Wants("bad") {
			return testwebhook.Deny(400, "no")
		}
		return testwebhook.Answer{}
	})
	f.configMap("cm")
	turns := func(name, value string) string {
		return rule(name, `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [cm]}
condition: object.data[?'turned'] != optional.of('`+value+`')
patch: {merge: {data: {turned: "`+value+`"}}}`)
	}
	f.start(turns("a-one", "1"), turns("b-two", "2"), sets("c-bad", "bad", "merge", "cm"), sets("d-good", "good", "merge", "cm"))
	f.eventually(soon, configmaps, "cm", "yes", "data", "good")
	f.settle("configmaps")
	if n := f.mentioning("configmaps", `"turned"`); n != 0 {
		t.Errorf("%d writes of rules that undo each other", n)
	}
	if accepted, _ := f.writes("configmaps"); accepted != 1 {
		t.Errorf("%d writes were accepted, want 1", accepted)
	}
	f.wantTold(logs, "cm", "Warning NotConverging: rule a-one", "Warning NotConverging: rule b-two",
		"Warning PatchRefused: rule c-bad", "Normal Rectified: changed by rule d-good")
}

// A decision that begins with the rules one by one tells of errors, too, and of
// what Audit rules would do.
func TestRulesOneByOneTellWhatTheyFind(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {count: "5"}}`)
	f.start(rule("fails", `
resource: {version: v1, resource: configmaps}
condition: int(object.data.count) < 3
patch: {merge: {data: {count: "3"}}}`), rule("audits", `
resource: {version: v1, resource: configmaps}
mode: Audit
condition: object.data.count == 'many'
patch: {merge: {data: {count: "3"}}}`))
	f.wantReadyz(soon, "configmaps: synced, ")
	f.quietQueue()
	s := newObjectState(f.get(configmaps, "cm").GetUID())
	s.split = true
	f.engine.objects.keep(f.keyOf("cm"), s)

	f.merge(configmaps, "cm", `{"data":{"count":"many"}}`)
	f.wantEvent("cm", "Warning EvaluationFailed: rule fails")
	f.wantTold(logs, "cm", "Warning EvaluationFailed: rule fails")
	if got := logs.matching("Would be fixed (mode Audit)"); len(got) != 1 {
		t.Errorf("%d lines tell of the Audit rule:\n%s", len(got), strings.Join(got, ""))
	}
}

// What is held in a decision is not sent again in it, however long the requests
// take.
func TestADecisionSendsNothingTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	var sent attempts
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") {
			sent.note()
			time.Sleep(firstHold + 50*time.Millisecond)
			return answerWith(r, apierrors.NewBadRequest("no"))
		}
		return next.RoundTrip(r)
	})
	e, err := New(f.options(config, Options{}, rule("label", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {metadata: {labels: {team: web}}}}`), rule("scale", `
resource: {group: apps, version: v1, resource: deployments}
patch: {subresource: scale, merge: {spec: {replicas: 2}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	key := Key{Resource: deployments.GroupResource(), Namespace: f.ns, Name: "web"}
	d := &decision{
		Engine: e, policy: e.policy.Load(), key: key, view: view{deployments, f.get(deployments, "web")}, now: time.Now(),
		lookups: &lookups{Engine: e, object: key}, replicasPath: []string{"spec", "replicas"}, hasStatus: true,
	}
	if err := d.writeTogether(t.Context(), d.policy.rules.For(deployments)); err != nil {
		t.Fatal(err)
	}
	if n := len(sent.times()); n != 2 {
		t.Errorf("%d requests, want one for each rule", n)
	}
	if wait := time.Until(d.recheck); d.recheck.IsZero() || wait > firstHold {
		t.Errorf("the object is due again in %v, the first hold ends before", wait)
	}
}

// A hold ends when it should, however long the request took that it began with.
func TestAHoldAfterASlowRequest(t *testing.T) {
	f := newFixture(t)
	f.configMap("cm")
	const takes = 3 * firstHold
	var sent attempts
	config := f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if f.patches(r, "cm") {
			sent.note()
			if len(sent.times()) == 1 {
				time.Sleep(takes)
				return answerWith(r, apierrors.NewBadRequest("no"))
			}
		}
		return next.RoundTrip(r)
	})
	f.startAs(config, Options{}, sets("mark", "fixed", "merge", "cm"))
	f.eventually(soon, configmaps, "cm", "yes", "data", "fixed")
	times := sent.times()
	if waited := times[1].Sub(times[0]) - takes; waited < firstHold || waited >= takes {
		t.Errorf("tried again %v after the refusal, want %v", waited, firstHold)
	}
}
