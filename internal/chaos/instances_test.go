package chaos

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var instanceFaults = []scenario{
	{name: "leader-stopped", fault: "the leader stopped (SIGTERM) with 60 objects queued", run: stopLeader},
	{name: "leader-killed", fault: "the leader killed (SIGKILL) while 200 objects drift", long: true, run: killLeader},
	{name: "leader-frozen", fault: "the leader frozen (SIGSTOP) for longer than its lease with 500 objects queued", long: true, run: freezeLeader},
	{name: "leader-cannot-renew", fault: "the leader's renewals refused for longer than the renew deadline with 500 objects queued", long: true, run: blockRenewals},
	{name: "leader-api-server-away", fault: "API server away for 35 s under a leader and a standby; the leader started again meanwhile", long: true, run: leadWithoutAPIServer},
	{name: "lease-deleted-and-overwritten", fault: "the Lease deleted, taken by a stranger, given to the standby", long: true, run: meddleWithLease},
	{name: "overlapping-rules-on-both", fault: "rules that overlap, on both instances and after a restart", long: true, run: sameResultOnBoth},
}

// stopLeader: what is queued is drained, the lease released, and the standby
// takes over without waiting for it to run out.
func stopLeader(t *trial) {
	l := t.shared()
	leader, standby := l.pair(l.ruleFiles(follow), slowly...)
	l.drift(60, "a")
	l.atLeastRight(time.Minute, 5, "a")
	l.onlyFollowed(standby)
	leader.signal(syscall.SIGTERM)
	took := leader.wantExit(40*time.Second, 0)
	exited := time.Now()
	standby.leads(leaseDuration - renewDeadline + syncTime)
	l.saw("drained and released in %.1f s; the standby leads %.1f s later", took.Seconds(), time.Since(exited).Seconds())
	l.allRight(time.Minute, 60, "a")
	l.drift(5, "b")
	l.atLeastRight(time.Minute, 5, "b")
	writes := l.oneWriterAtATime(leader, standby)

	released := l.audited(func(e *controlplane.AuditEvent) bool {
		return e.ObjectRef.Resource == "leases" && e.Verb == "update" && strings.Contains(string(e.RequestObject), `"holderIdentity":""`)
	}, leader)
	if len(released) != 1 {
		l.Fatalf("the lease was released %d times", len(released))
	}
	if last := writes[leader.user]; len(last) > 0 && last[len(last)-1].StageTimestamp.After(released[0].RequestReceivedTimestamp) {
		l.Error("the leader wrote after it had released the lease")
	}
}

// killLeader: the standby takes over when the lease has run out.
func killLeader(t *trial) {
	l := t.shared()
	leader, standby := l.pair(l.ruleFiles(follow))
	l.drift(200, "a")
	l.allRight(2*time.Minute, 200, "a")
	l.onlyFollowed(standby)
	l.drift(100, "b")
	leader.signal(syscall.SIGKILL)
	killed := time.Now()
	l.drift(200, "b") // the rest
	l.allRight(3*time.Minute, 200, "b")
	writes := l.oneWriterAtATime(leader, standby)[standby.user]
	if len(writes) == 0 {
		l.Fatal("the standby wrote nothing")
	}
	took := writes[0].RequestReceivedTimestamp.Sub(killed)
	l.saw("first write of the standby %.1f s after the leader was killed", took.Seconds())
	if took > failOver+syncTime {
		l.Errorf("fail-over took %v", took)
	}
}

// freezeLeader: the frozen leader wakes up with a full queue while the other is
// at the same objects.
func freezeLeader(t *trial) {
	l := t.shared()
	leader, standby := l.pair(l.ruleFiles(follow), slowly...)
	l.drift(500, "a")
	l.atLeastRight(2*time.Minute, 20, "a")
	leader.signal(syscall.SIGSTOP)
	frozen := time.Now()
	standby.leads(failOver + syncTime)
	done, err := l.right("a")
	if err != nil {
		l.Fatal(err)
	}
	l.atLeastRight(2*time.Minute, done+20, "a") // the other is at work
	woken := time.Now()
	leader.signal(syscall.SIGCONT)
	took := leader.wantExit(20*time.Second, 3)
	l.saw("frozen for %.1f s; ended %.1f s after it was woken", woken.Sub(frozen).Seconds(), took.Seconds())
	l.allRight(3*time.Minute, 500, "a")
	l.oneWriterAtATime(leader, standby)
	late := l.audited(func(e *controlplane.AuditEvent) bool { return anyPatch(e) && e.RequestReceivedTimestamp.After(woken) }, leader)
	l.saw("%d PATCHes of the woken one arrived, none was accepted", len(late))
	if !strings.Contains(strings.Join(leader.log.matching(""), ""), "rectifier: the lease is lost") {
		l.Error("it does not say why it ended")
	}
}

