package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// memoryLease is a Lease in memory, for tests of the times: there the clock is
// not real, and so a server cannot be.
type memoryLease struct {
	mu      sync.Mutex
	version int
	record  *resourcelock.LeaderElectionRecord // nil: there is none
}

// set writes the Lease as somebody who does not take part; "-" deletes it.
func (s *memoryLease) set(holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	if s.record = nil; holder != "-" {
		s.record = &resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15}
	}
}

func (s *memoryLease) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return "-"
	}
	return s.record.HolderIdentity
}

// memoryLock is the access of one instance to it.
type memoryLock struct {
	*memoryLease
	identity string
	version  int
	delay    time.Duration // of each answer
	fail     error         // instead of an answer
}

var leasesResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *memoryLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	defer l.wait(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return nil, nil, l.fail
	}
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(leasesResource, "l")
	}
	l.version = l.memoryLease.version
	record := *l.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *memoryLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, true)
}

func (l *memoryLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, false)
}

func (l *memoryLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, create bool) error {
	defer l.wait(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fail != nil:
		return l.fail
	case create && l.record != nil:
		return apierrors.NewAlreadyExists(leasesResource, "l")
	case !create && l.record == nil:
		return apierrors.NewNotFound(leasesResource, "l")
	case !create && l.version != l.memoryLease.version:
		return apierrors.NewConflict(leasesResource, "l", nil)
	}
	l.memoryLease.version++
	l.version, l.record = l.memoryLease.version, &record
	return nil
}

func (l *memoryLock) wait(ctx context.Context) {
	l.mu.Lock()
	delay := l.delay
	l.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
}

func (l *memoryLock) set(change func(*memoryLock)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (*memoryLock) RecordEvent(string) {}
func (*memoryLock) Describe() string   { return "l" }
func (l *memoryLock) Identity() string { return l.identity }

// instance is one that takes part in an election, in place of an engine.
type instance struct {
	*election
	lock   *memoryLock
	cancel context.CancelFunc
	drain  time.Duration // what its work takes after it is told to end

	mu           sync.Mutex
	began, ended time.Time // its work
	ran          chan error
}

func newInstance(t *testing.T, lease *memoryLease, identity string) *instance {
	i := &instance{lock: &memoryLock{memoryLease: lease, identity: identity}, ran: make(chan error, 1)}
	i.election = &election{
		electionTerms: defaultTerms, name: types.NamespacedName{Namespace: "ns", Name: "l"}, identity: identity,
		lock: i.lock, leads: prometheus.NewGauge(prometheus.GaugeOpts{}),
	}
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Background()))
	i.cancel = cancel
	go func() {
		i.ran <- i.run(ctx, func(ctx, leading context.Context) error {
			i.note(&i.began)
			select {
			case <-ctx.Done():
				time.Sleep(i.drain)
			case <-leading.Done():
			}
			i.note(&i.ended)
			return nil
		})
	}()
	t.Cleanup(i.cancel)
	return i
}

func (i *instance) note(at *time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	*at = time.Now()
}

// works reports whether its work has begun, and has not ended.
func (i *instance) works() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.began.IsZero() && i.ended.IsZero()
}

// lead waits until it works.
func (i *instance) lead(t *testing.T, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); !i.works(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not lead after %v", i.identity, within)
		}
	}
}

// end waits until it has ended, and gives how long that took.
func (i *instance) end(t *testing.T, within time.Duration) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	select {
	case err := <-i.ran:
		return time.Since(began), err
	case <-time.After(within):
		t.Fatalf("%s has not ended after %v", i.identity, within)
		return 0, nil
	}
}

// mustLose waits until it has ended because the lease was lost.
func (i *instance) mustLose(t *testing.T, within time.Duration, why string) time.Duration {
	t.Helper()
	took, err := i.end(t, within)
	if !errors.Is(err, ErrLeaseLost) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s ended with %v, want that the lease is lost: %s", i.identity, err, why)
	}
	if i.works() {
		t.Errorf("%s ended while its work goes on", i.identity)
	}
	if i.mayWrite() == nil {
		t.Errorf("%s may still write", i.identity)
	}
	return took
}

