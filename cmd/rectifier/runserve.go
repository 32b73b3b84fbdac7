package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
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
	address, healthAddress string
	authorize              bool
	certFile, keyFile      string
}

func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.address, "bind-address", "127.0.0.1:8080", "`ADDRESS` of the status page (/, /api/status), /metrics, /healthz and /readyz; empty for none; with --once none")
	flags.StringVar(&f.healthAddress, "health-address", "", "a second `ADDRESS`, with only /healthz and /readyz, which say no more than a word: for probes")
	flags.BoolVar(&f.authorize, "authorize", false, "what tells of the cluster at --bind-address is for bearer tokens that the API server accepts, and that have the right to get the nonResourceURL /metrics, or else /; with TLS")
	flags.StringVar(&f.certFile, "tls-cert-file", "", "`FILE` with the certificate (PEM) of --bind-address; a change is in use within seconds (default with --authorize: one that is made at the start, which nobody vouches for)")
	flags.StringVar(&f.keyFile, "tls-private-key-file", "", "`FILE` with the key of that certificate")
}

// validate refuses what would serve less than it seems, or to others.
func (f *serveFlags) validate(once bool) error {
	switch {
	case (f.certFile == "") != (f.keyFile == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file go together")
	case once && f.authorize:
		return errors.New("--authorize does not go with --once, which serves nothing")
	case f.address == "" && (f.authorize || f.certFile != ""):
		return errors.New("--authorize and --tls-cert-file are for --bind-address, which is empty")
	}
	return nil
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
	listener net.Listener
	handler  http.Handler
	tls      *tls.Config // nil: none
}

// listen opens the ports. An error is one of usage.
func (f *serveFlags) listen(logger klog.Logger, config *rest.Config, e *engine.Engine) (servers []server, err error) {
	defer func() {
		if err == nil {
			return
		}
		for _, s := range servers {
			_ = s.listener.Close()
		}
	}()
	surface := endpoints.Surface{Ready: e.Ready, Engine: e.Handler(), Status: statuspage.Handler(versionString(), e.Status)}
	if f.address != "" {
		full, err := f.listenFull(logger, config, surface)
		if err != nil {
			return servers, &exitError{exitUsage, err}
		}
		servers = append(servers, full)
	}
	if f.healthAddress != "" {
		listener, err := net.Listen("tcp", f.healthAddress)
		if err != nil {
			return servers, &exitError{exitUsage, fmt.Errorf("listen for probes (see --health-address): %w", err)}
		}
		logger.Info("Serving probes", "address", listener.Addr())
		servers = append(servers, server{listener: listener, handler: surface.Health()})
	}
	return servers, nil
}

// listenFull opens the port of --bind-address.
func (f *serveFlags) listenFull(logger klog.Logger, config *rest.Config, surface endpoints.Surface) (s server, err error) {
	var authorizer *endpoints.Authorizer
	if f.authorize {
		if authorizer, err = endpoints.NewAuthorizer(config, logger); err != nil {
			return s, err
		}
	}
	if s.tls, err = f.certificate(logger); err != nil {
		return s, err
	}
	if s.listener, err = net.Listen("tcp", f.address); err != nil {
		return s, fmt.Errorf("listen (see --bind-address): %w", err)
	}
	s.handler = surface.Full(authorizer)
	logger.Info("Serving health checks", "address", s.listener.Addr(), "tls", s.tls != nil, "authorize", f.authorize)
	switch local := endpoints.Loopback(s.listener.Addr()); {
	case authorizer == nil && local:
		s.handler = endpoints.SameHost(s.handler)
	case authorizer == nil:
		logger.Info("Everybody who reaches this address can read metrics and status: see --authorize, and --health-address for probes", "address", s.listener.Addr())
	}
	return s, nil
}

// certificate is what TLS is done with; nil: there is no TLS.
func (f *serveFlags) certificate(logger klog.Logger) (*tls.Config, error) {
	switch {
	case f.certFile != "":
		return endpoints.CertificateFiles(f.certFile, f.keyFile, logger)
	case f.authorize: // a token is not to be read on its way
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		return endpoints.SelfSigned(host)
	}
	return nil, nil
}

// serve answers until ctx ends.
func serve(ctx context.Context, group *errgroup.Group, servers []server) {
	for _, s := range servers {
		group.Go(func() error { return endpoints.Serve(ctx, s.listener, s.handler, s.tls) })
	}
}
