package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/clientmetrics"
	"github.com/rectifier-dev/rectifier/internal/endpoints"
	"github.com/rectifier-dev/rectifier/internal/processmetrics"
	"github.com/rectifier-dev/rectifier/internal/statuspage"
)

// serveFlags say what is served over HTTP: where, and to whom.
type serveFlags struct {
	address, metricsAddress, healthAddress string
	authorize, profiling                   bool
	certFile, keyFile                      string
}

func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.address, bindAddress, "127.0.0.1:8080", "`ADDRESS` of the status page (/, /api/status), /metrics, /healthz and /readyz; empty for none; with --once none")
	flags.StringVar(&f.metricsAddress, metricsAddress, "", "another `ADDRESS`, with only /metrics: for a Prometheus elsewhere, while the status page stays on loopback")
	flags.StringVar(&f.healthAddress, healthAddress, "", "another `ADDRESS`, with only /healthz and /readyz, which say no more than a word: for probes")
	flags.BoolVar(&f.authorize, "authorize", false, "where --bind-address and --metrics-address are not loopback, what tells of the cluster is for bearer tokens that the API server accepts, and that have the right to get the nonResourceURL /metrics, or else /; with TLS. What is on loopback stays open, and plain HTTP")
	flags.BoolVar(&f.profiling, "profiling", false, "serve profiles of this process (pprof) at /debug/pprof/ of --bind-address. They show names and rules: where that is not loopback it takes --authorize, and the right to get the nonResourceURL /debug/pprof")
	flags.StringVar(&f.certFile, "tls-cert-file", "", "`FILE` with the certificate (PEM) of --bind-address and --metrics-address, where they are not loopback; a change is in use within seconds (default with --authorize: one that is made at the start, which nobody vouches for)")
	flags.StringVar(&f.keyFile, "tls-private-key-file", "", "`FILE` with the key of that certificate")
}

// validate refuses what would serve less than it seems, or to others.
func (f *serveFlags) validate(flags *pflag.FlagSet, once bool) error {
	for name, value := range map[string]string{"tls-cert-file": f.certFile, "tls-private-key-file": f.keyFile} {
		if flags.Changed(name) && value == "" {
			return fmt.Errorf("--%s is empty: is a variable not set?", name)
		}
	}
	switch {
	case (f.certFile == "") != (f.keyFile == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file go together")
	case once && f.authorize:
		return errors.New("--authorize does not go with --once, which serves nothing")
	case once && f.profiling:
		return errors.New("--profiling does not go with --once, which serves nothing")
	case f.address == "" && f.profiling:
		return errors.New("--profiling is for --bind-address, which is empty")
	case f.address == "" && f.metricsAddress == "" && f.guarded():
		return errors.New("--authorize and --tls-cert-file are for --bind-address and --metrics-address, which are empty")
	}
	return f.apart()
}

// guarded reports whether there is something that only others meet.
func (f *serveFlags) guarded() bool { return f.authorize || f.certFile != "" }

// apart refuses two flags for one address, which the system would say of the port
// alone.
func (f *serveFlags) apart() error {
	given := f.places()
	for i, one := range given {
		for _, other := range given[:i] {
			if endpoints.SameAddress(one.address, other.address) {
				return fmt.Errorf("--%s %s and --%s %s are one address: give each its own port", other.flag, other.address, one.flag, one.address)
			}
		}
	}
	return nil
}

// place is an address that is given, and what is there.
type place struct{ flag, address, what string }

// Flags of addresses.
const (
	bindAddress    = "bind-address"
	metricsAddress = "metrics-address"
	healthAddress  = "health-address"
)

func (f *serveFlags) places() []place {
	return slices.DeleteFunc([]place{
		{bindAddress, f.address, "status, metrics and health checks"},
		{metricsAddress, f.metricsAddress, "metrics"},
		{healthAddress, f.healthAddress, "probes"},
	}, func(p place) bool { return p.address == "" })
}

// newRegistry is for the metrics of the engine, with those of the process and of
// its requests to the API server.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	clientmetrics.Register(registry)
	processmetrics.Register(registry, versionString())
	return registry
}

