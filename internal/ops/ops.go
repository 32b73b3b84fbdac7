package ops

import (
	"os"
	"os/exec"
	"testing"
)

// enabled is set by `make test-ops`.
const enabled = "RECTIFIER_OPS"

// Require skips a test that is not run by `make test-ops`. There, it fails the
// test if one of the programs, found by name in PATH, is missing.
func Require(t *testing.T, programs ...string) {
	t.Helper()
	if os.Getenv(enabled) != "1" {
		t.Skipf("run by `make test-ops` (%s=1), which installs what this test needs", enabled)
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: `make ops-packages` installs it", err)
		}
	}
}