// two starts two instances, of which the first leads.
func two(t *testing.T) (lease *memoryLease, leader, standby *instance) {
	t.Helper()
	lease = &memoryLease{}
	leader = newInstance(t, lease, "first")
	leader.lead(t, time.Second)
	standby = newInstance(t, lease, "second")
	time.Sleep(time.Minute)
	if !leader.works() || standby.works() {
		t.Fatalf("first works: %v, second works: %v", leader.works(), standby.works())
	}
	if line, leads, ready := standby.status(); leads || !ready || line != "standby; leader is first" {
		t.Errorf("the standby: %q, leads %v, ready %v", line, leads, ready)
	}
	if line, leads, ready := leader.status(); !leads || !ready || line != "leader" {
		t.Errorf("the leader: %q, leads %v, ready %v", line, leads, ready)
	}
	return lease, leader, standby
}

// One that is told to end finishes its work, then releases the lease, then ends;
// the other takes over at once.
func TestTheLeaseIsReleasedAfterTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, leader, standby := two(t)
		leader.drain = 20 * time.Second // longer than a lease
		leader.cancel()
		time.Sleep(leader.drain - time.Second)
		if lease.holder() != "first" || standby.works() {
			t.Fatal("the lease is not held while work is finished")
		}
		if _, err := leader.end(t, 2*time.Second); err != nil {
			t.Errorf("ended with %v", err)
		}
		standby.lead(t, 5*time.Second)
	})
}

// One that stands by ends without a word, and takes nothing with it.
func TestAStandbyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, leader, standby := two(t)
		standby.cancel()
		if _, err := standby.end(t, time.Second); err != nil {
			t.Errorf("ended with %v", err)
		}
		if !leader.works() || lease.holder() != "first" {
			t.Errorf("first works: %v, holder: %s", leader.works(), lease.holder())
		}
	})
}

// Renewals fail: writing ends renew after the last one, and the other instance
// works no sooner than lease after it.
func TestALeaderThatCannotRenew(t *testing.T) {
	for name, fail := range map[string]func(*memoryLock){
		"refused":   func(l *memoryLock) { l.fail = apierrors.NewForbidden(leasesResource, "l", errors.New("")) },
		"no answer": func(l *memoryLock) { l.delay, l.fail = 3*time.Second, context.DeadlineExceeded },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, leader, standby := two(t)
				leader.lock.set(fail)
				leader.election.mu.Lock()
				last := leader.renewed
				leader.election.mu.Unlock()
				leader.mustLose(t, 12*time.Second, "not renewed for 10s; cannot")
				if d := leader.ended.Sub(last); d != defaultTerms.renew {
					t.Errorf("work ended %v after the last renewal", d)
				}
				standby.lead(t, 20*time.Second)
				if d := standby.began.Sub(last); d < defaultTerms.lease || d > 25*time.Second {
					t.Errorf("fail-over took %v", d)
				}
			})
		})
	}
}

// Renewals that take long count from when they were sent.
func TestSlowRenewalsCountFromWhenTheyWereSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, leader, standby := two(t)
		leader.lock.set(func(l *memoryLock) { l.delay = 7 * time.Second })
		// Sent every 9 s, answered after 7 s: at each answer the last one is 16 s old.
		leader.mustLose(t, time.Minute, "not renewed for 10s")
		if standby.works() {
			t.Error("both work")
		}
	})
}

// A process that was frozen finds on waking that it may not write, even if
// nobody took the lease and the elector renews it first.
func TestARenewalThatComesTooLateIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := newInstance(t, &memoryLease{}, "first")
		leader.lead(t, time.Second)
		leader.election.mu.Lock()
		leader.renewed = leader.renewed.Add(-time.Minute) // as if the clock had run on
		leader.election.mu.Unlock()
		leader.held(time.Now())
		leader.mustLose(t, time.Second, "not renewed for 10s")
		leader.held(time.Now())
		if leader.mayWrite() == nil {
			t.Error("a later renewal gave the right to write back")
		}
	})
}

