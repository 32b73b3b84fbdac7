package main

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes an OCI image layout as one tar file. The index of the layout
// names the image's index in the ways that loaders look for: podman and skopeo by
// its tag, containerd (and so kind, k3s and docker) by its full name.
func writeArchive(output string, m *multiPlatform) error {
	dir, err := os.MkdirTemp("", "rectifier-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := index.AppendIndex(m.image, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag(m.version),
		"io.containerd.image.name":          m.name + ":" + tag(m.version),
	})); err != nil {
		return err
	}
	files, err := readFiles(dir)
	if err != nil {
		return err
	}
	content, err := writeTar(files, m.created)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return err
	}
	return os.WriteFile(output, content, 0o644)
}

func readFiles(dir string) ([]file, error) {
	var files []file
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		files = append(files, file{name, 0o644, content})
		return err
	})
	return files, err
}
