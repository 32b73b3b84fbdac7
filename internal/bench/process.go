package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Names of contenders, as they appear in the tables.
const (
	ours          = "rectifier"
	oursWhole     = "rectifier --full-objects"
	typedJSON     = "typed, JSON"
	typedProtobuf = "typed, protobuf"
	plainDynamic  = "dynamic informer"
	patchLoop     = "patch loop"
	cacheAlone    = "cache alone"

	patchLoopWatched = "patch loop, watched"
)

// contender is a program that is measured.
type contender struct {
	name    string
	program string
	args    []string
	// kubeconfig is a file; empty: that of the API server.
	kubeconfig string
}

// startTimeout is how long a contender may take until it is ready, and stopTimeout
// until it has ended.
const (
	startTimeout = 5 * time.Minute
	stopTimeout  = 25 * time.Second
)

// process is a contender that runs.
type process struct {
	contender
	address string
	started time.Time
	cmd     *exec.Cmd
	log     string        // file
	done    chan struct{} // closed when it has ended
	err     error         // how it ended; read after done
}

// start runs a contender against the API server.
func (s *suite) start(c contender) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(s.dir, c.program+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{contender: c, address: address, log: log.Name(), done: make(chan struct{})}
	kubeconfig := cmp.Or(c.kubeconfig, s.plane.KubeconfigFile())
	p.cmd = exec.Command(filepath.Join(s.dir, c.program), append(slices.Clone(c.args), "--bind-address="+address, "--kubeconfig="+kubeconfig)...)
	// The detector keeps a copy of each object: it is for tests.
	p.cmd.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=false")
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, contenderAttributes()
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (p *process) cpu() (time.Duration, error) { return processorTime(p.cmd.Process.Pid) }

func (p *process) peak() (float64, error) { return peakMemory(p.cmd.Process.Pid) }

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap returns the bytes of the live heap: what is left after two collections, the
// second of which frees what finalizers and pools held.
func (p *process) heap(ctx context.Context) (float64, error) {
	var live float64
	for range 2 {
		body, err := p.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return 0, err
		}
		m := heapAlloc.FindSubmatch(body)
		if m == nil {
			return 0, fmt.Errorf("read the heap of %s: the profile does not tell", p.name)
		}
		if live, err = strconv.ParseFloat(string(m[1]), 64); err != nil {
			return 0, err
		}
	}
	return live, nil
}

// get reads what the process serves; an error if that is not 200.
func (p *process) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", p.name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("ask %s for %s: %s", p.name, path, response.Status)
	}
	return body, err
}

// stop ends the process in order. It may have ended by itself.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not stop within %s", p.name, stopTimeout)
	}
	if p.err != nil {
		return p.failed()
	}
	return nil
}

// kill ends the process at once. It must not have ended by itself.
func (p *process) kill() error {
	select {
	case <-p.done:
		return p.failed()
	default:
	}
	err := p.cmd.Process.Kill()
	<-p.done
	return err
}

// failed tells of a process that has ended and should not have.
func (p *process) failed() error {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return errors.Join(p.err, err)
	}
	return fmt.Errorf("%s has ended (%v); the end of its log:\n%s", p.name, p.err, content[max(0, len(content)-2000):])
}
