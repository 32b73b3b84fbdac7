package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// tool is the package of the command.
const tool = "helm.sh/helm/v4/cmd/helm"

var version = regexp.MustCompile(`(?m)^\s*helm\.sh/helm/v4 (v\S+)`)

// module is internal/tools/helm of the source tree.
type module struct{ dir, version, hash string }

// findModule looks for the module from the working directory upwards.
func findModule() (module, error) {
	start, err := os.Getwd()
	if err != nil {
		return module{}, fmt.Errorf("find the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		folder := filepath.Join(dir, "internal", "tools", "helm")
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil {
			return readModule(folder, content)
		}
		if dir == filepath.Dir(dir) {
			return module{}, fmt.Errorf("there is no internal/tools/helm in %s or above", start)
		}
	}
}

func readModule(dir string, gomod []byte) (module, error) {
	gosum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return module{}, fmt.Errorf("read the module of helm: %w", err)
	}
	match := version.FindSubmatch(gomod)
	if match == nil {
		return module{}, fmt.Errorf("%s/go.mod does not name the version of helm", dir)
	}
	hash := sha256.Sum256(append(gomod, gosum...))
	return module{dir, string(match[1]), fmt.Sprintf("%x", hash[:4])}, nil
}

// path is that of the binary, which need not exist.
func (m module) path() (string, error) {
	cache, err := binaries.CacheDir()
	if err != nil {
		return "", err
	}
	folder := fmt.Sprintf("helm-%s-%s-%s-%s", m.version, runtime.GOOS, runtime.GOARCH, m.hash)
	return filepath.Join(cache, folder, "helm"), nil
}

// build makes sure that the binary exists, and returns its path. Progress goes
// to w; where it exists, nothing is written.
func build(ctx context.Context, w io.Writer) (string, error) {
	m, err := findModule()
	if err != nil {
		return "", err
	}
	path, err := m.path()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".build-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the build: %w", err)
	}
	defer os.RemoveAll(tmp)
	start := time.Now()
	fmt.Fprintf(w, "helm: building %s, once (minutes from cold)\n", m.version)
	if err := m.compile(ctx, filepath.Join(tmp, "helm"), w); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(tmp, "helm"), path); err != nil {
		return "", fmt.Errorf("put helm into the cache: %w", err)
	}
	fmt.Fprintf(w, "helm: built in %s\n", time.Since(start).Round(time.Second))
	return path, nil
}

func (m module) compile(ctx context.Context, to string, w io.Writer) error {
	// Without the version, charts that ask for one would be refused.
	stamp := "-s -w -X helm.sh/helm/v4/internal/version.version=" + m.version
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-ldflags", stamp, "-o", to, tool)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("start the build: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the build: %w", err)
	}
	last := follow(output, w)
	if err := cmd.Wait(); err != nil {
		return errors.Join(fmt.Errorf("build %s: %w", tool, err), errors.New(strings.Join(last, "\n")))
	}
	return nil
}

// follow tells how far a `go build -v` is, and returns its last lines, which
// say why it failed, if it did.
func follow(output io.Reader, w io.Writer) []string {
	var packages atomic.Int64
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(15 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(w, "helm: %d packages compiled or modules downloaded\n", packages.Load())
			}
		}
	}()
	var last []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		packages.Add(1)
		last = append(last, lines.Text())
		last = last[max(0, len(last)-20):]
	}
	_, _ = io.Copy(io.Discard, output)
	close(done)
	<-ended
	return last
}
