// Command image makes the container image, for several platforms, without a
// container runtime: `make image`. It reads the binaries that command release has
// built and writes one file, an archive of an OCI image layout with an index of
// all platforms, which crane, skopeo, podman, containerd and docker read.
//
// The image has what the program needs and nothing else: the static binary, the
// certificate authorities of Mozilla's list, and names for the user ids. It has no
// shell, and runs as 65532. The same binaries give the same digest: entries are
// sorted, belong to root, and carry the time of the commit, which the binaries know.
//
// deploy/Dockerfile makes an equal image for people who build with docker; a test
// compares the two configurations.
//
// This is a module of its own, so that the main go.mod lists only what ships.
package main
