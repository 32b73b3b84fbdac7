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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks a command to end; a second one ends the process.
	context.AfterFunc(ctx, stop)
	code := execute(ctx, commandLine(os.Args), streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
