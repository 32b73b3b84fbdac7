package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

// tally counts Rectifier's requests about the objects of the show.
type tally struct {
	accepted, conflicts, refused int // PATCH
	gets, puts, other            int
	lists, events                int
}

func (t tally) patches() int { return t.accepted + t.conflicts + t.refused }

// quiet waits until Rectifier has written nothing for a while, and returns
// what it has requested until then.
func (s *show) quiet(ctx context.Context) (tally, error) {
	var last tally
	since := time.Now()
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := s.count(nil)
		if now.patches() != last.patches() {
			last, since = now, time.Now()
		}
		return time.Since(since) > quietTime, err
	})
	if err != nil {
		return last, fmt.Errorf("wait until rectifier writes nothing more: %w", err)
	}
	return s.countAll(ctx)
}

// countAll makes a request of its own and counts when that is in the log, so
// that none before it is missing.
func (s *show) countAll(ctx context.Context) (t tally, err error) {
	marker := fmt.Sprintf("marker-%d", time.Now().UnixNano())
	_, err = s.cluster.kubernetes.CoreV1().ConfigMaps(namespace).Get(ctx, marker, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return t, fmt.Errorf("mark the audit log: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(context.Context) (found bool, err error) {
		t, err = s.count(func(e *controlplane.AuditEvent) { found = found || e.ObjectRef.Name == marker })
		return found, err
	})
	return t, err
}

// count reads the audit log. see, which may be nil, is called with each event.
func (s *show) count(see func(*controlplane.AuditEvent)) (t tally, err error) {
	_, err = s.plane.AuditEvents(func(e *controlplane.AuditEvent) bool {
		if see != nil {
			see(e)
		}
		if e.User.Username == engineUser {
			t.add(e)
		}
		return false
	})
	return t, err
}

func (t *tally) add(e *controlplane.AuditEvent) {
	code := int(e.ResponseStatus.Code)
	switch {
	case e.ObjectRef.Resource == "" || e.ObjectRef.Resource == "selfsubjectaccessreviews":
		// Discovery, and questions about its own rights.
	case e.ObjectRef.Resource == "events":
		t.events++
	case e.Verb == "list" || e.Verb == "watch":
		t.lists++
	case e.Verb == "get":
		t.gets++
	case e.Verb == "update":
		t.puts++
	case e.Verb != "patch":
		t.other++
	case code == http.StatusConflict:
		t.conflicts++
	case code >= http.StatusBadRequest:
		t.refused++
	default:
		t.accepted++
	}
}

// requests prints the count and returns what is wrong with it. needed is how
// many writes put everything right.
func (s *show) requests(t tally, needed int) []error {
	var faults []error
	row := func(what string, n int, bad error, note string) []string {
		if bad != nil {
			faults = append(faults, bad)
			note += "  WRONG"
		}
		return []string{what, fmt.Sprint(n), note}
	}
	fault := func(is bool, text string) error {
		if !is {
			return nil
		}
		return errors.New(text)
	}
	rows := [][]string{
		row("PATCH accepted", t.accepted, fault(t.accepted != needed, fmt.Sprintf("%d writes for %d things that were wrong", t.accepted, needed)),
			fmt.Sprintf("%d were needed", needed)),
		row("PATCH refused, conflict", t.conflicts, nil, "decided on an older version: dropped, and decided again"),
		row("PATCH refused, other", t.refused, fault(t.refused > 0, "the server has refused patches"), ""),
		row("GET of an object", t.gets, fault(t.gets > 0, "objects were read by GET"), "the informers' caches have it"),
		row("PUT", t.puts, fault(t.puts > 0, "objects were written by PUT"), "nothing is overwritten blindly"),
		row("other writes", t.other, fault(t.other > 0, "there were writes other than PATCH"), ""),
		row("Events written", t.events, nil, "one for each fix, and for each rule that failed"),
	}
	s.out.table(rows, func(_ int, line string) string { return line })
	return faults
}
