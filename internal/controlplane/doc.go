// Package controlplane runs a real kube-apiserver with etcd, and on request
// kube-controller-manager, for tests, the demo and benchmarks.
//
// Start builds nothing: `make control-plane` does (package binaries). The
// servers are started by envtest, which picks free loopback ports, makes the
// certificates and signs users; this package adds what envtest leaves out:
//
//   - an audit log that tests count requests in (AuditEvents),
//   - RBAC users (User, WriteKubeconfig),
//   - kube-controller-manager, for real Deployments, autoscalers and garbage collection,
//   - the last lines of a server's log in the error when it does not start,
//   - killing and restarting the API server on the same port and data,
//   - making etcd forget old versions (CompactEtcd),
//   - an end to everything when this process dies, however it dies.
//
// The last one works without the servers' help. Each is started through a
// two-line shell launcher that writes its process id into the data folder and
// becomes the server. A guard process holds the read end of a pipe whose write
// end only this process has; when the pipe closes, because of Stop, a panic
// or SIGKILL, it kills the recorded process groups and removes the folder.
// (envtest starts its processes itself and offers no hook for Pdeathsig.)
//
// Everything listens on 127.0.0.1, and all data is in one temporary folder that
// is gone after Stop. Tests use package testcluster, which shares one control
// plane among a package's tests; people use `make cluster`.
//
// The methods of ControlPlane are safe for concurrent use.
package controlplane
