// Command release builds what a release consists of: `make release`.
//
//	dist/bin/linux_amd64/rectifier          and three other platforms
//	dist/rectifier_v1.2.3_linux_amd64.tar.gz  binary, completions, LICENSE, README.md, CHANGELOG.md
//	dist/SHA256SUMS                         of the archives, for sha256sum --check
//
// The same commit and the same Go give the same bytes, in every clone and on every
// platform: paths are trimmed, cgo is off, what the environment could change is
// set, and an archive has sorted entries that belong to root and carry the time of
// the commit. The command checks that itself: it builds the host's binary a
// second time, in a clone elsewhere and with an empty build cache.
//
// docs/release.md says how a release is cut, verified and reproduced. The container
// image is made from the same binaries by a module of its own, image.
//
// The data path, in call order: main, source (git), compile, completions, archive,
// checksums, verify.
package main
