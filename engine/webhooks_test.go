package engine

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// webhook registers one that judges what the engine sends.
func (f *fixture) webhook(kind testwebhook.Kind, judge func(*testwebhook.Request) testwebhook.Answer) *testwebhook.Webhook {
	f.Helper()
	return testwebhook.Start(f, f.client, testwebhook.Options{Kind: kind, Namespace: f.ns, User: f.user}, judge)
}

func admit(*testwebhook.Request) testwebhook.Answer { return testwebhook.Answer{} }

// sets is a rule that sets a key of the ConfigMaps of some names.
func sets(name, key, patchType string, objects ...string) string {
	patch := map[string]string{
		"merge": `{merge: {data: {%s: "yes"}}}`,
		"json":  `{json: [{op: add, path: /data/%s, value: "yes"}]}`,
	}[patchType]
	return rule(name, `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [`+strings.Join(objects, ", ")+`]}
condition: object.data[?'`+key+`'] != optional.of('yes')
patch: `+fmt.Sprintf(patch, key))
}

func (f *fixture) configMap(names ...string) {
	f.Helper()
	for _, name := range names {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {there: already}}`, name)
	}
}

// requestsTo returns the engine's requests to one ConfigMap, in order: all but
// those that met a newer version, which cost a webhook nothing.
func (f *fixture) requestsTo(name string) []controlplane.AuditEvent {
	f.Helper()
	return slices.DeleteFunc(f.requestsAbout("configmaps", name), func(e controlplane.AuditEvent) bool {
		return e.ResponseStatus.Reason == string(metav1.StatusReasonConflict)
	})
}

// requestsAbout returns the engine's requests to one object, in order.
func (f *fixture) requestsAbout(resource, name string) []controlplane.AuditEvent {
	f.Helper()
	return slices.DeleteFunc(f.requests(resource), func(e controlplane.AuditEvent) bool { return e.ObjectRef.Name != name })
}

// wantGrowingWaits fails if there were more requests than rounds with holds between
// them that double, for the time from the first to the last; each is how many
// requests a round may take, which rules that are sent one by one have more of.
func (f *fixture) wantGrowingWaits(sent []controlplane.AuditEvent, each int) {
	f.Helper()
	if len(sent) == 0 {
		f.Error("no request: nothing is put to the test")
		return
	}
	took := sent[len(sent)-1].RequestReceivedTimestamp.Sub(sent[0].RequestReceivedTimestamp)
	if most := each * (2 + int(math.Log2(float64(took/firstHold)+1))); len(sent) > most {
		f.Errorf("%d requests about %s in %v, want at most %d", len(sent), sent[0].ObjectRef.Name, took, most)
	}
}

// wantPaced fails if requests about an object came sooner after one another than
// what is refused, or not kept, is held: 1 s, 2 s, 4 s, however long the test takes.
// What met a conflict is no attempt: there was one for each of the changes at most
// that came on the way.
func (f *fixture) wantPaced(resource, name string, changes int) {
	f.Helper()
	sent := f.requestsAbout(resource, name)
	attempts := slices.DeleteFunc(slices.Clone(sent), func(e controlplane.AuditEvent) bool { return e.ResponseStatus.Code == http.StatusConflict })
	if conflicts := len(sent) - len(attempts); conflicts > changes {
		f.Errorf("%d requests to %s met a conflict, with %d changes", conflicts, name, changes)
	}
	if len(attempts) == 0 {
		f.Errorf("no request to %s: nothing is put to the test", name)
	}
	f.wantGaps(attempts, firstHold)
}

// wantGaps fails if requests came sooner after one another than after first, twice
// that, and so on.
func (f *fixture) wantGaps(attempts []controlplane.AuditEvent, first time.Duration) {
	f.Helper()
	for i, wait := 1, first; i < len(attempts); i, wait = i+1, 2*wait {
		if gap := attempts[i].RequestReceivedTimestamp.Sub(attempts[i-1].RequestReceivedTimestamp); gap < wait {
			f.Errorf("%s: attempt %d came %v after the one before, want at least %v", attempts[i].ObjectRef.Name, i+1, gap, wait)
		}
	}
}

// wantTold fails unless exactly these Events are on an object, each told once:
// client-go makes one Event of repetitions, but the log has them all.
func (f *fixture) wantTold(logs *lines, name string, want ...string) {
	f.Helper()
	for _, w := range want {
		f.wantEvent(name, w)
	}
	got := f.eventsOn(name)
	if len(got) != len(want) {
		f.Errorf("%d Events on %s, want %d: %q", len(got), name, len(want), got)
	}
	warnings := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return !strings.HasPrefix(w, "Warning") })
	told := slices.DeleteFunc(logs.matching("Rule failed"), func(l string) bool { return !strings.Contains(l, f.ns+"/"+name+`"`) })
	if len(told) != len(warnings) {
		f.Errorf("%d failures of %s in the log, want %d:\n%s", len(told), name, len(warnings), strings.Join(told, ""))
	}
}

