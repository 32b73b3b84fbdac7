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

func (p *plane) patch(ctx context.Context, i int, body string, subresources ...string) error {
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

// steadily writes to count Deployments, one after the other, at the pace of the
// plan. It returns how long that took.
func (s *suite) steadily(ctx context.Context, count int, write func(ctx context.Context, i, n int) error) (time.Duration, error) {
	tick := time.NewTicker(time.Second / time.Duration(s.pace))
	defer tick.Stop()
	begin := time.Now()
	err := each(ctx, s.workers, 0, count, func(ctx context.Context, i int) error {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		return write(ctx, i%s.plane.seeded, s.number(i))
	})
	s.written += count
	return time.Since(begin), err
}

// number is one that no write before had.
func (s *suite) number(i int) int { return s.written + i + 1 }
