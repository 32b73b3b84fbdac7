package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// circumstances are where and when it was measured.
type circumstances struct {
	processor, memory, system, goVersion, commit string
	cores                                        int
	date                                         time.Time
	took                                         time.Duration
}

// lookAround finds the circumstances; what cannot be found is "unknown".
func lookAround(ctx context.Context, root string) circumstances {
	commit := output(ctx, root, "git", "rev-parse", "--short=12", "HEAD")
	if output(ctx, root, "git", "status", "--porcelain", "--untracked-files=no") != "" {
		commit += ", with changes"
	}
	memory := "unknown"
	if kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(valueIn("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		memory = gigabytes.write(kilobytes * 1024 / 1e9)
	}
	return circumstances{
		processor: valueIn("/proc/cpuinfo", "model name"), memory: memory, cores: runtime.NumCPU(),
		system:    "Linux " + strings.TrimSpace(fileOr("/proc/sys/kernel/osrelease", "unknown")) + ", " + runtime.GOARCH,
		goVersion: runtime.Version(), commit: commit, date: time.Now().UTC(),
	}
}

func output(ctx context.Context, dir, name string, args ...string) string {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func fileOr(path, otherwise string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	return string(content)
}

// valueIn returns what a file of lines such as "name : value" says.
func valueIn(path, name string) string {
	for line := range strings.Lines(fileOr(path, "")) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
