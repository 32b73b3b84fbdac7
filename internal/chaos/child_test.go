package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/rules"
)

// childEnv makes this test binary run an engine instead of tests, with the
// kubeconfig that it names.
const childEnv = "RECTIFIER_CHAOS_CHILD"

// child is an engine in a process of its own, whose memory is nobody else's.
type child struct {
	*trial
	orders *json.Encoder
	lines  *bufio.Reader
	stop   func() // and wait until it has ended
}

// order is a line to the child; each is answered with a report.
type order struct {
	Rules []string // to be put in force; none: as they are
}

// report is how the child is, after a garbage collection.
type report struct {
	Heap       uint64         // bytes in use
	Goroutines int            // all of them
	Sent       map[string]int // as traffic counts it
	Error      string         // why the order was not carried out

	at time.Time
}

// startChild runs an engine with these rules as a user of its own.
func (l *lab) startChild(ruleYAML ...string) (_ *child, user string) {
	l.Helper()
	user = fmt.Sprintf("rectifier-%d", labs.Add(1))
	kubeconfig := filepath.Join(l.TempDir(), "kubeconfig")
	if err := l.cp.WriteKubeconfig(kubeconfig, user, "system:masters"); err != nil {
		l.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		l.Fatal(err)
	}
	command := exec.Command(executable)
	// The mutation detector keeps copies of all objects for some minutes.
	command.Env = append(os.Environ(), childEnv+"="+kubeconfig, "KUBE_CACHE_MUTATION_DETECTOR=false")
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		l.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		l.Fatal(err)
	}
	if err := command.Start(); err != nil {
		l.Fatal(err)
	}
	c := &child{trial: l.trial, orders: json.NewEncoder(stdin), lines: bufio.NewReader(stdout)}
	stopped := false
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		stdin.Close() // its order to end
		kill := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
		defer kill.Stop()
		if err := command.Wait(); err != nil {
			l.Errorf("the engine's process ended with: %v", err)
		}
	}
	l.Cleanup(c.stop)
	c.order(order{Rules: ruleYAML})
	return c, user
}

// order has the child do something, and returns how it is then.
func (c *child) order(o order) report {
	c.Helper()
	if err := c.orders.Encode(o); err != nil {
		c.Fatalf("the engine's process takes no orders: %v", err)
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.Fatalf("the engine's process does not answer: %v", err)
	}
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		c.Fatalf("the engine's process says %q: %v", line, err)
	}
	if r.Error != "" {
		c.Fatalf("the engine's process: %s", r.Error)
	}
	r.at = time.Now()
	return r
}

// runChild is the child: it carries out orders until there are no more. It
// returns an exit code.
func runChild(kubeconfig string, orders io.Reader, reports io.Writer) int {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var sent traffic
	config.Wrap(sent.wrap)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var e *engine.Engine
	done := make(chan error, 1)
	decoder, encoder := json.NewDecoder(orders), json.NewEncoder(reports)
	for {
		var o order
		if decoder.Decode(&o) != nil {
			break
		}
		r := report{Sent: sent.since(nil)}
		set, err := loadRules(o.Rules)
		switch {
		case err != nil:
		case e == nil:
			if e, err = engine.New(engine.Options{Config: config, Rules: set, QPS: -1}); err == nil {
				go func() { done <- e.Run(ctx) }()
			}
		case len(o.Rules) > 0:
			_, err = e.SetRules(set, nil)
		}
		if err != nil {
			r.Error = err.Error()
		}
		runtime.GC() // what this one finds unused with a finalizer,
		runtime.GC() // goes with this one
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		r.Heap, r.Goroutines = memory.HeapAlloc, runtime.NumGoroutine()
		if err := encoder.Encode(r); err != nil {
			break
		}
	}
	if e == nil {
		return 0
	}
	stop()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func loadRules(ruleYAML []string) (*rules.Set, error) {
	var sources []rules.Source
	for i, y := range ruleYAML {
		sources = append(sources, rules.Source{Name: fmt.Sprintf("rule-%d.yaml", i), Data: []byte(y)})
	}
	set, problems := rules.Load(sources...)
	for _, p := range problems {
		return nil, p
	}
	return set, nil
}
