package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// processorTime returns how long a process has computed, over all cores. It is the
// clock of the process (clock_getcpuclockid(3)): /proc/PID/stat counts hundredths
// of a second, and one event costs microseconds.
func processorTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: what the scheduler has measured
	clock := ^pid<<3 | scheduled
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, errno)
	}
	return time.Duration(t.Nano()), nil
}

// peakMemory returns the largest resident set that a process has had, in bytes.
func peakMemory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	_, after, found := strings.Cut(string(status), "\nVmHWM:")
	fields := strings.Fields(after)
	if !found || len(fields) < 2 || fields[1] != "kB" {
		return 0, fmt.Errorf("read the memory of process %d: no VmHWM", pid)
	}
	kilobytes, err := strconv.ParseFloat(fields[0], 64)
	return kilobytes * 1024, err
}

// peakOf returns the same of a process that has ended.
func peakOf(usage any) float64 { return float64(usage.(*syscall.Rusage).Maxrss) * 1024 }

// contenderAttributes make a contender end with the driver, however that ends, and
// keep a Ctrl-C in the terminal from it.
func contenderAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
