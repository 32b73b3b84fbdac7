// Command rectifier puts Kubernetes objects right that already exist, by rules
// in YAML. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is with nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal asks a command to end; a second one ends the process.
	context.AfterFunc(ctx, stop)
	code := execute(ctx, commandLine(os.Args), streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
