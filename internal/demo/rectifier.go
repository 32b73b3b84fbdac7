package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long rectifier may take to finish what it is doing.
const stopTimeout = 25 * time.Second

// watchdogScript waits until its standard input closes, which it does when the
// demo ends in whatever way, then ends process $1 and removes folder $2.
const watchdogScript = `read -r _
test -n "$1" && kill -s KILL "$1" 2>/dev/null
rm -rf "$2"`

// rectifier is the real binary, run as a process of its own.
type rectifier struct {
	dir     string // of the binary, its kubeconfig and its log
	root    string // of the module: the working directory
	address string // of /readyz

	cmd      *exec.Cmd
	done     chan struct{} // closed when the process has ended
	err      error         // how it ended; read after done
	watchdog *exec.Cmd
	leash    io.Closer
}

// moduleRoot is where the examples are.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// buildRectifier builds the binary into a folder that stop removes.
func buildRectifier(ctx context.Context) (*rectifier, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rectifier-demo-")
	if err != nil {
		return nil, err
	}
	r := &rectifier{dir: dir, root: root, address: address}
	build := exec.CommandContext(ctx, "go", "build", "-o", r.binary(), "./cmd/rectifier")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build rectifier: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return r, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (r *rectifier) binary() string     { return filepath.Join(r.dir, "rectifier") }
func (r *rectifier) kubeconfig() string { return filepath.Join(r.dir, "kubeconfig") }
func (r *rectifier) log() string        { return filepath.Join(r.dir, "log") }

// arguments name the two rules of the examples; the built-in one runs by itself.
func (r *rectifier) arguments() []string {
	return []string{"run", "--rules", "examples/image-pull-policy", "--rules", "examples/minimum-backup-retention", "--bind-address", r.address}
}

func (r *rectifier) commandLine() string {
	return "rectifier " + strings.Join(r.arguments(), " ")
}

// start runs the binary, and a watchdog that ends it if the demo is killed.
func (r *rectifier) start() error {
	log, err := os.Create(r.log())
	if err != nil {
		return err
	}
	defer log.Close()
	r.cmd = exec.Command(r.binary(), append(r.arguments(), "--kubeconfig", r.kubeconfig())...)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = r.root, log, log
	// A Ctrl-C in the terminal is for the demo, which stops it in order.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("start rectifier: %w", err)
	}
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		r.err = r.cmd.Wait()
	}()
	return r.startWatchdog()
}

func (r *rectifier) startWatchdog() error {
	dog := exec.Command("/bin/sh", "-c", watchdogScript, "rectifier-demo-watchdog", fmt.Sprint(r.cmd.Process.Pid), r.dir)
	dog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	leash, err := dog.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	if err := dog.Start(); err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	r.watchdog, r.leash = dog, leash
	return nil
}

// exited is an error once the process has ended by itself.
func (r *rectifier) exited() error {
	select {
	case <-r.done:
		return fmt.Errorf("rectifier has ended (%v); its last log lines:\n%s", r.err, r.lastLines())
	default:
		return nil
	}
}

// stop ends the process as a pod's end would, and removes its folder.
func (r *rectifier) stop() error {
	var errs []error
	if r.watchdog != nil { // first: its idea of the process id would be stale
		errs = append(errs, r.watchdog.Process.Kill())
		_ = r.watchdog.Wait() // it was killed
		r.leash.Close()
	}
	if r.done != nil {
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
		select {
		case <-r.done:
		case <-time.After(stopTimeout):
			errs = append(errs, fmt.Errorf("rectifier did not stop within %s", stopTimeout), r.cmd.Process.Kill())
			<-r.done
		}
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// readyz returns the detail of /readyz, and an error if it is not ready.
func (r *rectifier) readyz(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+"/readyz", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask rectifier whether it is ready: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("rectifier is not ready: %s\n%s", response.Status, body)
	}
	return string(body), err
}

// lastLines is the end of its log.
func (r *rectifier) lastLines() string {
	content, err := os.ReadFile(r.log())
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return "  " + string(bytes.Join(lines[max(0, len(lines)-12):], []byte("\n  ")))
}
