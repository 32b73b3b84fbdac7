// Package binaries builds and finds the server binaries that package
// controlplane starts: kube-apiserver, kube-controller-manager and etcd (and
// kubectl, for people).
//
// They are built from Go modules of their own, ../kubernetes and ../etcd,
// whose go.mod files are the only place that names their versions. The results live
// outside the tree, so that every clone of one version shares them:
//
//	${RECTIFIER_CACHE:-${XDG_CACHE_HOME:-~/.cache}/rectifier}/control-plane/<key>/
//
// The key names both versions and the platform and ends in a hash of the
// modules' files; a changed version or dependency therefore builds anew beside
// the old one. A binary appears under its name only when it is complete
// (rename), and a lock keeps two builds from doing the same work twice.
//
// $RECTIFIER_KUBERNETES_VERSION, such as 1.34.4, asks for another Kubernetes
// than the tree's: `make skew`. Its module is generated in the cache folder,
// from the go.mod that this Kubernetes was published with; go.sum is checked
// against the checksum database as for any new dependency.
//
// Only the standard library is imported: `make control-plane` compiles this
// package before it does anything else. All functions are safe for concurrent
// use, from several processes too.
package binaries
