//go:build linux

package prometheus

import (
	"os/exec"
	"syscall"
)

// endWithTests has the kernel end a process when that of the tests ends, however
// it does.
func endWithTests(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
