// Package contender is what the programs of the benchmark have in common: flags,
// and the two addresses that rectifier has too, so that all are measured alike.
package contender

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Contender is one of these programs.
type Contender struct {
	// Config is for the API server, without a client side rate limit. The body may
	// change it.
	Config *rest.Config

	ready atomic.Bool
}

// Ready makes /readyz answer 200: the caches have synced.
func (c *Contender) Ready() { c.ready.Store(true) }

// Main parses the flags, runs body until it returns or the process is told to end,
// and exits.
func Main(body func(context.Context, *Contender) error) {
	kubeconfig := flag.String("kubeconfig", "", "`FILE` that says where the API server is")
	address := flag.String("bind-address", "", "`ADDRESS` of /readyz and /debug/pprof/heap")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *address, body); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, address string, body func(context.Context, *Contender) error) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	c := &Contender{Config: config}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close()
	go func() { _ = http.Serve(listener, c.handler()) }() // it ends with the listener
	return body(ctx, c)
}

func (c *Contender) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /debug/pprof/heap", pprof.Handler("heap"))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !c.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	return mux
}
