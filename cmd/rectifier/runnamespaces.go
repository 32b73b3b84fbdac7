package main

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/engine"
)

// missEvery is how often it is asked whether a Namespace that was missing has come.
const missEvery = 10 * time.Second

// missNamespaces tells of the first of --namespace that does not exist: its
// informers are as fine as those of an empty one. It returns when all are there.
func (f *runFlags) missNamespaces(ctx context.Context, logger klog.Logger, e *engine.Engine) {
	told := ""
	for {
		missing := ""
		if _, err := readNamespaces(ctx, f.engine.Config, f.engine.Namespaces); err != nil {
			missing = "--namespace: " + err.Error() + ": nothing is done there until it comes"
		}
		if missing != told {
			told = missing
			if missing != "" {
				logger.Info("Not all of --namespace is there", "reason", missing)
			}
			e.SetAdvice(missing)
		}
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(missEvery):
		}
	}
}
