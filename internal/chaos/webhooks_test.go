package chaos

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

var webhookFaults = []scenario{
	{
		name: "webhook-undoes", fault: "a mutating webhook undoes each fix, so that not even the version moves",
		run: webhookFault{
			kind:    testwebhook.Mutating,
			judge:   func(r *testwebhook.Request) testwebhook.Answer { return r.SetBack("is", true) },
			warning: "Ineffective", lastsFor: 4 * time.Second, growing: time.Second, mendedAtResync: true,
		}.run,
	},
	{
		name: "webhook-normalises", fault: "a mutating webhook writes each fix in another form", long: true,
		run: webhookFault{
			kind: testwebhook.Mutating,
			judge: func(r *testwebhook.Request) testwebhook.Answer {
				is, _, _ := unstructured.NestedString(r.New.Object, "data", "is")
				return testwebhook.Answer{Patch: []map[string]any{{"op": "replace", "path": "/data/is", "value": strings.ToUpper(is)}}}
			},
			warning: "Ineffective", lastsFor: 4 * time.Second, growing: time.Second, mendedAtResync: true,
		}.run,
	},
	{
		name: "webhook-refuses", fault: "a validating webhook refuses all fixes",
		run: webhookFault{
			kind:    testwebhook.Validating,
			judge:   func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Deny(400, "not on Sundays") },
			warning: "PatchRefused", lastsFor: 4 * time.Second, growing: time.Second,
		}.run,
	},
	{
		name: "webhook-says-gone", fault: "a validating webhook refuses with the words of the API server: each object is gone, or has changed", long: true,
		run: webhookFault{
			kind: testwebhook.Validating,
			judge: func(r *testwebhook.Request) testwebhook.Answer {
				out := testwebhook.Deny(404, "no such tenant")
				if strings.HasSuffix(r.Name, "1") {
					out = testwebhook.Deny(409, "there is one already")
				}
				out.Denied.Details = &metav1.StatusDetails{Name: r.Name, Kind: r.Resource.Resource}
				return out
			},
			// The watch has half a minute to confirm it.
			warning: "PatchRefused", warnedWithin: time.Minute, requests: 3,
		}.run,
	},
	{
		name: "webhook-refuses-every-second", fault: "a validating webhook refuses every second request", long: true,
		run: webhookFault{
			kind: testwebhook.Validating, judge: everySecond(), requests: 3, works: true,
		}.run,
	},
	{
		name: "webhook-hangs", fault: "a validating webhook hangs (failurePolicy Fail)", long: true,
		run: webhookFault{
			kind: testwebhook.Validating, timeout: time.Second,
			judge:   func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Answer{Hang: true} },
			warning: "PatchDelayed", warnedWithin: 2 * time.Minute, growing: 5 * time.Millisecond,
		}.run,
	},
	{
		name: "webhook-hangs-ignored", fault: "a validating webhook hangs (failurePolicy Ignore)", long: true,
		run: webhookFault{
			kind: testwebhook.Validating, policy: admissionregistrationv1.Ignore, timeout: time.Second,
			judge:    func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Answer{Hang: true} },
			requests: 1, works: true,
		}.run,
	},
	{
		name: "webhook-down", fault: "a validating webhook is down: connections are refused (failurePolicy Fail)",
		run: webhookFault{
			kind: testwebhook.Validating, down: true,
			warning: "PatchDelayed", lastsFor: 4 * time.Second, growing: 5 * time.Millisecond,
		}.run,
	},
	{
		name: "webhook-garbage", fault: "a validating webhook answers garbage", long: true,
		run: webhookFault{
			kind:    testwebhook.Validating,
			judge:   func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Answer{Body: "<html>s3cr3t</html>"} },
			warning: "PatchDelayed", lastsFor: 4 * time.Second, growing: 5 * time.Millisecond,
		}.run,
	},
}

// webhookFault is what a webhook does to the fixes of 20 objects, and what that
// may cost.
type webhookFault struct {
	kind    testwebhook.Kind
	judge   func(*testwebhook.Request) testwebhook.Answer
	down    bool
	policy  admissionregistrationv1.FailurePolicyType // Fail unless it says otherwise
	timeout time.Duration

	warning        string        // the reason of the Warning that each object has, once
	warnedWithin   time.Duration // 20 s where it is 0
	lastsFor       time.Duration // after the Warnings
	growing        time.Duration // the first wait between two requests for an object; the next ones are twice as long each
	requests       int           // or: for each object, at most, until the webhook goes
	works          bool          // all is right in spite of it
	mendedAtResync bool          // and not by waiting
}

// bystander is a rule on what no webhook is asked about.
const bystander = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: bystander}
spec:
  resource: {version: v1, resource: serviceaccounts}
  match: {namespaces: [NS]}
  condition: object.metadata.?annotations.?want.hasValue() && object.metadata.annotations.?is.orValue('') != object.metadata.annotations.want
  patch: {merge: {metadata: {annotations: {is: "${object.metadata.annotations.want}"}}}}
