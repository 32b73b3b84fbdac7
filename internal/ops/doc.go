// Package ops gates the tests below it: those that need what is not a Go module
// (a real Prometheus, a real Chromium) or takes long to build (helm, kubectl).
// `make test-ops` installs all of that and runs them; elsewhere they skip, and
// say so.
package ops
