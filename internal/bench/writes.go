package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// right is how many replicas all Deployments have and shall have; wrong is what
// drifts set.
const (
	right = 3
	wrong = 4
)

// patch changes the i-th Deployment; beyond the last one it begins at the first
// again.
func (p *plane) patch(ctx context.Context, i int, body string, subresources ...string) error {
	i %= p.seeded
	_, err := p.client.AppsV1().Deployments(namespaceOf(i)).Patch(ctx, nameOf(i), types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	if err != nil {
		return fmt.Errorf("patch a Deployment: %w", err)
	}
	return nil
}

// drift makes the i-th Deployment wrong.
func (p *plane) drift(ctx context.Context, i int) error {
	return p.patch(ctx, i, fmt.Sprintf(`{"spec":{"replicas":%d}}`, wrong))
}

// heartbeat changes the i-th Deployment in its status only, as controllers do all
// the time. n differs from call to call.
func (p *plane) heartbeat(ctx context.Context, i, n int) error {
	return p.patch(ctx, i, fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":3,"readyReplicas":%d}}`, n, n%4), "status")
}

// relabel changes a label of the i-th Deployment that rules read. n differs from
// call to call.
func (p *plane) relabel(ctx context.Context, i, n int) error {
	return p.patch(ctx, i, fmt.Sprintf(`{"metadata":{"labels":{"team":"team-%d"}}}`, n))
}

// writeAll writes a load, to one object after the other, at its pace.
func (s *suite) writeAll(ctx context.Context, l load) error {
	var turn <-chan time.Time
	if l.pace > 0 {
		tick := time.NewTicker(time.Second / time.Duration(l.pace))
		defer tick.Stop()
		turn = tick.C
	}
	err := each(ctx, s.workers, 0, l.count, func(ctx context.Context, i int) error {
		if turn != nil {
			select {
			case <-turn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return l.write(ctx, i, s.number(i))
	})
	s.written += l.count
	return err
}

// number is one that no write before had.
func (s *suite) number(i int) int { return s.written + i + 1 }
