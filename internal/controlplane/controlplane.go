package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
)

// The servers' names, as their binaries are called.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
)

// serverTimeout bounds the start and the stop of each server. A start takes
// about four seconds on an idle machine; test machines are not idle.
const serverTimeout = 2 * time.Minute

// Options says what to start. The zero value starts etcd and kube-apiserver.
type Options struct {
	// Audit records every request; see AuditEvents.
	Audit bool
	// ControllerManager also runs kube-controller-manager.
	ControllerManager bool
	// APIServerArgs are further flags of kube-apiserver, without the leading
	// dashes; they replace the ones set here.
	APIServerArgs map[string][]string
	// ControllerManagerArgs are the same for kube-controller-manager.
	ControllerManagerArgs map[string]string
	// Output receives the servers' logs, one write at a time. When nil they
	// are dropped, but for the last lines of a server that did not start.
	Output io.Writer
}

// ControlPlane is a running control plane. Start makes one.
type ControlPlane struct {
	dir     string
	plane   *envtest.ControlPlane
	guard   *guard
	admin   *rest.Config
	logs    map[string]*tail
	manager *process // nil without kube-controller-manager

	audit auditReader

	users sync.Mutex // serialises envtest's certificate authority

	mu      sync.Mutex // serialises Stop, KillAPIServer and StartAPIServer
	stopped bool
	stopErr error
}

// Start starts the servers and returns when they serve, or an error with the
// last lines of the log of the one that does not. ctx only bounds the start; the
// servers run until Stop, or until this process ends. The error wraps
// binaries.ErrMissing when the servers have not been built.
func Start(ctx context.Context, options Options) (_ *ControlPlane, err error) {
	paths := map[string]string{}
	for _, name := range serverNames(options) {
		if paths[name], err = binaries.Find(name); err != nil {
			return nil, fmt.Errorf("starting a control plane: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "rectifier-control-plane-")
	if err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	c := &ControlPlane{dir: dir, logs: map[string]*tail{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting a control plane: %w", err), c.Stop())
		}
	}()
	if c.guard, err = startGuard(dir); err != nil {
		return nil, err
	}
	output := &syncWriter{w: options.Output}
	launchers := map[string]string{}
	for name, path := range paths {
		c.logs[name] = &tail{next: output}
		if launchers[name], err = writeLauncher(dir, name, path); err != nil {
			return nil, err
		}
	}
	if err := c.configure(options, launchers); err != nil {
		return nil, err
	}
	if err := c.startServers(ctx); err != nil {
		return nil, err
	}
	if options.ControllerManager {
		if err := c.startControllerManager(ctx, launchers[controllerManager], options.ControllerManagerArgs); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func serverNames(options Options) []string {
	names := []string{etcd, apiServer}
	if options.ControllerManager {
		names = append(names, controllerManager)
	}
	return names
}

// configure fills in what envtest is to start. envtest supplies the ports, the
// certificates, RBAC and etcd's --unsafe-no-fsync.
func (c *ControlPlane) configure(options Options, launchers map[string]string) error {
	c.plane = &envtest.ControlPlane{
		Etcd: &envtest.Etcd{
			Path: launchers[etcd], DataDir: c.path("etcd-data"),
			Out: c.logs[etcd], Err: c.logs[etcd],
			StartTimeout: serverTimeout, StopTimeout: serverTimeout,
		},
		APIServer: &envtest.APIServer{
			// A CertDir of our own outlives a restart; envtest's would be new.
			Path: launchers[apiServer], CertDir: c.path("certificates"),
			Out: c.logs[apiServer], Err: c.logs[apiServer],
			StartTimeout: serverTimeout, StopTimeout: serverTimeout,
		},
	}
	for _, dir := range []string{c.plane.Etcd.DataDir, c.plane.APIServer.CertDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	args := c.plane.APIServer.Configure()
	if options.Audit {
		if err := os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
			return err
		}
		args.Set("audit-policy-file", c.path("audit-policy.yaml"))
		args.Set("audit-log-path", c.AuditLog())
		args.Set("audit-log-maxsize", "100000") // MB: the log must not rotate while a test counts in it
	}
	for name, values := range options.APIServerArgs {
		args.Set(name, values...)
	}
	return nil
}

// startServers starts etcd and kube-apiserver and waits until the default
// namespace is there, which the API server creates shortly after it is healthy.
func (c *ControlPlane) startServers(ctx context.Context) error {
	if err := c.plane.Start(); err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, c.logs[etcd].lastLines(etcd), c.logs[apiServer].lastLines(apiServer))
	}
	admin, err := c.User("admin", "system:masters")
	if err != nil {
		return err
	}
	c.admin = admin
	if err := c.WriteKubeconfig(c.KubeconfigFile(), "admin", "system:masters"); err != nil {
		return err
	}
	return c.waitFor(ctx, "/api/v1/namespaces/default")
}

// Stop ends all servers and removes their data. Further calls return the first
// one's result. Clients that are still connected do not delay it.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return c.stopErr
	}
	c.stopped = true
	var errs []error
	if c.manager != nil {
		errs = append(errs, c.manager.stop(), forgetPID(c.dir, controllerManager))
	}
	if c.plane != nil {
		errs = append(errs, c.killAPIServer(), c.plane.Etcd.Stop(), forgetPID(c.dir, etcd))
	}
	if c.guard != nil {
		errs = append(errs, c.guard.release())
	}
	errs = append(errs, os.RemoveAll(c.dir))
	if err := errors.Join(errs...); err != nil {
		c.stopErr = fmt.Errorf("stopping the control plane: %w", err)
	}
	return c.stopErr
}

// KillAPIServer ends kube-apiserver with SIGKILL, as a crash would: connections
// break, and nothing is served until StartAPIServer.
func (c *ControlPlane) KillAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	return c.killAPIServer()
}

// killAPIServer does not ask first: a graceful stop waits up to a minute for
// open watches, and the data is thrown away in any case.
func (c *ControlPlane) killAPIServer() error {
	if err := killServer(c.dir, apiServer); err != nil {
		return fmt.Errorf("killing %s: %w", apiServer, err)
	}
	if err := c.plane.APIServer.Stop(); err != nil { // waits until it is gone
		return fmt.Errorf("killing %s: %w", apiServer, err)
	}
	return forgetPID(c.dir, apiServer)
}

// StartAPIServer starts kube-apiserver again after KillAPIServer, on the same
// port, certificates and data, and returns when it serves.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	if _, err := readPID(c.dir, apiServer); err == nil {
		return fmt.Errorf("starting %s again: it has not been killed", apiServer)
	}
	if err := c.plane.APIServer.Start(); err != nil {
		return fmt.Errorf("starting %s again: %w\n%s", apiServer, err, c.logs[apiServer].lastLines(apiServer))
	}
	return c.waitFor(ctx, "/readyz")
}

var errStopped = errors.New("the control plane is stopped")

// PID returns the process id of a server that runs, by the name of its binary; after
// StartAPIServer it is another one.
func (c *ControlPlane) PID(server string) (int, error) { return readPID(c.dir, server) }

// path returns a file in the data folder.
func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }
