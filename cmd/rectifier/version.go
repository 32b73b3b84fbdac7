package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is stamped at release by -ldflags "-X main.version=…".
var version = ""

// build is what the binary is.
type build struct {
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

func newVersion(s streams) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Version prints the version of the binary, and what it was built with and for.",
		Example: `  rectifier version
  rectifier version -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := output.check(); err != nil {
				return err
			}
			b := build{versionString(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if output.value != "text" {
				return printData(s, output.value, b)
			}
			_, err := fmt.Fprintf(s.out, "rectifier %s (%s, %s)\n", b.Version, b.GoVersion, b.Platform)
			return err
		},
	}
	output.add(cmd, "text", "json", "yaml")
	return cmd
}

func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
