//go:build !linux

package main

import (
	"errors"
	"syscall"
	"time"
)

var errNotLinux = errors.New("the benchmark measures processes as Linux shows them")

func processorTime(int) (time.Duration, error) { return 0, errNotLinux }

func peakMemory(int) (float64, error) { return 0, errNotLinux }

func peakOf(any) float64 { return 0 }

func contenderAttributes() *syscall.SysProcAttr { return nil }
