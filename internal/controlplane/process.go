package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// guardScript waits for the end of its standard input, then ends what the
// launchers recorded in the folder $1 and removes it.
const guardScript = `read -r _
for file in "$1"/*.pid; do
	test -e "$file" && read -r pid < "$file" && kill -s KILL -- "-$pid"
done
rm -rf "$1"`

// guard is the process that outlives this one by as long as it takes to clean up.
type guard struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func startGuard(dir string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "rectifier-control-plane-guard", dir)
	cmd.SysProcAttr = ownProcessGroup() // a Ctrl-C in the terminal is not for the guard
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	return &guard{cmd: cmd, stdin: stdin}, nil
}

// release lets the guard clean up and waits for it.
func (g *guard) release() error {
	g.stdin.Close()
	// Its exit code is that of its last command, rm, and so worth reporting.
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("waiting for the guard: %w", err)
	}
	return nil
}

// writeLauncher writes the script that becomes the server at path. Each server
// leads a process group of its own, so that the recorded id names both.
func writeLauncher(dir, name, path string) (string, error) {
	script := fmt.Sprintf("#!/bin/sh\necho $$ > '%s'\nexec '%s' \"$@\"\n",
		strings.ReplaceAll(pidFile(dir, name), "'", `'\''`), strings.ReplaceAll(path, "'", `'\''`))
	launcher := filepath.Join(dir, name)
	// A process that another goroutine forks while the file is open for writing
	// would inherit it, and the kernel refuses to execute such a file.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(launcher, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("writing the launcher of %s: %w", name, err)
	}
	return launcher, nil
}

func pidFile(dir, name string) string { return filepath.Join(dir, name+".pid") }

// readPID returns the process id of a server that was started under the name
// and has not been stopped; fs.ErrNotExist when there is none.
func readPID(dir, name string) (int, error) {
	content, err := os.ReadFile(pidFile(dir, name))
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 { // kill(2) gives 0, 1 and -1 meanings that nobody wants here
		return 0, fmt.Errorf("bad process id %q", content)
	}
	return pid, nil
}

// forgetPID is called when a server has ended, so that its id is never taken
// for that of a later process.
func forgetPID(dir, name string) error {
	if err := os.Remove(pidFile(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// killServer kills the server that was started under the name, if any.
func killServer(dir, name string) error {
	pid, err := readPID(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// process is a server that envtest does not start.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func startProcess(launcher string, args []string, log io.Writer) (*process, error) {
	p := &process{cmd: exec.Command(launcher, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = ownProcessGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended does not matter: its log says more
	}()
	return p, nil
}

// stop asks the process to end, then makes it, and returns when it has.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(5 * time.Second):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", filepath.Base(p.cmd.Path), err)
	}
	<-p.done
	return nil
}

func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// tail passes a server's log on and keeps its end.
type tail struct {
	next io.Writer

	mu   sync.Mutex
	kept []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.kept = append(t.kept, p...)
	if excess := len(t.kept) - tailSize; excess > 0 {
		t.kept = append(t.kept[:0], t.kept[excess:]...)
	}
	t.mu.Unlock()
	return t.next.Write(p)
}

func (t *tail) lastLines(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.kept), []byte("\n"))
	lines = lines[max(0, len(lines)-12):]
	return "last log lines of " + name + ":\n  " + string(bytes.Join(lines, []byte("\n  ")))
}

// syncWriter lets several servers write to one writer, which may be nil.
type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *syncWriter) Write(p []byte) (int, error) {
	if s.w == nil {
		return len(p), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
