package binaries

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// progressInterval is how often a build says that it is alive.
const progressInterval = 15 * time.Second

// Build makes sure that the named binaries exist and returns the folder that
// holds them. A cold build of kube-apiserver takes about ten minutes on two
// cores; progress, one line every 15 s, goes to w. Where all exist, nothing is
// written and nothing is run. When ctx ends the build stops, and what the Go
// build cache has by then is kept.
func Build(ctx context.Context, names []string, w io.Writer) (dir string, err error) {
	modules, err := findModules()
	if err != nil {
		return "", err
	}
	if dir, err = modules.cacheDir(); err != nil {
		return "", err
	}
	if len(missing(dir, names)) == 0 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache folder: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, ".lock"), func() {
		fmt.Fprintln(w, "control plane: waiting for another build to finish")
	})
	if err != nil {
		return "", fmt.Errorf("locking the cache folder: %w", err)
	}
	defer unlock()
	if modules.kubernetes.generated {
		if modules.kubernetes.dir, err = generate(ctx, dir, modules.kubernetes.version); err != nil {
			return "", fmt.Errorf("making a module for Kubernetes %s: %w", modules.kubernetes.version, err)
		}
	}
	for _, name := range missing(dir, names) { // again: the other build may have built them
		if err := modules.build(ctx, name, dir, w); err != nil {
			return "", fmt.Errorf("building %s: %w", name, err)
		}
	}
	return dir, nil
}

func missing(dir string, names []string) []string {
	var absent []string
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, name)
		}
	}
	return absent
}

// build compiles one binary and moves it into place.
func (m *modules) build(ctx context.Context, name, dir string, w io.Writer) error {
	recipe, err := m.recipe(name)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, ".build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	args := []string{"build", "-v", "-ldflags", recipe.ldflags, "-o", filepath.Join(tmp, name)}
	if recipe.module.generated {
		args = append(args, generatedBuildFlags...)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, recipe.pkg)...)
	cmd.Dir = recipe.module.dir
	// CGO_ENABLED=0: neither server needs a C compiler, and the binaries then
	// run wherever the cache is copied to.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}

	fmt.Fprintf(w, "control plane: building %s %s, once (minutes from cold, seconds from a warm Go build cache)\n", name, recipe.module.version)
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	last := follow(output, name, w)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", recipe.module.dir, err, strings.Join(last, "\n"))
	}
	if err := os.Rename(filepath.Join(tmp, name), filepath.Join(dir, name)); err != nil {
		return err
	}
	fmt.Fprintf(w, "control plane: built %s in %s\n", filepath.Join(dir, name), time.Since(start).Round(time.Second))
	return nil
}

// follow reads the output of `go build -v` to its end, reports progress, and
// returns the last lines, which hold the reason if the build failed.
func follow(output io.Reader, name string, w io.Writer) []string {
	var (
		mu                   sync.Mutex
		downloaded, compiled int
		last                 []string
		start                = time.Now()
		done                 = make(chan struct{})
		reporter             sync.WaitGroup
	)
	reporter.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				mu.Lock()
				fmt.Fprintf(w, "control plane: %s: %s, %d modules downloaded, %d packages compiled\n",
					name, time.Since(start).Round(time.Second), downloaded, compiled)
				mu.Unlock()
			}
		}
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		mu.Lock()
		if strings.HasPrefix(line, "go: downloading ") {
			downloaded++
		} else {
			compiled++ // -v prints each package as it compiles; nothing else is printed unless the build fails
			last = append(last, line)
			last = last[max(0, len(last)-20):]
		}
		mu.Unlock()
	}
	// A line beyond the scanner's limit must not block the compiler.
	_, _ = io.Copy(io.Discard, output)
	close(done)
	reporter.Wait()
	return last
}