// server is one listener and what it answers.
type server struct {
	place
	listener net.Listener
	handler  http.Handler
	tls      *tls.Config // nil: none
}

// listen opens the ports. An error is one of usage.
func (f *serveFlags) listen(logger klog.Logger, config *rest.Config, e *engine.Engine) ([]server, error) {
	servers, err := f.open()
	if err == nil {
		surface := endpoints.Surface{Ready: e.Ready, Engine: e.Handler(), Status: statuspage.Handler(versionString(), e.Status), Profiling: f.profiling}
		err = f.fill(servers, logger, config, surface)
	}
	if err != nil {
		for _, s := range servers {
			_ = s.listener.Close()
		}
		return nil, &exitError{exitUsage, err}
	}
	return servers, nil
}

func (f *serveFlags) open() (servers []server, err error) {
	for _, p := range f.places() {
		listener, err := net.Listen("tcp", p.address)
		if err != nil {
			return servers, fmt.Errorf("listen for %s (see --%s): %w", p.what, p.flag, err)
		}
		servers = append(servers, server{place: p, listener: listener})
	}
	return servers, nil
}

// fill says what the ports answer, and to whom. What is on loopback is reached
// from this machine, or by a port-forward, for which the API server has asked who
// may: a browser has no token, and would not trust the certificate.
func (f *serveFlags) fill(servers []server, logger klog.Logger, config *rest.Config, surface endpoints.Surface) error {
	if f.guarded() && !slices.ContainsFunc(servers, server.exposed) {
		return errors.New("--authorize and --tls-cert-file are for addresses that others reach, and all are loopback: leave them out, or give --metrics-address :8443 or the like")
	}
	if f.profiling && !f.authorize && slices.ContainsFunc(servers, func(s server) bool { return s.flag == bindAddress && s.exposed() }) {
		return errors.New("--profiling tells names and rules to everybody who reaches --bind-address, which is not loopback: give --authorize too, or leave --bind-address on loopback")
	}
	authorizer, certificate, err := f.guard(logger, config)
	if err != nil {
		return err
	}
	for i := range servers {
		s := &servers[i]
		var a *endpoints.Authorizer // nil: everybody
		if s.exposed() {
			a, s.tls = authorizer, certificate
		}
		switch {
		case s.flag == healthAddress:
			s.handler = surface.Health()
		case s.flag == metricsAddress:
			s.handler = surface.Metrics(a)
		case s.exposed():
			s.handler = surface.Full(a)
		default:
			s.handler = surface.Local()
		}
		logger.Info("Serving "+s.what, "address", s.listener.Addr(), "tls", s.tls != nil, "authorize", a != nil)
		if s.exposed() && a == nil {
			logger.Info("Everybody who reaches this address can read what it tells of the cluster: see --authorize, and --health-address for probes", "address", s.listener.Addr())
		}
	}
	return nil
}

// exposed reports whether others than this machine reach what tells of the
// cluster.
func (s server) exposed() bool {
	return s.flag != healthAddress && !endpoints.Loopback(s.listener.Addr())
}

// guard is what stands before addresses that others reach: who is asked, and what
// TLS is done with; nil: nobody, none.
func (f *serveFlags) guard(logger klog.Logger, config *rest.Config) (a *endpoints.Authorizer, certificate *tls.Config, err error) {
	if f.authorize {
		if a, err = endpoints.NewAuthorizer(config, logger); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case f.certFile != "":
		certificate, err = endpoints.CertificateFiles(f.certFile, f.keyFile, logger)
	case f.authorize: // a token is not to be read on its way
		host, hostErr := os.Hostname()
		if hostErr != nil {
			host = "localhost"
		}
		certificate, err = endpoints.SelfSigned(host)
	}
	return a, certificate, err
}

// serve answers until ctx ends.
func serve(ctx context.Context, group *errgroup.Group, servers []server) {
	for _, s := range servers {
		group.Go(func() error { return endpoints.Serve(ctx, s.listener, s.handler, s.tls) })
	}
}
