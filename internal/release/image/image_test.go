package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// binaries builds a small program that knows its commit, for both platforms.
func binaries(t *testing.T) string {
	t.Helper()
	source, out := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module example.org/p\n\ngo 1.26.0\n",
		"main.go": "package main\n\nfunc main() { println(\"it runs\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, source, nil, "git", "init", "-q")
	run(t, source, nil, "git", "add", ".")
	run(t, source, []string{"GIT_COMMITTER_DATE=2026-01-02T03:04:05Z"},
		"git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "program")
	for _, arch := range []string{"amd64", "arm64"} {
		run(t, source, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch},
			"go", "build", "-trimpath", "-buildvcs=true", "-o", filepath.Join(out, "linux_"+arch, "rectifier"), ".")
	}
	return out
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
}

func testOptions(t *testing.T) options {
	return options{
		binaries: binaries(t), platforms: []string{"linux/amd64", "linux/arm64"},
		version: "v1.2.3", name: "registry.example/rectifier",
	}
}

// extract unpacks an archive or a layer.
func extract(t *testing.T, content io.Reader) map[string]*tar.Header {
	t.Helper()
	headers := map[string]*tar.Header{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return headers
		} else if err != nil {
			t.Fatal(err)
		}
		headers[header.Name] = header
	}
}

func TestTheSameBinariesGiveTheSameBytes(t *testing.T) {
	o := testOptions(t)
	var archives [2][]byte
	for i := range archives {
		path := filepath.Join(t.TempDir(), "image.tar")
		if _, err := writeImage(o, path); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = content
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same binaries differ")
	}
}

// TestARegistryServesEachPlatformItsImage goes the way of a release: from the
// archive into a registry, and from there to machines of both kinds.
func TestARegistryServesEachPlatformItsImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	digest, err := writeImage(testOptions(t), path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run(t, dir, nil, "tar", "-xf", path)
	index := readLayout(t, dir)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/rectifier:1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(image); err != nil {
			t.Errorf("the image for %s: %v", arch, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch || config.OS != "linux" || config.Config.User != "65532:65532" {
			t.Errorf("the image for %s says %s/%s, user %s", arch, config.OS, config.Architecture, config.Config.User)
		}
		if created := config.Created.UTC().Format("2006-01-02T15:04:05"); created != "2026-01-02T03:04:05" {
			t.Errorf("created %s, not at the time of the commit", created)
		}
	}
	pushed, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pushed.Digest(); err != nil || got.String() != digest {
		t.Errorf("the registry has %s (%v), make image said %s", got, err, digest)
	}
}

// readLayout returns the one index of a layout, and checks its names.
func readLayout(t *testing.T, dir string) v1.ImageIndex {
	t.Helper()
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout's index: %+v, %v", manifest, err)
	}
	want := map[string]string{
		"org.opencontainers.image.ref.name": "1.2.3",
		"io.containerd.image.name":          "registry.example/rectifier:1.2.3",
	}
	if diff := cmp.Diff(want, manifest.Manifests[0].Annotations); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestTheFileSystem(t *testing.T) {
	m, err := build(testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := m.image.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := m.image.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for name, header := range extract(t, content) {
			modes[name] = header.Mode
			if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(m.created) {
				t.Errorf("%s: user %d:%d, %s", name, header.Uid, header.Gid, header.ModTime)
			}
		}
	}
	want := map[string]int64{
		"etc/": 0o755, "etc/passwd": 0o644, "etc/group": 0o644,
		"etc/ssl/": 0o755, "etc/ssl/certs/": 0o755, "etc/ssl/certs/ca-certificates.crt": 0o644,
		"usr/": 0o755, "usr/local/": 0o755, "usr/local/bin/": 0o755, "usr/local/bin/rectifier": 0o755,
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(certificates()) {
		t.Error("no certificate authority can be read")
	}
}

func TestRefusals(t *testing.T) {
	o := testOptions(t)
	if _, err := writeImage(o, ""); err == nil {
		t.Error("an image without a file to write to is made")
	}
	o.platforms = []string{"linux"}
	if _, err := build(o); err == nil {
		t.Error("linux is taken for a platform")
	}
	o.platforms = []string{"linux/s390x"}
	if _, err := build(o); err == nil {
		t.Error("an image is made without a binary")
	}
	unknown := filepath.Join(o.binaries, "linux_s390x")
	run(t, o.binaries, nil, "mkdir", unknown)
	run(t, "../image", []string{"CGO_ENABLED=0"}, "go", "build", "-buildvcs=false", "-o", filepath.Join(unknown, "rectifier"), ".")
	if _, err := build(o); err == nil || !strings.Contains(err.Error(), "does not know its commit") {
		t.Errorf("a binary without a commit: %v", err)
	}
}
