//go:build !linux

package prometheus

import "os/exec"

// endWithTests can do nothing here: a process outlives tests that panic.
func endWithTests(*exec.Cmd) {}
