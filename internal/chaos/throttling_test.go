package chaos

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var throttlingFaults = []scenario{
	{
		name: "throttled", fault: "a priority level with one seat rejects the PATCHes (429) that others leave no room for, for 5 s",
		run: throttling{objects: 50, verb: "patch", load: 4, lasts: 5 * time.Second}.run,
	},
	{
		name: "throttled-entirely", fault: "the same with all requests for 30 s, after all connections broke", long: true,
		run: throttling{objects: 200, verb: "*", cut: true, load: 16, lasts: 30 * time.Second}.run,
	},
}

// throttling is what priority and fairness does to the patient while objects
// drift. A level without shares still serves one request at a time.
type throttling struct {
	objects int
	verb    string // of the requests that are limited
	cut     bool   // all connections break, so that watches start anew
	load    int    // how many clients there are besides
	lasts   time.Duration
}

func (f throttling) run(t *trial) {
	testcluster.RequireVersion(t, "1.30", "a priority level without seats of its own")
	n := f.objects
	l := t.own(controlplane.Options{}) // all that load is not for the others
	way := l.road()
	name, config := l.citizen()
	others, theirs := l.citizen()
	answers, sent := &answerLog{}, &traffic{}
	config.Wrap(answers.wrap)
	config.Wrap(sent.wrap)
	p := l.start(func(o *engine.Options) {
		o.Config = config
		over(way)(o)
	}, follow)
	p.user, p.traffic = name, sent
	l.drift(n, "before")
	l.allRight(time.Minute, n, "before")

	before := p.rest()
	client := l.impatient(theirs)
	lift := l.limit(client, f.verb, name, others)
	stop := l.load(client, f.load)
	if f.cut {
		way.cut()
		way.open()
	}
	l.drift(n, "after")
	if !f.cut { // else it sees no drift
		testcluster.Eventually(l, time.Minute, func() error {
			if rejected, _, _ := answers.judge(); rejected == 0 {
				return fmt.Errorf("no PATCH is rejected")
			}
			return nil
		})
	}
	l.pause(f.lasts)
	right, err := l.right("after")
	if err != nil {
		l.Fatal(err)
	}
	stop()
	lift()
	took := l.allRight(3*time.Minute, n, "after")
	rejected, early, most := answers.judge()
	l.saw("%d of %d objects right under it; %d PATCHes rejected, at most %d of one object; all right %.1f s after it was over",
		right, n, rejected, most, took.Seconds())
	if early > 0 {
		l.Errorf("%d PATCHes were sent again before their Retry-After", early)
	}
	if limit := 2 + int(time.Since(before.at)/time.Second); most > limit {
		l.Errorf("%d rejected PATCHes of one object, each of which was to wait a second at least; want at most %d", most, limit)
	}
	p.judge(before, bounds{
		"patch configmaps": n + rejected + 50,
		"watch *":          2 * attemptsWithin(time.Since(before.at)), "stream *": 2 * attemptsWithin(time.Since(before.at)), "list *": 2 * attemptsWithin(time.Since(before.at)),
		"discovery": anyNumber, "create *": anyNumber, "patch events": anyNumber,
	})
}

// citizen gives a config for a user who may do everything by RBAC. Members of
// system:masters are exempt from priority and fairness.
func (l *lab) citizen() (string, *rest.Config) {
	l.Helper()
	name := fmt.Sprintf("citizen-%d", labs.Add(1))
	config, err := l.cp.User(name)
	if err != nil {
		l.Fatal(err)
	}
	l.mayDoEverything(name)
	return name, config
}

// mayDoEverything makes a user an administrator by RBAC.
func (l *lab) mayDoEverything(user string) {
	l.Helper()
	l.create(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}, "", l.object(fmt.Sprintf(`
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":%[1]q},
 "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
 "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%[1]q}]}`, user)))
}

