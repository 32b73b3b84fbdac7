// Command cluster runs a throwaway control plane in the foreground, for people:
// `make cluster`. It prints the way to use it and stops on Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

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
	if err := run(options, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(options controlplane.Options, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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
	<-ctx.Done()
	stop() // a second Ctrl-C ends this process at once; the guard still cleans up
	fmt.Fprintln(os.Stderr, "stopping …")
	return cluster.Stop()
}