// wantLines bounds what is logged about an object.
func (f *fixture) wantLines(logs *lines, name string, atMost int) {
	f.Helper()
	if got := logs.matching(f.ns + "/" + name + `"`); len(got) > atMost {
		f.Errorf("%d log lines about %s, want at most %d:\n%s", len(got), name, atMost, strings.Join(got, ""))
	}
}

// ADM-01: what a webhook denies without naming a field is tried again with
// growing waits, told once, and mended by itself when the webhook has gone;
// whatever code it likes best.
func TestADenialThatPasses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	w := f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		switch r.Name {
		case "not-found": // something that the webhook looked for, not the object
			return testwebhook.Deny(404, "no such tenant")
		case "conflict": // with what the webhook wants
			return testwebhook.Deny(409, "there is one already")
		case "throttled":
			out := testwebhook.Deny(429, "not so fast")
			out.Denied.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
			return out
		}
		return testwebhook.Deny(400, "not on Sundays")
	})
	f.configMap("merged", "patched", "both", "not-found", "conflict", "throttled")
	f.start(sets("by-json", "json", "json", "patched", "both"),
		sets("by-merge", "merge", "merge", "merged", "both", "not-found", "conflict", "throttled"))

	testcluster.Eventually(t, soon, func() error {
		if got := len(f.requestsTo("merged")); got < 3 {
			return fmt.Errorf("%d attempts", got)
		}
		return nil
	})
	f.wantPaced("configmaps", "merged", 0)
	const json, merge = "Warning PatchRefused: rule by-json: ", "Warning PatchRefused: rule by-merge: "
	f.wantTold(logs, "merged", merge+"the API server refuses the change: Bad Request")
	f.wantTold(logs, "patched", json)
	f.wantTold(logs, "both", json, merge)
	f.wantTold(logs, "not-found", merge+"the API server refuses the change: Not Found")
	f.wantTold(logs, "conflict", merge+"the API server refuses the change: Conflict")
	f.wantTold(logs, "throttled", "Warning PatchDelayed: rule by-merge: the change waits for the API server: the API server answered 429")

	w.Unregister()
	const step = 3 * 4 * firstHold // the last wait is not longer than all of those before
	for _, name := range []string{"merged", "both", "not-found", "conflict", "throttled"} {
		f.eventually(step, configmaps, name, "yes", "data", "merge")
	}
	for _, name := range []string{"patched", "both"} {
		f.eventually(step, configmaps, name, "yes", "data", "json")
	}
	for _, name := range []string{"merged", "patched", "not-found", "conflict", "throttled"} {
		f.wantGaps(f.requestsTo(name), map[bool]time.Duration{true: firstRetry, false: firstHold}[name == "throttled"])
	}
	f.wantGrowingWaits(f.requestsTo("both"), 3) // together, and each for itself
	for name, most := range map[string]int{"merged": 2, "patched": 2, "both": 4, "not-found": 2, "conflict": 2, "throttled": 2} {
		f.wantLines(logs, name, most)
	}
}

// ADM-02: a denial with 403 is one of the object, not a missing permission.
func TestADenialThatLooksLikeAMissingPermission(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	w := f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		if r.Name == "denied" {
			return testwebhook.Deny(403, "not this one")
		}
		return testwebhook.Answer{}
	})
	f.grant("configmaps", "list", "watch", "patch")
	f.grantIn("events.k8s.io", "events", "create", "patch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	f.configMap("denied")
	f.startAs(config, Options{}, sets("mark", "fixed", "merge", "denied", "free"))
	f.wantTold(logs, "denied", "Warning PatchRefused: rule mark: the API server refuses the change: Forbidden")
	if _, body := f.readyz(); strings.Contains(body, "forbidden: patch") {
		t.Errorf("a denial is taken for a missing permission:\n%s", body)
	}
	f.configMap("free")
	f.eventually(soon, configmaps, "free", "yes", "data", "fixed")
	f.wantPaced("configmaps", "denied", 0)

	w.Judge(admit)
	f.eventually(soon, configmaps, "denied", "yes", "data", "fixed")
	f.wantLines(logs, "denied", 2)
}

