package rbac

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Review asks a cluster whether it grants a right. It may be called from
// several goroutines at once.
type Review func(ctx context.Context, right Right) (allowed bool, err error)

// reviews is how many questions are under way at once.
const reviews = 8

// Missing returns the needs that are not granted, in their order. The first
// error of a review ends it.
func Missing(ctx context.Context, needs Needs, review Review) ([]Need, error) {
	granted := make([]bool, len(needs.All))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviews)
	for i, n := range needs.All {
		group.Go(func() (err error) {
			granted[i], err = review(ctx, n.Right)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []Need
	for i, n := range needs.All {
		if !granted[i] {
			out = append(out, n)
		}
	}
	return out, nil
}
