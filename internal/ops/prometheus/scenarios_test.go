package prometheus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testwebhook"
)

// scenario is a cause, and the alerts that must fire because of it. run ends when
// the cause has gone and they have resolved.
type scenario struct {
	name   string
	alerts []string
	// also are alerts that may fire beside them, since the cause is theirs too.
	also []string
	// standIn says why the metrics are those of something else than a Rectifier.
	standIn string
	run     func(*lab)
}

// noTarget is what is there before the first scenario; it has no job.
var noTarget = scenario{name: "there is no target", alerts: []string{"RectifierDown"}}

var scenarios = []scenario{
	{
		name: "two instances at work",
		run:  work,
	},
	{
		name: "instances end", alerts: []string{"RectifierInstanceDown", "RectifierDown"}, also: []string{"RectifierNoLeader"},
		run: endInstances,
	},
	{
		name: "the lease is taken away", alerts: []string{"RectifierNoLeader"}, also: []string{"RectifierInstanceDown"},
		run: takeLease,
	},
	{
		name: "two instances without leader election", alerts: []string{"RectifierTwoLeaders"},
		run: func(l *lab) {
			l.rule("follow", follow)
			l.run()
			l.atRest(0)
			other := l.run()
			l.fires("RectifierTwoLeaders")
			l.gone(other)
			l.resolves("RectifierTwoLeaders")
		},
	},
	{
		name: "a worker panics", alerts: []string{"RectifierPanics"}, standIn: "nothing that rules, objects or the API server can do is known to cause a panic",
		run: panicked,
	},
	{
		name: "rules break", alerts: []string{"RectifierRulesInvalid", "RectifierReloadFailed"},
		run: breakRules,
	},
	{
		name: "a right to patch is missing", alerts: []string{"RectifierRuleParked"}, also: []string{"RectifierPatchErrors"},
		run: func(l *lab) {
			l.rule("follow", follow)
			user := fmt.Sprintf("limited-%d", users.Add(1))
			l.grant(user, "list,watch configmaps", "create,patch events.events.k8s.io")
			l.runAs(user, l.kubeconfig(user))
			l.atRest(0)
			l.drift("one", "1")
			l.fires("RectifierRuleParked")
			l.grant(user, "list,watch,patch configmaps", "create,patch events.events.k8s.io")
			l.is("one", "1")
			l.resolves("RectifierRuleParked")
		},
	},
	{
		name: "resources cannot be read", alerts: []string{"RectifierResourceUnavailable", "RectifierResourceNotServed"},
		run: missResources,
	},
	{
		name: "a webhook sets changes back", alerts: []string{"RectifierIneffective"}, also: []string{"RectifierPatchErrors"},
		run: func(l *lab) {
			hook := withWebhook(l, testwebhook.Mutating, func(r *testwebhook.Request) testwebhook.Answer { return r.SetBack("is", true) })
			l.fires("RectifierIneffective")
			hook.Unregister()
			l.resolves("RectifierIneffective")
		},
	},
	{
		name: "a webhook refuses changes", alerts: []string{"RectifierPatchErrors", "RectifierRuleFailing"},
		run: func(l *lab) {
			hook := withWebhook(l, testwebhook.Validating, func(*testwebhook.Request) testwebhook.Answer { return testwebhook.Deny(400, "not on Sundays") })
			l.fires("RectifierPatchErrors", "RectifierRuleFailing")
			hook.Unregister()
			l.resolves("RectifierPatchErrors", "RectifierRuleFailing")
		},
	},
	{
		name: "a rule does not converge, and one fails", alerts: []string{"RectifierNotConverging", "RectifierRuleFailing"},
		run: misbehave,
	},
	{
		name: "somebody sets a change back", alerts: []string{"RectifierContention"},
		run: contend,
	},
	{
		name: "the API server is out of order", alerts: []string{"RectifierAPIErrors"}, also: []string{"RectifierResourceUnavailable"},
		run: outOfOrder,
	},
	{
		name: "writes are far too slow", alerts: []string{"RectifierQueueBacklog", "RectifierSlowFixes", "RectifierWorkerStuck"},
		run: crawl,
	},
	{
		name: "Events may not be written", alerts: []string{"RectifierEventsDropped"},
		run: func(l *lab) {
			l.rule("follow", follow)
			user := fmt.Sprintf("limited-%d", users.Add(1))
			l.grant(user, "list,watch,patch configmaps")
			l.runAs(user, l.kubeconfig(user))
			l.atRest(0)
			l.keepDrifting()
			l.fires("RectifierEventsDropped")
			l.grant(user, "list,watch,patch configmaps", "create,patch events.events.k8s.io")
			l.resolves("RectifierEventsDropped")
		},
	},
}

