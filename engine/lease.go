package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaseQPS   = 5
	leaseBurst = 10
)

// A Lease without a holder was released only if it says so by its duration, as
// client-go's elector writes it. With another one, somebody cleared it.
const (
	releasedSeconds = 1
	clearedSeconds  = 2
)

// isReleased reports whether the last holder of a Lease has given it back, and so
// does not write any more.
func isReleased(record *resourcelock.LeaderElectionRecord) bool {
	return record.HolderIdentity == "" && record.LeaseDurationSeconds == releasedSeconds
}

// newLeaseLock makes a Lease what an elector can lock. Its client shares nothing
// with the others: neither their limits nor their connection. It speaks HTTP/1.1,
// where a request that times out takes its connection along: over HTTP/2 the next
// one would wait on the same dead connection, and the lease would be lost.
func newLeaseLock(config *rest.Config, name types.NamespacedName, identity string, terms electionTerms) (resourcelock.Interface, error) {
	config = unlimited(config)
	config.QPS, config.Burst = leaseQPS, leaseBurst
	config.NextProtos = []string{"http/1.1"}
	config.Timeout = terms.renew / 4 // an attempt is two requests, and needs a second chance
	client, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the client for the lease: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}

// electionLock is the Lease as the elector gets to see it: the election learns of
// all that the elector does. After it is lost, nothing is read or written: the
// elector would release the lease of whoever holds it then.
type electionLock struct {
	resourcelock.Interface
	election *election
}

func (l electionLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.over(); err != nil {
		return nil, nil, err
	}
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case err == nil:
		l.election.saw(record, raw)
	case apierrors.IsNotFound(err): // it is created next
		l.election.vanished()
	default:
		l.failed(ctx, "get", err)
	}
	return record, raw, err
}

func (l electionLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "create", record, l.Interface.Create)
}

func (l electionLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "update", record, l.Interface.Update)
}

func (l electionLock) write(ctx context.Context, verb string, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if err := l.over(); err != nil {
		return err
	}
	if record.HolderIdentity == "" && l.election.handover() > 0 {
		// The leader before may still write, so the next one has to wait in turn.
		record.LeaseDurationSeconds = clearedSeconds
	}
	sent := time.Now() // others wait from when it arrives, which is later
	err := send(ctx, record)
	switch {
	case err == nil && record.HolderIdentity == "":
		l.election.released()
	case err == nil:
		l.election.held(sent)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), verb == "update" && apierrors.IsNotFound(err):
		// Somebody else was there; a look at the Lease tells who.
	default:
		l.failed(ctx, verb, err)
	}
	return err
}

func (l electionLock) failed(ctx context.Context, verb string, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) { // then the elector was told to stop
		l.election.failed(verb, err)
	}
}

// over is the error of an election that is lost.
func (l electionLock) over() error {
	l.election.mu.Lock()
	defer l.election.mu.Unlock()
	return l.election.lost
}
