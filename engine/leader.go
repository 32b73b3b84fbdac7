package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// ErrLeaseLost is what Run ends with if another instance leads, or may lead soon.
// What was under way is cut off, and the process should end: an engine does not
// run twice.
var ErrLeaseLost = errors.New("the lease is lost")

// electionTerms are the times of a leader election. A leader writes until renew
// after its last renewal, and others wait until lease after that: what is
// between covers requests that are on their way.
type electionTerms struct {
	lease time.Duration // others take a lease that has not changed for so long
	renew time.Duration // a leader that has not renewed for so long has lost
	retry time.Duration // between two looks at the lease
}

// The times of the control plane's own components. Fail-over takes lease and
// twice the longest time between two looks, which is 2.2 times retry.
var defaultTerms = electionTerms{lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second}

// lostGrace is how long the parts of an engine that lost the lease have to stop.
// They do not write any more, whatever they do.
const lostGrace = 2 * time.Second

// election is the part of one instance in a leader election. Who leads is told
// by a Lease, which client-go's elector takes and renews; the election looks
// over its shoulder (see electionLock) and decides whether this instance may
// still write.
//
// It is strict where the elector is not. The elector tries for renew longer
// after another instance took the lease, it counts from the last try instead of
// the last success, and it takes back a lease that had run out meanwhile.
// Here all of these lose the lease, once and for all.
type election struct {
	electionTerms
	name     types.NamespacedName // of the Lease
	identity string
	lock     resourcelock.Interface // the Lease itself
	leads    prometheus.Gauge

	logger klog.Logger
	end    context.CancelCauseFunc // of what runs under the lease

	mu      sync.Mutex
	contact time.Time // when the Lease was last read or written
	trouble string    // what keeps it from that at the moment, empty: nothing
	told    time.Time // when trouble was last logged
	holder  string    // as last read

	// record is what another holder last wrote, since when it has not changed
	// rivalSeen; zero: the last holder has released the Lease, or there was none.
	record    []byte
	rivalSeen time.Time

	acquired time.Time   // zero: this instance does not hold the Lease
	renewed  time.Time   // when the request of the last renewal that succeeded was sent
	expiry   *time.Timer // runs out renew after that
	lost     error       // why it is lost; it stays
}

func newElection(config *rest.Config, name types.NamespacedName, terms electionTerms, leads prometheus.Gauge) (*election, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name for this instance: %w", err)
	}
	if terms == (electionTerms{}) {
		terms = defaultTerms
	}
	l := &election{
		electionTerms: terms, name: name, leads: leads,
		identity: host + "_" + string(uuid.NewUUID()), // two containers can have one host name
	}
	l.lock, err = newLeaseLock(config, name, l.identity, terms)
	return l, err
}

// run waits until this instance leads, and then runs work until ctx ends. It
// releases the lease when work has ended, and not before: work may take its time
// after ctx. When the lease is lost, the context leading ends, and with it
// run returns ErrLeaseLost; work must stop at once then.
func (l *election) run(ctx context.Context, work func(ctx, leading context.Context) error) error {
	leading, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	l.logger, l.end = klog.FromContext(ctx).WithValues("lease", l.name, "identity", l.identity), end

	acquired, stop, err := l.elect(ctx)
	if err != nil {
		return err
	}
	defer stop()
	l.logger.Info("Waiting for the lease")
	select {
	case <-acquired:
	case <-ctx.Done():
		return nil
	}
	if wait := l.handover(); wait > 0 {
		l.logger.Info("Took the lease although another instance may still write; waiting for that to end", "wait", wait)
		select {
		case <-time.After(wait):
		case <-leading.Done():
			return context.Cause(leading)
		case <-ctx.Done():
			return nil
		}
	}
	l.logger.Info("Leading")
	l.leads.Set(1)
	defer l.leads.Set(0)
	worked := make(chan error, 1)
	go func() { worked <- work(ctx, leading) }()
	select {
	case err = <-worked:
	case <-leading.Done():
		select {
		case <-worked:
		case <-time.After(lostGrace):
		}
	}
	if leading.Err() != nil {
		return context.Cause(leading)
	}
	return err
}

// elect starts the elector. acquired is closed when it has taken the lease;
// stop ends it, and releases the lease unless that is lost.
func (l *election) elect(ctx context.Context) (acquired <-chan struct{}, stop func(), err error) {
	taken := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: electionLock{l.lock, l}, Name: l.name.String(),
		LeaseDuration: l.lease, RenewDeadline: l.renew, RetryPeriod: l.retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(taken) },
			OnStoppedLeading: func() {}, // the election has known for longer
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the leader election: %w", err)
	}
	// The elector logs each attempt that fails; the election tells of an outage.
	electing, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		elector.Run(electing)
	}()
	return taken, func() {
		cancel()
		<-stopped
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.expiry != nil {
			l.expiry.Stop()
		}
	}, nil
}