// work is what no alert is about: a leader and a standby, with fixes all the time,
// a rule that only reports, objects that ask to be left alone, and rules that are
// changed.
func work(l *lab) {
	l.rule("follow", follow)
	l.rule("audits", "mode: Audit"+follow)
	l.run("--leader-elect", "--lease-name", l.ns+"/work")
	l.run("--leader-elect", "--lease-name", l.ns+"/work")
	l.keepDrifting()
	l.atRest(10 * time.Second)
	l.rule("audits", "mode: Audit\noptOut: Forbidden"+follow)
	l.atRest(20 * time.Second)
}

// endInstances ends the standby, then the leader.
func endInstances(l *lab) {
	l.rule("follow", follow)
	leader := l.run("--leader-elect", "--lease-name", l.ns+"/ends")
	l.leads(leader)
	standby := l.run("--leader-elect", "--lease-name", l.ns+"/ends")
	l.atRest(0)
	standby.kill()
	l.fires("RectifierInstanceDown")
	leader.kill()
	l.fires("RectifierDown")
	l.resolves("RectifierInstanceDown")
	l.gone(standby)
	l.gone(leader)
	l.run("--leader-elect", "--lease-name", l.ns+"/ends-not")
	l.resolves("RectifierDown", "RectifierNoLeader")
}

// leads waits until Prometheus has seen that an instance leads.
func (l *lab) leads(i *instance) {
	l.Helper()
	testcluster.Eventually(l, time.Minute, func() error {
		found, err := l.query(fmt.Sprintf(`rectifier_leader{job=%q, instance=%q} == 1`, l.job, i.address))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s does not lead", i.user)
		}
		return err
	})
}

// takeLease holds the Lease as somebody else who goes on renewing it. The leader
// ends, and the standby cannot take over.
func takeLease(l *lab) {
	l.rule("follow", follow)
	lease := l.ns + "/taken"
	leader := l.run("--leader-elect", "--lease-name", lease)
	l.leads(leader)
	l.run("--leader-elect", "--lease-name", lease)
	l.atRest(0)
	for {
		l.apply(leases, map[string]any{
			"kind": "Lease", "metadata": map[string]any{"name": "taken", "namespace": l.ns},
			"spec": map[string]any{
				"holderIdentity": "somebody else", "leaseDurationSeconds": int64(15), "leaseTransitions": int64(7),
				"acquireTime": metav1.NowMicro().Format(metav1.RFC3339Micro), "renewTime": metav1.NowMicro().Format(metav1.RFC3339Micro),
			},
		})
		now, err := l.alertsNow(l.job)
		if err != nil {
			l.Fatal(err)
		}
		if slices.Contains(now, "RectifierNoLeader") {
			break
		}
		if time.Since(l.rested) > time.Minute {
			l.Fatalf("there is still a leader; alerts: %q", now)
		}
		time.Sleep(time.Second) // as a leader does
	}
	l.fires("RectifierNoLeader")
	l.gone(leader)
	l.resolves("RectifierNoLeader")
}

// panicked serves what a Rectifier that has panicked would.
func panicked(l *lab) {
	e := newExporter(l)
	l.scrape(&instance{address: e.address})
	e.say("rectifier_leader 1")
	l.atRest(0)
	e.say("rectifier_leader 1", `rectifier_panics_total{resource="deployments.apps"} 1`)
	l.fires("RectifierPanics")
	l.resolves("RectifierPanics")
}

// breakRules has a rule that does not compile, then a link that leads nowhere.
func breakRules(l *lab) {
	l.rule("follow", follow)
	l.run()
	l.atRest(0)
	l.rule("broken", "resource: {version: v1, resource: configmaps}\ncondition: object.data.(\npatch: {merge: {data: {}}}")
	l.fires("RectifierRulesInvalid")
	l.removeRule("broken")
	l.resolves("RectifierRulesInvalid")
	if err := os.Symlink("nowhere.yaml", filepath.Join(l.rules, "broken.yaml")); err != nil {
		l.Fatal(err)
	}
	l.fires("RectifierReloadFailed")
	l.removeRule("broken")
	l.resolves("RectifierReloadFailed")
}

