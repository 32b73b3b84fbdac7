// Command skew runs the tests of the packages named on its command line against
// the Kubernetes that RECTIFIER_KUBERNETES_VERSION names, and prints what became of
// them: `make skew`. The servers must be built.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
)

// timeout is for each package; the longest takes about five minutes.
const timeout = 30 * time.Minute

func main() {
	version := os.Getenv(binaries.VersionVariable)
	if version == "" || len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "usage: %s=1.34.4 skew PACKAGE...\n", binaries.VersionVariable)
		os.Exit(2)
	}
	if err := run(version, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "skew:", err)
		os.Exit(1)
	}
}

func run(version string, packages []string) error {
	// Without the test cache, which does not know the servers.
	// Without the race detector: `make test` has it, and it finds nothing about servers.
	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1", "-timeout", timeout.String()}, packages...)...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running go test: %w", err)
	}
	r, readErr := read(output, os.Stdout)
	runErr := cmd.Wait()
	if readErr != nil {
		return fmt.Errorf("reading the results: %w", readErr)
	}
	r.print(os.Stdout, version, time.Now())
	return runErr
}
