package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// options are the command line.
type options struct {
	output     string
	version    string // empty: what git says
	platforms  string
	binaries   bool // only build them
	allowDirty bool
	verify     bool
}

func main() {
	var o options
	flag.StringVar(&o.output, "output", "dist", "the folder to write to")
	flag.StringVar(&o.version, "version", "", "the version to stamp (default: git describe)")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "what to build for")
	flag.BoolVar(&o.binaries, "binaries", false, "build the binaries only, for an image")
	flag.BoolVar(&o.allowDirty, "allow-dirty", false, "release a tree with changes that are not committed")
	flag.BoolVar(&o.verify, "verify", true, "build the host's binary again, in a clone with an empty build cache, and compare")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, ".", o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run releases the tree at root.
func run(ctx context.Context, root string, o options, w io.Writer) error {
	src, err := readSource(ctx, root)
	if err != nil {
		return err
	}
	if src.dirty && !o.allowDirty {
		return fmt.Errorf("the tree has changes that are not committed, and nobody could build the same from a commit:\n%s"+
			"commit them, or say --allow-dirty", src.changes)
	}
	if o.version != "" {
		src.version = o.version
	}
	platforms, err := parsePlatforms(o.platforms)
	if err != nil {
		return err
	}
	for _, p := range platforms {
		if err := compile(ctx, src, p, p.binary(o.output), nil); err != nil {
			return err
		}
		fmt.Fprintln(w, "built", p.binary(o.output))
	}
	if o.binaries {
		return nil
	}
	if !slices.Contains(platforms, host()) { // it prints the completion scripts
		if err := compile(ctx, src, host(), host().binary(o.output), nil); err != nil {
			return err
		}
	}
	if err := writeArchives(ctx, src, platforms, o.output, w); err != nil {
		return err
	}
	if err := checkVersion(ctx, src, host().binary(o.output)); err != nil {
		return err
	}
	if !o.verify || src.dirty {
		fmt.Fprintln(w, "not verified: a second build needs a clean tree and --verify")
		return nil
	}
	return verify(ctx, src, host().binary(o.output), w)
}

// writeArchives makes the archives and their checksums, in place of older ones.
func writeArchives(ctx context.Context, src *source, platforms []platform, output string, w io.Writer) error {
	old, err := filepath.Glob(filepath.Join(output, "rectifier_*.tar.gz"))
	if err != nil {
		return err
	}
	for _, path := range append(old, filepath.Join(output, sumsFile)) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	common, err := commonFiles(ctx, src, host().binary(output))
	if err != nil {
		return err
	}
	var names []string
	for _, p := range platforms {
		binary, err := os.ReadFile(p.binary(output))
		if err != nil {
			return err
		}
		folder := strings.Join([]string{"rectifier", src.version, p.os, p.arch}, "_")
		content := append([]file{{"rectifier", 0o755, binary}}, common...)
		if err := writeArchive(filepath.Join(output, folder+".tar.gz"), folder, src.time, content); err != nil {
			return fmt.Errorf("writing the archive for %s: %w", p, err)
		}
		names = append(names, folder+".tar.gz")
	}
	sums, err := checksums(output, names)
	if err != nil {
		return err
	}
	fmt.Fprint(w, sums)
	return os.WriteFile(filepath.Join(output, sumsFile), []byte(sums), 0o644)
}