// blockRenewals takes the right to the Lease away from the leader, and nothing
// else.
func blockRenewals(t *trial) {
	l := t.shared()
	group, revoke := l.mayLead()
	rules := l.ruleFiles(follow)
	leader := l.candidateAs([]string{group}, rules, slowly...)
	leader.leads(time.Minute)
	standby := l.candidate(rules, slowly...)
	standby.standsBy()
	l.drift(500, "a")
	l.atLeastRight(2*time.Minute, 20, "a")
	revoke()
	leader.wantExit(failOver+syncTime, 3)
	done, err := l.right("a")
	if err != nil {
		l.Fatal(err)
	}
	l.allRight(3*time.Minute, 500, "a")
	l.oneWriterAtATime(leader, standby)

	renewals := l.audited(func(e *controlplane.AuditEvent) bool {
		return e.ObjectRef.Resource == "leases" && e.ResponseStatus.Code/100 == 2 && e.Verb != "get"
	}, leader)
	patches := l.audited(anyPatch, leader)
	renewed, last := renewals[len(renewals)-1].RequestReceivedTimestamp, patches[len(patches)-1].RequestReceivedTimestamp
	l.saw("last PATCH %.1f s after the last renewal, with %d of 500 objects right", last.Sub(renewed).Seconds(), done)
	// Timestamps are taken on the server, some time after the leader's.
	if last.Sub(renewed) > renewDeadline+2*time.Second {
		l.Errorf("a PATCH was sent %v after the last renewal", last.Sub(renewed))
	}
	if done == 500 {
		l.Error("nothing was queued any more: the trial shows nothing")
	}
	if lines := leader.log.matching("The lease cannot be reached"); len(lines) > 5 {
		l.Errorf("%d lines tell of the lease", len(lines))
	}
}

// leadWithoutAPIServer: the leader ends, and is started again as a Deployment
// would, the standby stays; neither is busy. Somebody leads soon after the
// server is back.
func leadWithoutAPIServer(t *trial) {
	const away = 35 * time.Second
	l := t.own(controlplane.Options{})
	rules := l.ruleFiles(follow)
	leader, standby := l.pair(rules)
	l.drift(50, "a")
	l.allRight(2*time.Minute, 50, "a")
	l.onlyFollowed(standby)
	if err := l.cp.KillAPIServer(); err != nil {
		l.Fatal(err)
	}
	killed := time.Now()
	before := leader.cpu()
	standbyBefore := standby.cpu()
	took := leader.wantExit(renewDeadline+syncTime, 3)
	busy(l, "the leader", leader.cpu()-before, took)
	standby.wantReadyz(30*time.Second, 503, "[-] leader election: standby; the lease")
	if code, _, err := standby.get("/healthz"); err != nil || code != 200 {
		l.Errorf("/healthz of the standby: %d, %v", code, err)
	}
	third := l.candidate(rules) // the API server is not there yet
	l.pause(time.Until(killed.Add(away)))
	busy(l, "the standby", standby.cpu()-standbyBefore, time.Since(killed))
	if lines := len(standby.log.matching("The lease cannot be reached")); lines > 5 {
		l.Errorf("the standby logged %d times that it cannot reach the lease", lines)
	}
	if !standby.runs() || !third.runs() {
		l.Fatal("a standby has ended")
	}
	if err := l.cp.StartAPIServer(l.Context()); err != nil {
		l.Fatal(err)
	}
	back := time.Now()
	l.drift(50, "b")
	l.allRight(leaseDuration+failOver+time.Minute, 50, "b")
	l.saw("all right %.1f s after it was back", time.Since(back).Seconds())
	l.oneWriterAtATime(leader, standby, third)
	// Whoever does not lead now has not led at all.
	for _, p := range []*process{standby, third} {
		if _, body, err := p.get("/readyz"); err == nil && strings.Contains(body, "[+] leader election: standby") {
			l.onlyFollowed(p)
		}
	}
}

// busy fails the trial if a process computed for more than a fifth of some time.
func busy(l *lab, who string, cpu, during time.Duration) {
	l.Helper()
	l.saw("%s computed %.2f s in %.0f s", who, cpu.Seconds(), during.Seconds())
	if cpu > during/5 {
		l.Errorf("%s computed %v in %v", who, cpu, during)
	}
}

