package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// defaultSignals lets SIGINT, SIGTERM and SIGHUP end the process at once, unless the
// command has something to bring to an end by itself: most commands only read
// and print, and may be waiting for standard input.
func defaultSignals(cmd *cobra.Command) {
	changed := func(flag string) bool { return cmd.Flags().Changed(flag) }
	switch {
	case cmd.Name() == "run":
	case cmd.Name() == "fix" && changed("in-place"): // it has temporary files
	case cmd.Name() == "diff" && changed("cluster"):
	case cmd.Name() == "explain" && !changed("filename"):
	default:
		signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	}
}
