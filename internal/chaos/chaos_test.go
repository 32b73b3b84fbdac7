package chaos

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var long = flag.Bool("long", false, "run the scenarios that take minutes, too")

// scenario is one fault.
type scenario struct {
	name  string // of the subtest
	fault string // what is done, in the words of the table
	long  bool   // it takes more than some 15 seconds: not part of `make test`
	run   func(t *trial)
}

// scenarios are all faults, in the order of the table.
var scenarios = slices.Concat(serverFaults, networkFaults, watchFaults, throttlingFaults, webhookFaults, credentialFaults, lifecycleFaults, fightFaults, instanceFaults, soaks)

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(childEnv); kubeconfig != "" {
		os.Exit(runChild(kubeconfig, os.Stdin, os.Stdout))
	}
	flag.Parse()
	// Each informer warns that the mutation detector is on: that is no row of the table.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	code := testcluster.Main(m)
	removeBinary()
	os.Exit(code)
}

func TestChaos(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			if s.long && !*long {
				t.Skip("it takes minutes: `make chaos` runs it")
			}
			trial := &trial{T: t, began: time.Now()}
			t.Cleanup(func() { trial.row(s.fault) })
			s.run(trial)
			trial.ended = true
		})
	}
}

// row prints a row of the table.
func (t *trial) row(fault string) {
	verdict := "ok"
	switch {
	case t.Skipped():
		verdict = "skipped"
	case t.Failed() || !t.ended:
		verdict = "FAILED"
	}
	fmt.Printf("%-7s %4.0fs  %s\n", verdict, time.Since(t.began).Seconds(), fault)
	for _, line := range t.happened {
		fmt.Printf("               %s\n", line)
	}
}
