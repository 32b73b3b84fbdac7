package main

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/live"
)

// missEvery is how often it is asked whether a Namespace that was missing has
// come, or can be read.
const missEvery = 10 * time.Second

// missNamespaces tells of the first of --namespace that does not exist: its
// informers are as fine as those of an empty one. It returns when all are known to
// be there, or may not be read.
func (f *runFlags) missNamespaces(ctx context.Context, logger klog.Logger, e *engine.Engine) {
	told := ""
	for {
		_, err := readNamespaces(ctx, f.engine.Config, f.engine.Namespaces)
		if missing, known := missingNamespace(err); known && missing != told {
			told = missing
			if missing != "" {
				logger.Info("Not all of --namespace is there", "reason", missing)
			}
			e.SetAdvice(missing)
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(missEvery):
		}
	}
}

// missingNamespace puts what readNamespaces says in words; empty: all are there.
// It is not known if the API server has not answered: that is told elsewhere, and
// what was told before holds.
func missingNamespace(err error) (missing string, known bool) {
	var none *live.NoNamespaceError
	if errors.As(err, &none) {
		return "--namespace: " + none.Error() + ": nothing is done there until it comes", true
	}
	return "", err == nil
}

// With --once, Namespaces are looked at again after againOnce, and for reachOnce:
// as long as the engine waits for the cluster.
const (
	againOnce = time.Second
	reachOnce = 30 * time.Second
)

// awaitNamespaces is readNamespaces for --once, which waits for a cluster that does
// not answer, unless that refuses.
func (f *runFlags) awaitNamespaces(ctx context.Context) (map[string]map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, reachOnce)
	defer cancel()
	tell := sync.OnceFunc(func() {
		klog.FromContext(ctx).Info("Waiting for the cluster, which has to tell of --namespace", "atMost", reachOnce)
	})
	for {
		found, err := readNamespaces(ctx, f.engine.Config, f.engine.Namespaces)
		if err == nil || errors.As(err, new(*live.NoNamespaceError)) || apierrors.IsUnauthorized(err) {
			return found, err
		}
		tell()
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(againOnce):
		}
	}
}
