package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := sourceTree()
	if err != nil {
		return err
	}
	version, err := kubernetesVersion(root)
	if err != nil {
		return err
	}
	folder, err := specFolder(version)
	if err != nil {
		return err
	}
	data, err := generate(os.DirFS(folder), version)
	if err != nil {
		return err
	}
	compressed := bytes.Buffer{}
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(data); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	target := filepath.Join(root, "gvr", "openapi", "builtin.json.gz")
	if err := os.WriteFile(target, compressed.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the schemas: %w", err)
	}
	fmt.Printf("%s: %s, %d bytes, %d compressed\n", target, version, len(data), compressed.Len())
	return nil
}

// sourceTree finds the root of this source tree: go generate runs in a package's folder.
func sourceTree() (string, error) {
	output, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find go.mod: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(output))), nil
}

var requirement = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)

// kubernetesVersion is the version that the tests' API server is built from.
func kubernetesVersion(root string) (string, error) {
	gomod, err := os.ReadFile(filepath.Join(root, "internal", "controlplane", "kubernetes", "go.mod"))
	if err != nil {
		return "", fmt.Errorf("find the Kubernetes version: %w", err)
	}
	match := requirement.FindSubmatch(gomod)
	if match == nil {
		return "", fmt.Errorf("internal/controlplane/kubernetes/go.mod requires no k8s.io/kubernetes")
	}
	return string(match[1]), nil
}

// errNotDownloaded says that the module cache lacks k8s.io/kubernetes.
var errNotDownloaded = errors.New("not in the module cache; run: go mod download k8s.io/kubernetes@VERSION")

// specFolder finds the OpenAPI documents in the module cache. It downloads nothing.
func specFolder(version string) (string, error) {
	output, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("find the module cache: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(output)), "k8s.io", "kubernetes@"+version, "api", "openapi-spec", "v3")
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("k8s.io/kubernetes@%s: %w", version, errNotDownloaded)
	} else if err != nil {
		return "", fmt.Errorf("find the OpenAPI documents: %w", err)
	}
	return folder, nil
}
