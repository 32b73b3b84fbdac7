// Command helm builds Helm, once, and prints the path of the binary: `make helm`.
// The tests of package install run it for the same path.
//
// Helm comes from a Go module of its own, internal/tools/helm, whose go.mod is
// the only place that names the version. The binary lives beside those of the
// control plane, in a folder whose name has the version and a hash of the
// module's files:
//
//	${RECTIFIER_CACHE:-${XDG_CACHE_HOME:-~/.cache}/rectifier}/helm-<version>-<os>-<arch>-<hash>/helm
//
// A build from cold takes some minutes; a line each 15 seconds says how far it
// is. The binary appears under its name when it is complete (rename), so two
// builds at once do no harm.
package main
