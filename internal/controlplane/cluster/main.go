// Command cluster runs a throwaway control plane in the foreground, for people:
// `make cluster`. It prints the way to use it and stops on Ctrl-C. When the API
// server does not serve any more, it says so and exits with 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

func main() {
	var options controlplane.Options
	flag.BoolVar(&options.ControllerManager, "controller-manager", false, "run kube-controller-manager too (build it with: make controller-manager)")
	flag.BoolVar(&options.Audit, "audit", false, "write an audit log")
	logs := flag.Bool("logs", false, "show the servers' logs")
	flag.Parse()
	if *logs {
		options.Output = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends this process at once; the guard still cleans up
	if err := run(ctx, options, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// run returns when ctx ends, or with an error when the API server does not serve
// any more.
func run(ctx context.Context, options controlplane.Options, out io.Writer) error {
	fmt.Fprintln(os.Stderr, "starting etcd and kube-apiserver …")
	cluster, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "API server  %s\n", cluster.AdminConfig().Host)
	if options.Audit {
		fmt.Fprintf(out, "audit log   %s\n", cluster.AuditLog())
	}
	fmt.Fprintf(out, "\nexport KUBECONFIG=%s\n\nCtrl-C stops it and removes its data.\n", cluster.KubeconfigFile())
	lost := attend(ctx, cluster.AdminConfig())
	fmt.Fprintln(os.Stderr, "stopping …")
	return errors.Join(lost, cluster.Stop())
}

const (
	// askEvery is how often the API server is asked whether it serves, and
	// answerTime how long an answer may take.
	askEvery   = time.Second
	answerTime = 5 * time.Second
	// patience is how many answers in a row may be missing: a machine may be busy,
	// or asleep for a while.
	patience = 5
)

// attend waits until ctx ends (nil) or the API server is lost: its process has
// ended, or it does not serve, which it does not without etcd either.
func attend(ctx context.Context, config *rest.Config) error {
	config.Timeout = answerTime
	client, err := rest.UnversionedRESTClientFor(unversioned(config))
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for missing := 0; missing < patience; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err = client.Get().AbsPath("/readyz").Do(ctx).Error(); err == nil {
			missing = 0
		} else {
			missing++
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("kube-apiserver does not serve any more (ARGS=--logs shows what it says): %w", err)
}

// unversioned completes a config for requests to plain paths.
func unversioned(config *rest.Config) *rest.Config {
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}