// ADM-03: what a webhook sets back at once is told as it is: not as a fix.
func TestAWebhookThatSetsBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	f.webhook(testwebhook.Mutating, func(r *testwebhook.Request) testwebhook.Answer {
		if !r.Wants("lost") {
			return testwebhook.Answer{}
		}
		return r.SetBack("lost", r.Name == "unmoved")
	})
	f.configMap("alone", "both", "unmoved")
	f.start(sets("a-lost", "lost", "merge", "alone", "both", "unmoved"), sets("b-kept", "kept", "merge", "both"))
	const lost = "Warning Ineffective: rule a-lost: the server accepted the change but did not keep it"
	f.eventually(soon, configmaps, "both", "yes", "data", "kept")
	f.wantEvent("alone", lost)
	f.wantEvent("unmoved", lost)
	f.settle("configmaps")
	f.wantTold(logs, "alone", lost)
	f.wantTold(logs, "unmoved", lost)
	f.wantTold(logs, "both", lost, "Normal Rectified: changed by rule b-kept")
	for _, name := range []string{"alone", "both", "unmoved"} {
		f.wantPaced("configmaps", name, 0)
	}

	for i := range 5 {
		for _, name := range []string{"alone", "unmoved"} {
			f.merge(configmaps, name, fmt.Sprintf(`{"data":{"touched":"%d"}}`, i))
		}
	}
	f.settle("configmaps")
	for _, name := range []string{"alone", "unmoved"} {
		f.wantTold(logs, name, lost)
		f.wantPaced("configmaps", name, 5)
	}
}

// ADM-04: what a webhook writes in another form is not written for ever.
func TestAWebhookThatNormalises(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	f.webhook(testwebhook.Mutating, func(r *testwebhook.Request) testwebhook.Answer {
		tier := r.New.GetLabels()["tier"]
		if tier == strings.ToUpper(tier) {
			return testwebhook.Answer{}
		}
		return testwebhook.Answer{Patch: []map[string]any{{"op": "replace", "path": "/metadata/labels/tier", "value": strings.ToUpper(tier)}}}
	})
	f.configMap("shouting")
	f.start(rule("tier", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [shouting]}
condition: object.metadata.?labels.?tier.orValue('') != 'gold'
patch: {merge: {metadata: {labels: {tier: gold}}}}`))
	f.eventually(soon, configmaps, "shouting", "GOLD", "metadata", "labels", "tier")
	f.settle("configmaps")
	f.wantTold(logs, "shouting", "Warning Ineffective: rule tier")
	f.wantPaced("configmaps", "shouting", 0)
	for i := range 5 {
		f.merge(configmaps, "shouting", fmt.Sprintf(`{"data":{"touched":"%d"}}`, i))
	}
	f.settle("configmaps")
	f.wantTold(logs, "shouting", "Warning Ineffective: rule tier")
	f.wantPaced("configmaps", "shouting", 5)
}

// SEC-01: what a webhook says may be anything, so none of it is published:
// neither its warnings nor its reasons.
func TestWhatAWebhookSaysIsNotPublished(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		// What the webhook got, as it would quote it.
		says := fmt.Sprint("do not use s3cr3t: ", r.New.Object["data"])
		out := testwebhook.Answer{Warnings: []string{says}}
		switch r.Name {
		case "denied":
			out.Denied = &metav1.Status{Status: metav1.StatusFailure, Code: 400, Message: says}
		case "reasoned": // controller-runtime before 0.15 puts the text there
			out.Denied = &metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReason(says)}
		case "caused":
			out.Denied = &metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: says,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseType(says), Message: says, Field: "data"}, {Type: metav1.CauseType(says), Message: says}}}}
		case "delayed":
			out.Denied = &metav1.Status{Status: metav1.StatusFailure, Code: 503, Message: says}
		}
		return out
	})
	names := []string{"admitted", "denied", "reasoned", "caused", "delayed"}
	for _, name := range names {
		f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: %s}, data: {password: czNjcjN0}}`, name)
	}
	f.start(rule("label", `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {fixed: "yes"}}}}`))
	f.eventually(soon, secrets, "admitted", "yes", "metadata", "labels", "fixed")
	f.wantEvent("admitted", "Normal Rectified")
	f.wantEvent("denied", "Warning PatchRefused: rule label: the API server refuses the change: Bad Request")
	f.wantEvent("reasoned", "Warning PatchRefused: rule label: the API server refuses the change: Forbidden")
	f.wantEvent("caused", "Warning PatchRefused: rule label: the API server refuses the change: Invalid")
	f.wantEvent("delayed", "Warning PatchDelayed: rule label: the change waits for the API server: Service Unavailable")
	published := logs.matching("")
	if len(logs.matching("Rule failed")) < 4 {
		t.Errorf("the log is not seen:\n%s", strings.Join(published, ""))
	}
	for _, name := range names {
		published = append(published, f.eventsOn(name)...)
	}
	for _, p := range published {
		if strings.Contains(p, "czNjcjN0") || strings.Contains(p, "s3cr3t") {
			t.Errorf("published: %s", p)
		}
	}
}

