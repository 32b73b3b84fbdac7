package chaos

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// process is the real binary, running under a user of its own.
type process struct {
	*lab
	user  string
	cmd   *exec.Cmd
	log   *logLines     // standard output and standard error
	ended chan struct{} // closed when it has ended
}

// binary builds rectifier once for all tests, with the race detector if they
// have it.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rectifier-chaos-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "rectifier")
	args := []string{"build", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/rectifier-dev/rectifier/cmd/rectifier")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build rectifier: %w\n%s", err, out)
	}
	built = dir
	return path, err
})

// built is the folder of the binary, if one was built.
var built string

// removeBinary is for the end of all tests.
func removeBinary() {
	if built != "" {
		_ = os.RemoveAll(built)
	}
}

// ruleFiles writes rules for a process and returns their folder; NS in them
// stands for the namespace of the lab.
func (l *lab) ruleFiles(ruleYAML ...string) string {
	l.Helper()
	dir := l.TempDir()
	for i, y := range ruleYAML {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rule-%d.yaml", i)), []byte(strings.ReplaceAll(y, "NS", l.ns)), 0o600); err != nil {
			l.Fatal(err)
		}
	}
	return dir
}

// launch starts `rectifier run` with these rules and flags, under a fresh user of
// these groups. It is killed when the trial ends.
func (l *lab) launch(rules string, groups []string, flags ...string) *process {
	l.Helper()
	path, err := binary()
	if err != nil {
		l.Fatal(err)
	}
	p := &process{lab: l, user: fmt.Sprintf("rectifier-%d", labs.Add(1)), log: &logLines{}, ended: make(chan struct{})}
	kubeconfig := filepath.Join(l.TempDir(), "kubeconfig")
	if err := l.cp.WriteKubeconfig(kubeconfig, p.user, groups...); err != nil {
		l.Fatal(err)
	}
	p.cmd = exec.Command(path, append([]string{"run", "--kubeconfig", kubeconfig, "--rules", rules, "--builtin", "none", "--bind-address", "127.0.0.1:0"}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	endWithTests(p.cmd)
	if err := p.cmd.Start(); err != nil {
		l.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	l.Cleanup(func() {
		_ = p.cmd.Process.Kill() // also if it is stopped; harmless if it has ended
		<-p.ended
		if l.Failed() {
			l.Logf("what %s logged:\n%s", p.user, strings.Join(p.log.matching(""), ""))
		}
		if races := p.log.matching("WARNING: DATA RACE"); len(races) > 0 {
			l.Errorf("%s has data races", p.user)
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatalf("send %v to %s: %v", s, p.user, err)
	}
}

func (p *process) runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// wantExit waits until the process has ended with a code, and returns how long
// that took.
func (p *process) wantExit(within time.Duration, code int) time.Duration {
	p.Helper()
	began := time.Now()
	select {
	case <-p.ended:
	case <-time.After(within):
		p.Fatalf("%s still runs after %v", p.user, within)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.Errorf("%s ended with %v, want exit code %d", p.user, p.cmd.ProcessState, code)
	}
	return time.Since(began)
}

var servingAddress = regexp.MustCompile(`Serving status, metrics and health checks.* address="([^"]+)"`)

// get asks the process itself, such as for /readyz.
func (p *process) get(path string) (code int, body string, err error) {
	serving := p.log.matching("Serving status, metrics and health checks")
	if len(serving) == 0 {
		return 0, "", errors.New("it serves nothing yet")
	}
	address := servingAddress.FindStringSubmatch(serving[0])
	if address == nil {
		return 0, "", fmt.Errorf("no address in %s", serving[0])
	}
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + address[1] + path)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// wantReadyz waits until /readyz answers with a code and has a text in it.
func (p *process) wantReadyz(within time.Duration, code int, text string) {
	p.Helper()
	testcluster.Eventually(p, within, func() error {
		got, body, err := p.get("/readyz")
		if err == nil && (got != code || !strings.Contains(body, text)) {
			err = fmt.Errorf("%s: /readyz is %d without %q:\n%s", p.user, got, text, body)
		}
		return err
	})
}

// ticks is how often the clock of /proc/PID/stat ticks in a second, on all Linux
// of today.
const ticks = 100

// cpu is the time that the process has computed so far.
func (p *process) cpu() time.Duration {
	p.Helper()
	if !p.runs() {
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	// The second field is a name in brackets, which may have spaces; utime and
	// stime are the 14th and the 15th.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var sum int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			p.Fatalf("read /proc/PID/stat: %v", err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks
}
