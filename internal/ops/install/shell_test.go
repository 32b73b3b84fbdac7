package install

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// shell runs command lines as somebody would who has rectifier, helm and kubectl.
type shell struct {
	*testing.T
	dir        string // where it runs
	kubeconfig string
	home       string // of helm's own files
}

// newShell is a shell that reaches no cluster; with inCluster the test's.
func newShell(t *testing.T) *shell {
	t.Helper()
	programs(t)
	return &shell{T: t, dir: root, kubeconfig: os.DevNull, home: t.TempDir()}
}

func (s *shell) inCluster() *shell {
	s.Helper()
	s.kubeconfig = cluster(s.T).KubeconfigFile()
	return s
}

// run runs a line and returns what it printed on each of its outputs.
func (s *shell) run(line, stdin string) (stdout, stderr string, ok bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a cleanup runs lines too
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+programs(s.T)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+s.kubeconfig, "HOME="+s.home, "XDG_CACHE_HOME="+s.home, "XDG_CONFIG_HOME="+s.home, "XDG_DATA_HOME="+s.home)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.Fatalf("run %s: %v", line, err)
	}
	return out.String(), errs.String(), err == nil
}

// must runs a line that must succeed.
func (s *shell) must(line string) string {
	s.Helper()
	return s.mustWith("", line)
}

// mustWith is must with a standard input.
func (s *shell) mustWith(stdin, line string) string {
	s.Helper()
	stdout, stderr, ok := s.run(line, stdin)
	if !ok {
		s.Fatalf("%s\n%s%s", line, stdout, stderr)
	}
	return stdout
}

// refused runs a line that must fail, and returns all that it printed.
func (s *shell) refused(stdin, line string) string {
	s.Helper()
	stdout, stderr, ok := s.run(line, stdin)
	if ok {
		s.Errorf("%s is not refused:\n%s%s", line, stdout, stderr)
	}
	return stdout + stderr
}