// limit gives two users' requests a priority level of their own, which rejects
// what it has no seat for. It returns what lifts the limit. The client is the
// second user's.
func (l *lab) limit(client *impatient, verb, user, others string) (lift func()) {
	l.Helper()
	flowcontrol := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: resource}
	}
	schemas, levels := flowcontrol("flowschemas"), flowcontrol("prioritylevelconfigurations")
	level := l.create(levels, "", l.object(fmt.Sprintf(`
{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"PriorityLevelConfiguration","metadata":{"name":%q},
 "spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0,"lendablePercent":0,"borrowingLimitPercent":0,"limitResponse":{"type":"Reject"}}}}`, user)))
	l.create(schemas, "", l.object(fmt.Sprintf(`
{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchema","metadata":{"name":%[1]q},
 "spec":{"priorityLevelConfiguration":{"name":%[1]q},"matchingPrecedence":10,"rules":[{
  "subjects":[{"kind":"User","user":{"name":%[1]q}},{"kind":"User","user":{"name":%[2]q}}],
  "resourceRules":[{"verbs":[%[3]q],"apiGroups":["*"],"resources":["*"],"namespaces":["*"],"clusterScope":true}]}]}}`, user, others, verb)))
	lift = func() {
		for _, resource := range []schema.GroupVersionResource{schemas, levels} {
			err := l.client.Resource(resource).Delete(context.WithoutCancel(l.Context()), user, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				l.Errorf("lift the limit: %v", err)
			}
		}
	}
	l.Cleanup(lift)
	testcluster.Eventually(l, time.Minute, func() error {
		client.request(l.Context(), l.ns)
		if got, _ := client.level.Load().(string); got != string(level.GetUID()) {
			return fmt.Errorf("requests have the priority level %q, not the new one", got)
		}
		return nil
	})
	return lift
}

// impatient is a client that heeds no Retry-After.
type impatient struct {
	dynamic.Interface
	level atomic.Value // the uid of the priority level that its last request had
}

func (l *lab) impatient(config *rest.Config) *impatient {
	l.Helper()
	c := &impatient{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil {
				c.level.Store(resp.Header.Get("X-Kubernetes-Pf-Prioritylevel-Uid"))
				resp.Header.Del("Retry-After")
			}
			return resp, err
		})
	})
	var err error
	if c.Interface, err = dynamic.NewForConfig(config); err != nil {
		l.Fatal(err)
	}
	return c
}

// request sends a PATCH that takes a seat and changes nothing.
func (c *impatient) request(ctx context.Context, namespace string) {
	_, _ = c.Resource(configmaps).Namespace(namespace).Patch(ctx, "cm-0", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
}

// load sends requests from a number of goroutines until stop.
func (l *lab) load(client *impatient, n int) (stop func()) {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			for ctx.Err() == nil {
				client.request(ctx, l.ns)
			}
		})
	}
	stop = func() { cancel(); running.Wait() }
	l.Cleanup(stop)
	return stop
}

// answerLog notes when PATCHes of ConfigMaps were sent, and which were to be sent again not
// before when.
type answerLog struct {
	mu       sync.Mutex
	earliest map[string]time.Time // by path
	rejected map[string]int
	early    int
}

func (a *answerLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/configmaps/") {
			return next.RoundTrip(r)
		}
		path := r.URL.Path
		a.mu.Lock()
		if time.Now().Before(a.earliest[path]) {
			a.early++
		}
		a.mu.Unlock()
		resp, err := next.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.earliest == nil {
			a.earliest, a.rejected = map[string]time.Time{}, map[string]int{}
		}
		a.earliest[path] = time.Now().Add(time.Duration(seconds) * time.Second)
		a.rejected[path]++
		return resp, err
	})
}

// judge counts the PATCHes that were rejected, those that came again too early,
// and the most that one object had.
func (a *answerLog) judge() (rejected, early, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.rejected {
		rejected += n
		most = max(most, n)
	}
	return rejected, a.early, most
}