// ADM-05: a webhook that is out of order delays what it guards, with growing
// waits, and nothing else.
func TestAWebhookOutOfOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	w := f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		return map[string]testwebhook.Answer{"fails": {Code: 500}, "hangs-up": {HangUp: true}}[r.Name]
	})
	f.configMap("fails", "hangs-up")
	began := time.Now()
	f.start(sets("mark", "fixed", "merge", "fails", "hangs-up", "free"))
	for _, name := range []string{"fails", "hangs-up"} {
		f.wantEvent(name, "Warning PatchDelayed: rule mark: the change waits for the API server: InternalError")
	}
	f.configMap("free")
	f.eventually(soon, configmaps, "free", "yes", "data", "fixed")
	testcluster.Eventually(t, soon, func() error {
		if got := len(f.requestsTo("fails")); got < slowAttempts+4 {
			return fmt.Errorf("%d attempts", got)
		}
		return nil
	})
	w.Judge(admit)
	outage := time.Since(began)
	for _, name := range []string{"fails", "hangs-up"} {
		f.eventually(outage+10*time.Second, configmaps, name, "yes", "data", "fixed")
		f.wantTold(logs, name, "Warning PatchDelayed", "Normal Rectified")
		f.wantGaps(f.requestsTo(name), firstRetry)
		f.wantLines(logs, name, 3)
	}
}

// ADM-06: of a composed request, the webhook's objection keeps back what it is
// about and nothing else; the rest comes when the objection has gone.
func TestAWebhookThatDeniesOneOfTwo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	w := f.webhook(testwebhook.Validating, func(r *testwebhook.Request) testwebhook.Answer {
		if r.Wants("bad") {
			return testwebhook.Deny(400, "no")
		}
		return testwebhook.Answer{}
	})
	f.configMap("first", "last")
	f.start(sets("a-bad", "bad", "merge", "first"), sets("b-good", "good", "merge", "first", "last"), sets("c-bad", "bad", "json", "last"))
	for _, name := range []string{"first", "last"} {
		f.eventually(soon, configmaps, name, "yes", "data", "good")
	}
	f.wantTold(logs, "first", "Warning PatchRefused: rule a-bad", "Normal Rectified: changed by rule b-good")
	f.wantTold(logs, "last", "Warning PatchRefused: rule c-bad", "Normal Rectified: changed by rule b-good")
	w.Judge(admit)
	for _, name := range []string{"first", "last"} {
		f.eventually(soon, configmaps, name, "yes", "data", "bad")
		f.wantGrowingWaits(f.requestsTo(name), 3)
	}
}

// ADM-07: what is refused does not wait behind what has no effect, even where
// that leaves the object as it was and no watch event comes.
func TestARuleWithoutEffectKeepsNoneBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	f.webhook(testwebhook.Mutating, func(r *testwebhook.Request) testwebhook.Answer {
		if r.Wants("bad") {
			return testwebhook.Deny(400, "no")
		}
		if r.Wants("lost") {
			return r.SetBack("lost", true)
		}
		return testwebhook.Answer{}
	})
	f.configMap("web")
	f.start(sets("a-bad", "bad", "merge", "web"), sets("b-lost", "lost", "merge", "web"), sets("c-good", "good", "merge", "web"))
	f.eventually(soon, configmaps, "web", "yes", "data", "good")
	f.wantTold(logs, "web", "Warning PatchRefused: rule a-bad", "Warning Ineffective: rule b-lost", "Normal Rectified: changed by rule c-good")
	f.wantGrowingWaits(f.requestsTo("web"), 4)
}