// handover is how long a new leader still has to wait for the old one: not at all
// if that has released the lease or let it run out. But if somebody deleted the
// Lease, cleared it, or wrote another holder into it, the old leader may not know
// yet.
func (l *election) handover() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rivalSeen.IsZero() || l.acquired.Sub(l.rivalSeen) >= l.lease {
		return 0
	}
	return l.renew - time.Since(l.acquired)
}

// mayWrite says whether this instance may write at this moment: nil, or why it
// never may again. It is asked right before each write.
//
// It goes by the monotonic clock, which runs on while the process is frozen
// (SIGSTOP, a debugger, a paused container), but on Linux not while the whole
// machine sleeps. A leader that wakes from that learns of its loss by the next
// renewal; the resourceVersion guards what it writes until then.
func (l *election) mayWrite() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkLocked()
	return l.lost
}

func (l *election) checkLocked() {
	if time.Since(l.renewed) >= l.renew {
		reason := fmt.Sprintf("not renewed for %v", l.renew)
		if l.trouble != "" {
			reason += "; " + l.trouble
		}
		l.loseLocked(reason)
	}
}

func (l *election) loseLocked(reason string) {
	if l.lost != nil {
		return
	}
	l.lost = fmt.Errorf("%w (%s): %s", ErrLeaseLost, l.name, reason)
	l.logger.Error(nil, "Lost the lease; stopping at once", "reason", reason)
	l.end(l.lost)
}

// saw notes what was read from the Lease.
func (l *election) saw(record *resourcelock.LeaderElectionRecord, raw []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contact, l.trouble = time.Now(), ""
	holder := record.HolderIdentity
	if holder != l.holder && holder != "" && holder != l.identity {
		l.logger.Info("Another instance leads", "leader", holder)
	}
	l.holder = holder
	switch {
	case holder == l.identity:
	case isReleased(record):
		l.rivalSeen = time.Time{}
	case holder == "" && !l.acquired.IsZero(): // somebody cleared it; the elector takes it again
	case !l.acquired.IsZero():
		l.loseLocked("it is held by " + holder)
	case !bytes.Equal(raw, l.record):
		l.record, l.rivalSeen = raw, l.contact
	}
}

// vanished notes that there is no Lease. Whoever held it may not know yet.
func (l *election) vanished() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record != nil && !l.rivalSeen.IsZero() {
		l.record, l.rivalSeen = nil, time.Now()
	}
}

// held notes that the Lease was taken or renewed by a request that was sent at a
// time.
func (l *election) held(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contact, l.trouble, l.holder = time.Now(), "", l.identity
	if l.acquired.IsZero() {
		l.acquired, l.renewed = l.contact, sent
		l.expiry = time.AfterFunc(l.renew-time.Since(sent), func() { _ = l.mayWrite() })
		return
	}
	// Renewed too late is lost: another instance may have led in between.
	if l.checkLocked(); l.lost == nil {
		l.renewed = sent
		l.expiry.Reset(l.renew - time.Since(sent))
	}
}

// released notes that this instance gave the Lease back.
func (l *election) released() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expiry.Stop()
	l.logger.Info("Released the lease")
}

// troubleInterval is how often it is logged that the Lease cannot be reached.
const troubleInterval = time.Minute

// failed notes that the Lease could not be read or written.
func (l *election) failed(verb string, err error) {
	reason := reasonOf(err)
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "no answer in time"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = fmt.Sprintf("cannot %s it: %s", verb, reason)
	if time.Since(l.told) >= troubleInterval {
		l.told = time.Now()
		l.logger.Error(nil, "The lease cannot be reached; trying again", "verb", verb, "resource", "leases.coordination.k8s.io", "reason", reason)
	}
}

// status tells for readyz how the election stands, and whether this instance is
// ready for its part: a standby is as long as it can follow the lease.
func (l *election) status() (line string, leading, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost.Error(), false, false
	case !l.acquired.IsZero() && l.trouble != "":
		return fmt.Sprintf("leader; the lease %s: %s", l.name, l.trouble), true, true
	case !l.acquired.IsZero():
		return "leader", true, true
	case l.trouble != "":
		return fmt.Sprintf("standby; the lease %s: %s", l.name, l.trouble), false, false
	case l.contact.IsZero() || time.Since(l.contact) > l.lease:
		return fmt.Sprintf("standby; the lease %s has not been seen", l.name), false, false
	case l.holder == "":
		return "standby; there is no leader", false, true
	}
	return "standby; leader is " + l.holder, false, true
}
