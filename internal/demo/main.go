package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// exitInterrupted is what shells report for a process that SIGINT has ended.
const exitInterrupted = 130

func main() {
	keep := flag.Bool("keep", false, "leave everything up at the end, until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends this process at once; the guards still clean up.
	context.AfterFunc(ctx, stop)

	out := newScreen(os.Stdout)
	err := run(ctx, out, *keep)
	switch {
	case errors.Is(err, context.Canceled):
		out.line("")
		out.line("Interrupted; everything is stopped.")
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
