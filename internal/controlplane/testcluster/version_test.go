package testcluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// skips records that a test was skipped, and goes on.
type skips struct {
	testing.TB
	reason string
}

func (s *skips) Skipf(format string, args ...any) { s.reason = fmt.Sprintf(format, args...) }

func TestRequireVersion(t *testing.T) {
	for minimum, want := range map[string]bool{"1.0": false, "1.26": false, "1.26.1": false, "99.0": true} {
		recorded := &skips{TB: t}
		testcluster.RequireVersion(recorded, minimum, "there it is new")
		if skipped := recorded.reason != ""; skipped != want {
			t.Errorf("a test that needs %s: skipped %t", minimum, skipped)
		}
		if want && (!strings.Contains(recorded.reason, "needs Kubernetes 99.0, this is v1.") || !strings.HasSuffix(recorded.reason, ": there it is new")) {
			t.Errorf("the reason is %q", recorded.reason)
		}
	}
}
