package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A command that waits for standard input ends at the first signal.
func TestASignalEndsWhatOnlyReads(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "rectifier")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rule := filepath.Join(t.TempDir(), "rule.yaml")
	if err := os.WriteFile(rule, []byte("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r}\nspec:\n  resource: {group: \"\", version: v1, resource: pods}\n  patch: {merge: {metadata: {labels: {a: b}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup makes children ignore it
		signals = append(signals, syscall.SIGHUP)
	}
	for _, args := range [][]string{
		{"lint", "-"}, {"test", "-"}, {"rbac", "-r", "-"}, {"import", "-"},
		{"fix", "-r", rule, "-"}, {"diff", "-r", rule, "-"}, {"explain", "-r", rule, "-f", "-"},
	} {
		for _, sig := range signals {
			cmd := exec.Command(binary, args...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// More than a pipe holds: when it is written, the command reads.
			if _, err := in.Write(bytes.Repeat([]byte("# a comment\n"), 20_000)); err != nil {
				t.Errorf("%v does not read: %v", args, err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Error(err)
			}
			stuck := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			err = cmd.Wait()
			if !stuck.Stop() {
				t.Errorf("%v goes on after %v", args, sig)
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Errorf("%v ended with %v", args, err)
			}
		}
	}
}
