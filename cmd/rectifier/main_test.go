package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

func TestMain(m *testing.M) {
	run := func() {
		os.Exit(execute(context.Background(), commandLine(os.Args), streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	testscript.Main(withCluster{m}, map[string]func(){
		"rectifier":                run,
		"kubectl-rectify":          run,
		"kubectl_complete-rectify": run,
	})
}

// withCluster stops the API server that tests have started.
type withCluster struct{ *testing.M }

func (m withCluster) Run() int { return testcluster.Main(m.M) }

// TestScripts runs the command lines in testdata: each file holds its input,
// the commands and what they must print.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: os.Getenv("UPDATE") != ""})
}