// Somebody interferes with the Lease: the leader ends as soon as it looks, and
// the other one does not work before it can be sure of that.
func TestInterference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, leader, standby := two(t)
		at := time.Now()
		lease.set("second")
		if took := leader.mustLose(t, 5*time.Second, "it is held by second"); took > defaultTerms.retry {
			t.Errorf("the leader learned of it after %v", took)
		}
		standby.lead(t, 20*time.Second)
		if d := standby.began.Sub(at); d < defaultTerms.renew {
			t.Errorf("the other began after %v: the leader might still write", d)
		}
		if lease.holder() != "second" {
			t.Errorf("the one that lost took the lease along: holder is %q", lease.holder())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		lease, leader, standby := two(t)
		lease.set("a stranger")
		leader.mustLose(t, 5*time.Second, "it is held by a stranger")
		standby.lead(t, 25*time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		lease, leader, standby := two(t)
		at := time.Now()
		lease.set("-")
		time.Sleep(10 * time.Second) // who creates it again depends on who looks first
		if leader.works() == (lease.holder() != "first") {
			t.Errorf("the first works: %v, the holder is %s", leader.works(), lease.holder())
		}
		if standby.works() && standby.began.Sub(at) < defaultTerms.renew {
			t.Errorf("the other began after %v: the leader might still write", standby.began.Sub(at))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		lease, leader, standby := two(t)
		leader.lock.set(func(l *memoryLock) { l.fail = errors.New("no connection") }) // it cannot look
		at := time.Now()
		lease.set("-")
		leader.mustLose(t, 12*time.Second, "not renewed")
		standby.lead(t, 20*time.Second)
		if d := standby.began.Sub(leader.ended); d < 0 {
			t.Errorf("both worked for %v", -d)
		}
		if d := standby.began.Sub(at); d > 20*time.Second {
			t.Errorf("fail-over took %v", d)
		}
	})
}

// Who deletes or clears the Lease does not get around the wait for the leader
// before, whether the other one has just looked or could not for long.
func TestALeaseWithoutAHolderIsNotReleased(t *testing.T) {
	noConnection := func(l *memoryLock) { l.fail = errors.New("no connection") }
	for name, holder := range map[string]string{"deleted": "-", "cleared": ""} {
		for _, blind := range []time.Duration{0, 2 * defaultTerms.lease} {
			t.Run(fmt.Sprintf("%s, seen %v ago", name, blind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					lease, leader, standby := two(t)
					if blind > 0 {
						standby.lock.set(noConnection)
						time.Sleep(blind)
						standby.lock.set(func(l *memoryLock) { l.fail = nil })
					}
					leader.lock.set(noConnection) // it does not learn of it
					lease.set(holder)
					leader.mustLose(t, 12*time.Second, "not renewed")
					standby.lead(t, 20*time.Second)
					if d := standby.began.Sub(leader.ended); d < 0 {
						t.Errorf("both worked for %v", -d)
					}
				})
			})
		}
	}
}

// One that is told to end while it waits for the leader before passes that wait
// on: what it gives back is not released for the next one.
func TestTheWaitForTheLeaderBeforeIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, leader, second := two(t)
		leader.lock.set(func(l *memoryLock) { l.fail = errors.New("no connection") })
		lease.set("")
		for lease.holder() != "second" {
			time.Sleep(10 * time.Millisecond)
		}
		second.cancel()
		if _, err := second.end(t, time.Second); err != nil || !second.began.IsZero() {
			t.Errorf("ended with %v, began at %v", err, second.began)
		}
		if lease.holder() != "" {
			t.Errorf("the holder is %q", lease.holder())
		}
		third := newInstance(t, lease, "third")
		third.lead(t, 20*time.Second)
		if leader.works() || third.began.Before(leader.ended) {
			t.Error("both work")
		}
		third.cancel()
		if _, err := third.end(t, time.Second); err != nil {
			t.Errorf("ended with %v", err)
		}
		newInstance(t, lease, "fourth").lead(t, 5*time.Second) // it waited, and is over
	})
}

// The other's lease is not released by one that wakes up and is told to end.
func TestTheLeaseOfAnotherIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, leader, _ := two(t)
		lease.set("second")
		leader.cancel() // before it looks
		if _, err := leader.end(t, 5*time.Second); err != nil && !errors.Is(err, ErrLeaseLost) {
			t.Errorf("ended with %v", err)
		}
		if lease.holder() != "second" {
			t.Errorf("the holder is %q", lease.holder())
		}
	})
}

// What readyz says of one that cannot follow the lease.
func TestAStandbyThatCannotFollowIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, standby := two(t)
		standby.lock.set(func(l *memoryLock) { l.fail = apierrors.NewForbidden(leasesResource, "l", errors.New("czNjcjN0")) })
		time.Sleep(5 * time.Second)
		if line, _, ready := standby.status(); ready || line != "standby; the lease ns/l: cannot get it: Forbidden" {
			t.Errorf("%q, ready %v", line, ready)
		}
		standby.lock.set(func(l *memoryLock) { l.fail = nil })
		time.Sleep(5 * time.Second)
		if line, _, ready := standby.status(); !ready {
			t.Errorf("%q, ready %v", line, ready)
		}
	})
}
