package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// sumsFile holds the checksums of the archives.
const sumsFile = "SHA256SUMS"

// file is an entry of an archive.
type file struct {
	name    string // with slashes
	mode    int64
	content []byte
}

// completionFiles are the scripts by the names that the shells look for.
var completionFiles = map[string]string{
	"bash":       "completions/rectifier.bash",
	"zsh":        "completions/_rectifier",
	"fish":       "completions/rectifier.fish",
	"powershell": "completions/rectifier.ps1",
}

// commonFiles are what all archives have: texts of the tree, and the completion
// scripts, which the host's binary prints and which are the same on all platforms.
func commonFiles(ctx context.Context, src *source, binary string) ([]file, error) {
	var files []file
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		content, err := os.ReadFile(filepath.Join(src.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, content})
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	for shell, name := range completionFiles {
		script, err := output(ctx, src.root, nil, binary, "completion", shell)
		if err != nil {
			return nil, fmt.Errorf("making the completion script for %s: %w", shell, err)
		}
		files = append(files, file{name, 0o644, []byte(script)})
	}
	return files, nil
}

// writeArchive writes a .tar.gz whose bytes depend on nothing but the arguments.
func writeArchive(path, folder string, modified time.Time, files []file) error {
	var compressed bytes.Buffer
	zipper, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipper)
	files = append([]file(nil), files...)
	sort.Slice(files, func(i, j int) bool { return files[i].name < files[j].name })
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
			Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: modified,
			Uname: "root", Gname: "root", // the ids are 0
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := zipper.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, compressed.Bytes(), 0o644)
}

// checksums returns the lines that sha256sum would print in the folder.
func checksums(folder string, names []string) (string, error) {
	var lines strings.Builder
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	for _, name := range sorted {
		sum, err := sha256File(filepath.Join(folder, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, name)
	}
	return lines.String(), nil
}

func sha256File(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(content)), nil
}
