package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// descriptor points at a blob of an OCI image layout.
type descriptor struct {
	Digest   string
	Platform struct{ OS, Architecture string }
}

// document has what is needed of an index, a manifest and a configuration.
type document struct {
	Manifests []descriptor
	Layers    []descriptor
	Config    json.RawMessage // a descriptor in a manifest, settings in a configuration
}

// settings are how an image is started.
type settings struct {
	User       string
	Entrypoint []string
	Env        []string
}

// unpack unpacks an archive's only image into a folder, as a runtime would.
func unpack(t *testing.T, archive, root string) settings {
	t.Helper()
	content, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	layout := t.TempDir()
	untar(t, content, layout)

	index := read(t, filepath.Join(layout, "index.json"))
	images := blob(t, layout, index.Manifests[0])
	if len(images.Manifests) != 1 {
		t.Fatalf("want one platform, got %v", images.Manifests)
	}
	manifest := blob(t, layout, images.Manifests[0])
	for _, layer := range manifest.Layers {
		compressed, err := os.Open(blobPath(layout, layer))
		if err != nil {
			t.Fatal(err)
		}
		defer compressed.Close()
		plain, err := gzip.NewReader(compressed)
		if err != nil {
			t.Fatal(err)
		}
		untar(t, plain, root)
	}
	var where descriptor
	var how settings
	decode(t, manifest.Config, &where)
	decode(t, blob(t, layout, where).Config, &how)
	return how
}

func blobPath(layout string, d descriptor) string {
	return filepath.Join(layout, "blobs", strings.Replace(d.Digest, ":", "/", 1))
}

// blob reads a document and checks its digest.
func blob(t *testing.T, layout string, d descriptor) document {
	t.Helper()
	path := blobPath(layout, d)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); sum != d.Digest {
		t.Fatalf("the blob %s has the digest %s", d.Digest, sum)
	}
	return read(t, path)
}

func read(t *testing.T, path string) document {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	decode(t, content, &d)
	return d
}

func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.NewDecoder(bytes.NewReader(content)).Decode(into); err != nil {
		t.Fatal(err)
	}
}

func untar(t *testing.T, content io.Reader, root string) {
	t.Helper()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = writeFile(path, header.FileInfo().Mode(), archive)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeFile(path string, mode os.FileMode, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, content)
	return err
}
