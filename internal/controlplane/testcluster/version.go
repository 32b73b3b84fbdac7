package testcluster

import (
	"errors"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
)

// RequireVersion skips a test that asks for what servers below the minimum, such
// as "1.33", do not have. The reason says what that is. It is for `make skew`:
// on the version that the source tree names, nothing is skipped.
func RequireVersion(t testing.TB, minimum, reason string) {
	t.Helper()
	if server := serverVersion(t); !atLeast(server, minimum) {
		t.Skipf("needs Kubernetes %s, this is v%s: %s", minimum, server, reason)
	}
}

// AtLeast is for tests that expect something else of older servers.
func AtLeast(t testing.TB, minimum string) bool {
	t.Helper()
	return atLeast(serverVersion(t), minimum)
}

func atLeast(server *version.Version, minimum string) bool {
	return server.AtLeast(version.MustParseGeneric(minimum))
}

func serverVersion(t testing.TB) *version.Version {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(Start(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatalf("asking the API server for its version: %v", err)
	}
	server, err := version.ParseSemantic(info.GitVersion)
	if err != nil {
		t.Fatalf("the API server's version: %v", err)
	}
	return server
}

// RequireControllerManager skips a test under `make skew` if kube-controller-manager
// of that version could not be built: not every module proxy has all modules of all
// versions. Otherwise a test without it fails, and says how to build it.
func RequireControllerManager(t testing.TB) {
	t.Helper()
	asked := os.Getenv(binaries.VersionVariable)
	if _, err := binaries.Find("kube-controller-manager"); asked != "" && errors.Is(err, binaries.ErrMissing) {
		t.Skipf("needs kube-controller-manager, and that of %s could not be built", asked)
	}
}
