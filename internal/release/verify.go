package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// verify builds the host's binary again, in a clone of the commit with an empty
// build cache, and fails if a byte differs from the first build.
func verify(ctx context.Context, src *source, first string, w io.Writer) error {
	fmt.Fprintf(w, "verifying: building %s again, in a clone with an empty build cache (some minutes)\n", host())
	start := time.Now()
	dir, err := os.MkdirTemp("", "rectifier-reproduce-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	clone := *src
	clone.root = filepath.Join(dir, "a clone")
	if _, err := git(ctx, dir, "clone", "--quiet", src.root, clone.root); err != nil {
		return err
	}
	if _, err := git(ctx, clone.root, "checkout", "--quiet", "--detach", src.commit); err != nil {
		return err
	}
	second := filepath.Join(dir, "rectifier")
	if err := compile(ctx, &clone, host(), second, []string{"GOCACHE=" + filepath.Join(dir, "cache")}); err != nil {
		return err
	}
	return compare(first, second, start, w)
}

func compare(first, second string, start time.Time, w io.Writer) error {
	a, err := sha256File(first)
	if err != nil {
		return err
	}
	b, err := sha256File(second)
	if err != nil {
		return err
	}
	if a != b {
		return fmt.Errorf("the build is not reproducible: %s here, %s in a clone", a, b)
	}
	fmt.Fprintf(w, "verified: the same bytes in %s\n", time.Since(start).Round(time.Second))
	return nil
}

// checkVersion runs a binary and compares the version that it prints.
func checkVersion(ctx context.Context, src *source, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	printed, err := output(ctx, src.root, nil, binary, "version", "-o", "json")
	if err != nil {
		return err
	}
	var answer struct{ Version string }
	if err := json.Unmarshal([]byte(printed), &answer); err != nil {
		return fmt.Errorf("reading the answer of rectifier version: %w", err)
	}
	if answer.Version != src.version {
		return fmt.Errorf("the binary says that it is %q, not %q", answer.Version, src.version)
	}
	return nil
}
