package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"path"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// file is an entry of a layer or of an archive, without a leading slash.
type file struct {
	name    string
	mode    int64
	content []byte
}

// systemFiles are what Go programs look for in a file system.
func systemFiles() []file {
	return []file{
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
	}
}

// certificates are the roots of Mozilla's list, from a module, so that go.sum pins
// them. A root that is trusted only for what it signed before a date is left out:
// a PEM file cannot say that.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}

// newLayer makes a layer whose bytes depend on nothing but the arguments.
func newLayer(files []file, modified time.Time) (v1.Layer, error) {
	content, err := writeTar(files, modified)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
}

// writeTar writes files with their folders, sorted, owned by root.
func writeTar(files []file, modified time.Time) ([]byte, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, f := range withFolders(files) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
			Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: modified.UTC(),
		}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil { // it writes the end
		return nil, err
	}
	return content.Bytes(), nil
}

// withFolders adds the folders of the files and sorts: a folder comes before what
// is in it.
func withFolders(files []file) []file {
	all := append([]file(nil), files...)
	seen := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, file{dir + "/", 0o755, nil})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}
