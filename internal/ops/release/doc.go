// Package release tests what `make image` makes, without a container runtime: the
// file system of the image is unpacked, mounted read-only, and the program run in it
// by chroot as the image's user. What works there needs nothing of the machine.
package release