// missResources adds rules on what may not be read, and on what is not there.
func missResources(l *lab) {
	l.rule("follow", follow)
	user := fmt.Sprintf("limited-%d", users.Add(1))
	rights := []string{"list,watch,patch configmaps", "create,patch events.events.k8s.io", "list,watch,patch widgets.alerts.example.io"}
	l.grant(user, rights...)
	l.runAs(user, l.kubeconfig(user))
	l.atRest(0)
	l.rule("secret", "resource: {version: v1, resource: secrets}\npatch: {merge: {metadata: {labels: {a: b}}}}\nmatch: {namespaces: [NS]}")
	l.rule("absent", "resource: {group: alerts.example.io, version: v1, resource: widgets}\npatch: {merge: {metadata: {labels: {a: b}}}}\nmatch: {namespaces: [NS]}")
	l.fires("RectifierResourceUnavailable", "RectifierResourceNotServed")
	l.grant(user, append(rights, "list,watch,patch secrets")...)
	l.create(crds, `
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: widgets.alerts.example.io}
spec:
  group: alerts.example.io
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`)
	l.resolves("RectifierResourceUnavailable", "RectifierResourceNotServed")
}

// withWebhook has objects drift under a webhook.
func withWebhook(l *lab, kind testwebhook.Kind, judge func(*testwebhook.Request) testwebhook.Answer) *testwebhook.Webhook {
	l.rule("follow", follow)
	i := l.run()
	hook := testwebhook.Start(l, l.client, testwebhook.Options{Kind: kind, Namespace: l.ns, User: i.user}, judge)
	l.atRest(0)
	l.keepDrifting()
	return hook
}

// misbehave has objects on which one rule never ends, and another cannot be
// evaluated.
func misbehave(l *lab) {
	l.rule("counts", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [counted]}
condition: object.?data.want.hasValue()
patch: {merge: {data: {want: "${string(int(object.data.want) + 1)}"}}}`)
	l.rule("fails", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [failed]}
condition: int(object.data.want) > 3
patch: {merge: {data: {want: "3"}}}`)
	l.run()
	l.atRest(0)
	l.drift("counted", "1")
	l.drift("failed", "word")
	l.fires("RectifierNotConverging", "RectifierRuleFailing")
	l.drift("counted", "1")
	l.resolves("RectifierNotConverging", "RectifierRuleFailing")
}

// contend sets a change back until the rule gives way. Then the rule is narrowed.
func contend(l *lab) {
	l.rule("follow", follow)
	l.run("--contention-count", "2")
	l.drift("fought-for", "0")
	l.is("fought-for", "0")
	l.atRest(0)
	for n := 1; ; n++ {
		if err := l.setBack("fought-for"); err != nil {
			l.Fatal(err)
		}
		held, err := l.query(fmt.Sprintf(`rectifier_contended_objects{job=%q} > 0`, l.job))
		if err != nil {
			l.Fatal(err)
		}
		if len(held) > 0 {
			break
		}
		if time.Since(l.rested) > time.Minute {
			l.Fatalf("set back %d times, and the rule does not give way", n)
		}
		time.Sleep(200 * time.Millisecond) // it may be the rule's turn
	}
	l.fires("RectifierContention")
	l.rule("follow", strings.Replace(follow, "[NS]", "[NS], names: [others]", 1))
	l.resolves("RectifierContention")
}

// outOfOrder has everything but changes answered with 503, and open watches cut.
func outOfOrder(l *lab) {
	l.rule("follow", follow)
	f := newFront(l)
	l.runAs("out-of-order", f.kubeconfig())
	l.keepDrifting()
	l.atRest(0)
	f.fail(true)
	l.fires("RectifierAPIErrors")
	f.fail(false)
	l.resolves("RectifierAPIErrors", "RectifierResourceUnavailable")
}

// crawl lets two hundred objects drift at a write in 20 s. Then there is an
// instance without that limit.
func crawl(l *lab) {
	l.rule("follow", follow)
	slow := l.run("--qps", "0.05", "--burst", "1")
	l.atRest(0)
	for n := range 200 {
		l.drift(fmt.Sprintf("slow-%d", n), "1")
	}
	l.fires("RectifierQueueBacklog", "RectifierSlowFixes", "RectifierWorkerStuck")
	l.gone(slow)
	l.run()
	l.is("slow-199", "1")
	l.resolves("RectifierQueueBacklog", "RectifierSlowFixes", "RectifierWorkerStuck")
}