`

var serviceaccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

func (f webhookFault) run(t *trial) {
	if f.down {
		testcluster.RequireVersion(t, "1.28", "matchConditions, so that the webhook does not stop the test itself")
	}
	const n = 20
	l := t.shared()
	p := l.start(func(o *engine.Options) {
		if f.mendedAtResync {
			o.Resync = time.Second
		}
	}, follow, bystander)
	l.create(serviceaccounts, l.ns, l.object(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bystander"}}`))
	l.drift(n, "right")
	l.allRight(time.Minute, n, "right")
	judge := f.judge
	if judge == nil {
		judge = func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Answer{} }
	}
	w := testwebhook.Start(l, l.client, testwebhook.Options{Kind: f.kind, Namespace: l.ns, User: p.user, FailurePolicy: f.policy, Timeout: f.timeout}, judge)
	if f.down {
		w.Stop()
	}
	before, began, earlier := p.rest(), time.Now(), p.patches()
	l.drift(n, "new")
	slowest := p.bystander("during")
	if f.warning != "" {
		p.warned(max(f.warnedWithin, 20*time.Second), n, f.warning)
	}
	if f.works {
		l.allRight(time.Minute, n, "new")
	}
	l.pause(f.lastsFor)
	slowest = max(slowest, p.bystander("later"))
	requests, worst := 0, 0
	for name, sent := range p.patches() {
		requests += sent - earlier[name]
		worst = max(worst, sent-earlier[name])
	}
	l.saw("%d requests for %d objects in %.0f s, at most %d for one; a fix of another resource took %.2f s",
		requests, n, time.Since(began).Seconds(), worst, slowest.Seconds())
	limit := f.requests
	if f.growing > 0 {
		limit = 2 + int(math.Log2(1+float64(time.Since(began)/f.growing)))
	}
	if worst > limit {
		l.Errorf("%d requests for one object, want at most %d", worst, limit)
	}

	w.Unregister()
	took := l.allRight(2*time.Minute, n, "new")
	l.saw("webhook gone: all right after %.1f s", took.Seconds())
	if f.warning != "" {
		p.warned(time.Second, n, f.warning) // no more than before
	}
	p.judge(before, bounds{"patch configmaps": n * (limit + 4), "patch serviceaccounts": 2, "watch *": 20, "discovery": anyNumber,
		"create *": anyNumber, "patch events": anyNumber})
}

// everySecond refuses every second request about each object, the first of them
// included.
func everySecond() func(*testwebhook.Request) testwebhook.Answer {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(r *testwebhook.Request) testwebhook.Answer {
		mu.Lock()
		defer mu.Unlock()
		if seen[r.Name]++; seen[r.Name]%2 == 1 {
			return testwebhook.Deny(400, "try again")
		}
		return testwebhook.Answer{}
	}
}

// bystander drifts something that the fault is not about, and returns how long the
// patient took to put it right: at most as long as a busy machine may need.
func (p *patient) bystander(want string) time.Duration {
	p.Helper()
	p.merge(serviceaccounts, p.ns, "bystander", fmt.Sprintf(`{"metadata":{"annotations":{"want":%q}}}`, want))
	began := time.Now()
	testcluster.Eventually(p, 5*time.Second, func() error {
		u, err := p.client.Resource(serviceaccounts).Namespace(p.ns).Get(p.Context(), "bystander", metav1.GetOptions{})
		if err == nil && u.GetAnnotations()["is"] != want {
			err = fmt.Errorf("the bystander is not right")
		}
		return err
	})
	return time.Since(began)
}

// patches counts the patient's requests to ConfigMaps by name, but for those
// that met a newer version.
func (p *patient) patches() map[string]int {
	p.Helper()
	out := map[string]int{}
	for _, e := range p.requests(configmaps.Resource) {
		if e.Verb == "patch" && e.ResponseStatus.Reason != string(metav1.StatusReasonConflict) {
			out[e.ObjectRef.Name]++
		}
	}
	return out
}

var events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// warned waits until n objects have a Warning, and fails the trial if one has
// several, a repeated one, or one for another reason.
func (l *lab) warned(timeout time.Duration, n int, reason string) {
	l.Helper()
	var told map[string][]string
	testcluster.Eventually(l, timeout, func() error {
		list, err := l.client.Resource(events).Namespace(l.ns).List(l.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		told = map[string][]string{}
		for _, e := range list.Items {
			if e.Object["type"] == "Warning" {
				about, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
				told[about] = append(told[about], fmt.Sprint(e.Object["reason"], ": ", e.Object["note"], " ", e.Object["series"]))
			}
		}
		if len(told) < n {
			return fmt.Errorf("%d of %d objects have a Warning", len(told), n)
		}
		return nil
	})
	for name, warnings := range told {
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], reason+": ") || !strings.HasSuffix(warnings[0], "<nil>") {
			l.Errorf("%s has the Warnings %q, want one: %s", name, warnings, reason)
		}
		if strings.Contains(strings.Join(warnings, ""), "s3cr3t") {
			l.Errorf("the webhook is quoted: %q", warnings)
		}
	}
}
