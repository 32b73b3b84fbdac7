package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// The times of the election that the binary has.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	failOver      = 25 * time.Second
	// syncTime is for the informers of a new leader, on a slow machine.
	syncTime = 15 * time.Second
)

// slowly are flags for a leader that is to be met with work in its queue.
var slowly = []string{"--qps", "20", "--burst", "1"}

// candidate starts an instance that takes part in the election of the lab.
func (l *lab) candidate(rules string, flags ...string) *process {
	l.Helper()
	return l.candidateAs([]string{"system:masters"}, rules, flags...)
}

func (l *lab) candidateAs(groups []string, rules string, flags ...string) *process {
	l.Helper()
	return l.launch(rules, groups, append([]string{"--leader-elect", "--lease-name", l.ns + "/rectifier"}, flags...)...)
}

// leads waits until the process leads.
func (p *process) leads(within time.Duration) {
	p.Helper()
	p.wantReadyz(within, 200, "[+] leader election: leader\n")
}

// standsBy waits until the process follows the lease of another.
func (p *process) standsBy() {
	p.Helper()
	p.wantReadyz(30*time.Second, 200, "[+] leader election: standby; leader is ")
}

// pair starts a leader and a standby.
func (l *lab) pair(rules string, flags ...string) (leader, standby *process) {
	l.Helper()
	leader = l.candidate(rules, flags...)
	leader.leads(30 * time.Second)
	standby = l.candidate(rules, flags...)
	standby.standsBy()
	return leader, standby
}

// audited returns the requests of some processes that match accepts, by when
// they arrived. All that has been answered is among them.
func (l *lab) audited(match func(*controlplane.AuditEvent) bool, of ...*process) []controlplane.AuditEvent {
	l.Helper()
	l.flushAudit()
	events, err := l.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return slices.ContainsFunc(of, func(p *process) bool { return p.user == e.User.Username }) && match(e)
	})
	if err != nil {
		l.Fatal(err)
	}
	slices.SortStableFunc(events, func(a, b controlplane.AuditEvent) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	return events
}

// flushAudit waits until the audit log holds all that was answered before.
func (l *lab) flushAudit() {
	l.Helper()
	marker := fmt.Sprintf("marker-%d", labs.Add(1))
	_, _ = l.client.Resource(configmaps).Namespace(l.ns).Get(l.Context(), marker, metav1.GetOptions{})
	testcluster.Eventually(l, 20*time.Second, func() error {
		found, err := l.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.ObjectRef.Name == marker })
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s is not in the audit log", marker)
		}
		return err
	})
}

func accepted(e *controlplane.AuditEvent) bool {
	return e.Verb == "patch" && e.ObjectRef.Resource == "configmaps" && e.ResponseStatus.Code == 200
}

func anyPatch(e *controlplane.AuditEvent) bool {
	return e.Verb == "patch" && e.ObjectRef.Resource == "configmaps"
}

// oneWriterAtATime fails the trial if, of the processes, one had a write
// accepted after another's first one had arrived. It returns the writes of each.
func (l *lab) oneWriterAtATime(of ...*process) map[string][]controlplane.AuditEvent {
	l.Helper()
	writes := map[string][]controlplane.AuditEvent{}
	var order []string
	for _, e := range l.audited(accepted, of...) {
		by := e.User.Username
		if writes[by] == nil {
			order = append(order, by)
		}
		writes[by] = append(writes[by], e)
	}
	for i := 1; i < len(order); i++ {
		before, after := writes[order[i-1]], writes[order[i]]
		last := slices.MaxFunc(before, func(a, b controlplane.AuditEvent) int { return a.StageTimestamp.Compare(b.StageTimestamp) })
		if pause := after[0].RequestReceivedTimestamp.Sub(last.StageTimestamp); pause < 0 {
			l.Errorf("%s still had a write accepted %v after the first one of %s", order[i-1], -pause, order[i])
		}
	}
	var told []string
	for _, by := range order {
		told = append(told, fmt.Sprintf("%d by %s", len(writes[by]), by))
	}
	l.saw("writes: %s; never two writers", strings.Join(told, ", then "))
	return writes
}

// onlyFollowed fails the trial if a process ever did more than follow the lease.
func (l *lab) onlyFollowed(p *process) {
	l.Helper()
	for _, e := range l.audited(func(e *controlplane.AuditEvent) bool { return e.ObjectRef.Resource != "" }, p) {
		if e.ObjectRef.Resource != "leases" {
			l.Errorf("the standby sent %s %s", e.Verb, e.RequestURI)
		}
	}
}

// identity is what the process is called in the Lease.
func (p *process) identity() string {
	p.Helper()
	for _, line := range p.log.matching("Waiting for the lease") {
		if _, rest, ok := strings.Cut(line, `identity="`); ok {
			identity, _, _ := strings.Cut(rest, `"`)
			return identity
		}
	}
	p.Fatalf("%s does not log its identity", p.user)
	return ""
}

// keepDrifting drifts one of n objects after the other until stop is called.
func (l *lab) keepDrifting(n int) (stop func()) {
	ctx, cancel := context.WithCancel(l.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if err := l.driftOne(i%n, strconv.Itoa(i)); err != nil && ctx.Err() == nil {
				l.Errorf("drift: %v", err)
				return
			}
			l.pause(20 * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// mayLead grants a group what an instance needs that leads under the rule
// follow; revoke takes away what is for the Lease.
func (l *lab) mayLead() (group string, revoke func()) {
	l.Helper()
	client, err := kubernetes.NewForConfig(l.cp.AdminConfig())
	if err != nil {
		l.Fatal(err)
	}
	group = "instances-" + l.ns
	subjects := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}}
	meta := metav1.ObjectMeta{Name: l.ns}
	_, err1 := client.RbacV1().ClusterRoles().Create(l.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: []string{"list", "watch", "patch"}},
	}}, metav1.CreateOptions{})
	_, err2 := client.RbacV1().ClusterRoleBindings().Create(l.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: l.ns},
	}, metav1.CreateOptions{})
	_, err3 := client.RbacV1().Roles(l.ns).Create(l.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}},
	}}, metav1.CreateOptions{})
	_, err4 := client.RbacV1().RoleBindings(l.ns).Create(l.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: l.ns},
	}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		l.Fatal(err)
	}
	return group, func() {
		l.Helper()
		if err := client.RbacV1().RoleBindings(l.ns).Delete(l.Context(), l.ns, metav1.DeleteOptions{}); err != nil {
			l.Fatal(err)
		}
	}
}