// meddleWithLease: whatever is done to the Lease, while objects drift all the
// time, there are never two writers, and there is one again soon.
func meddleWithLease(t *trial) {
	const n = 20
	l := t.shared()
	rules := l.ruleFiles(follow)
	leader, standby := l.pair(rules)
	all := []*process{leader, standby}
	l.drift(n, "begin")
	stopDrift := l.keepDrifting(n)

	if err := l.client.Resource(leases).Namespace(l.ns).Delete(l.Context(), "rectifier", metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
	l.pause(renewDeadline) // both have looked, and either has created it
	l.saw("Lease deleted: the leader goes on: %v", leader.runs())
	if !leader.runs() {
		leader.wantExit(time.Second, 3)
		leader, standby = standby, l.candidate(rules)
		all = append(all, standby)
	}
	leader.leads(failOver + syncTime)
	standby.standsBy()

	l.merge(leases, l.ns, "rectifier", `{"spec":{"holderIdentity":"a stranger"}}`)
	took := leader.wantExit(8*time.Second, 3)
	l.saw("a stranger took it: the leader ended after %.1f s", took.Seconds())
	standby.leads(failOver + syncTime)
	leader, standby = standby, l.candidate(rules)
	all = append(all, standby)
	standby.wantReadyz(time.Minute, 200, "standby; leader is "+leader.identity()+"\n")

	l.merge(leases, l.ns, "rectifier", fmt.Sprintf(`{"spec":{"holderIdentity":%q}}`, standby.identity()))
	took = leader.wantExit(8*time.Second, 3)
	l.saw("given to the standby: the leader ended after %.1f s", took.Seconds())
	standby.leads(failOver + syncTime)

	stopDrift()
	l.drift(n, "end")
	l.allRight(2*time.Minute, n, "end")
	l.oneWriterAtATime(all...)
}

// overlapping are rules that write the same fields: two undo each other, of two
// others the one that comes first in the order of rules leaves nothing to do
// for the second.
var overlapping = []string{`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: tier-b}
spec:
  resource: {version: v1, resource: configmaps}
  match: {namespaces: [NS], names: ["fight-*"]}
  patch: {merge: {metadata: {labels: {tier: b}}}}
`, `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: tier-a}
spec:
  resource: {version: v1, resource: configmaps}
  match: {namespaces: [NS], names: ["fight-*"]}
  patch: {merge: {metadata: {labels: {tier: a}}}}
`, `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: default-late}
spec:
  resource: {version: v1, resource: configmaps}
  match: {namespaces: [NS], names: ["chain-*"]}
  condition: "!has(object.data.owner)"
  patch: {merge: {data: {owner: late}}}
`, `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: default-early}
spec:
  resource: {version: v1, resource: configmaps}
  match: {namespaces: [NS], names: ["chain-*"]}
  condition: "!has(object.data.owner)"
  patch: {merge: {data: {owner: early}}}
`}

// sameResultOnBoth (FGT-06): an instance, its successor and one that was started
// again make the same of rules that overlap, and write as often.
func sameResultOnBoth(t *trial) {
	l := t.shared()
	rules := l.ruleFiles(overlapping...)
	first, second := l.pair(rules)
	var results []string
	look := func(p *process, round int) {
		l.Helper()
		fight, chain := fmt.Sprintf("fight-%d", round), fmt.Sprintf("chain-%d", round)
		for _, name := range []string{fight, chain} {
			l.create(configmaps, l.ns, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"x": "y"},
			}})
		}
		testcluster.Eventually(l, time.Minute, func() error {
			if len(p.log.matching(l.ns+"/"+fight)) == 0 || len(p.log.matching(l.ns+"/"+chain)) == 0 {
				return fmt.Errorf("%s has not told of both objects", p.user)
			}
			return nil
		})
		l.pause(2 * time.Second) // more writes would come at once
		result := ""
		for _, name := range []string{fight, chain} {
			u, err := l.client.Resource(configmaps).Namespace(l.ns).Get(l.Context(), name, metav1.GetOptions{})
			if err != nil {
				l.Fatal(err)
			}
			writes := l.audited(func(e *controlplane.AuditEvent) bool { return anyPatch(e) && e.ObjectRef.Name == name }, p)
			kind, _, _ := strings.Cut(name, "-")
			result += fmt.Sprintf("%s: labels %v, data %v, %d writes; ", kind, u.GetLabels(), u.Object["data"], len(writes))
			if len(writes) > 1 {
				l.Errorf("%d writes to %s", len(writes), name)
			}
		}
		results = append(results, result)
	}
	look(first, 1)
	first.signal(syscall.SIGTERM)
	first.wantExit(40*time.Second, 0)
	second.leads(time.Minute)
	look(second, 2)
	third := l.candidate(rules) // the first one, started again
	third.standsBy()
	second.signal(syscall.SIGTERM)
	second.wantExit(40*time.Second, 0)
	third.leads(time.Minute)
	look(third, 3)
	l.saw("%s", strings.TrimSuffix(results[0], "; "))
	if !strings.Contains(results[0], "owner:early") {
		l.Errorf("rules do not run in the order of their names: %s", results[0])
	}
	for i, r := range results[1:] {
		if r != results[0] {
			l.Errorf("instance %d made %q, the first one %q", i+2, r, results[0])
		}
	}
}
