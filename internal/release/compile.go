package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// platform is what a binary runs on, in Go's words.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// binary is where the platform's binary goes.
func (p platform) binary(output string) string {
	return filepath.Join(output, "bin", p.os+"_"+p.arch, "rectifier")
}

// host is this machine, whose binary can be run here.
func host() platform { return platform{runtime.GOOS, runtime.GOARCH} }

func parsePlatforms(list string) ([]platform, error) {
	var platforms []platform
	for _, name := range strings.Split(list, ",") {
		os, arch, ok := strings.Cut(name, "/")
		if !ok || os == "" || arch == "" {
			return nil, fmt.Errorf("%q is not a platform such as linux/amd64", name)
		}
		platforms = append(platforms, platform{os, arch})
	}
	return platforms, nil
}

// pinned is what somebody's environment must not change in a binary.
var pinned = []string{
	"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFLAGS=", "GOFIPS140=off", "GODEBUG=", "GOWORK=off",
}

// compile builds the binary of a platform to a path. env comes on top of what is
// pinned.
func compile(ctx context.Context, src *source, p platform, path string, env []string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	env = append(append([]string{"GOOS=" + p.os, "GOARCH=" + p.arch}, pinned...), env...)
	// -buildvcs=true fails where git does not tell the commit, rather than leave it out.
	_, err = output(ctx, src.root, env, "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly",
		"-ldflags", "-s -w -X main.version="+src.version, "-o", path, "./cmd/rectifier")
	if err != nil {
		return fmt.Errorf("building for %s: %w", p, err)
	}
	return nil
}
