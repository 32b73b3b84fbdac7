package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// circumstances are where and when it was measured.
type circumstances struct {
	processor, memory, system, goVersion string
	cores                                int
	date                                 time.Time
	took                                 time.Duration
}

// lookAround finds the circumstances; what cannot be found is "unknown".
func lookAround() circumstances {
	memory := "unknown"
	if kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(valueIn("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		memory = gigabytes.write(kilobytes * 1024 / 1e9)
	}
	return circumstances{
		processor: valueIn("/proc/cpuinfo", "model name"), memory: memory, cores: runtime.NumCPU(),
		system:    "Linux " + strings.TrimSpace(fileOr("/proc/sys/kernel/osrelease", "unknown")) + ", " + runtime.GOARCH,
		goVersion: runtime.Version(), date: time.Now().UTC(),
	}
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
