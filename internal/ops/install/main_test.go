package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
	"github.com/rectifier-dev/rectifier/internal/ops"
)

const (
	root  = "../../.."
	chart = root + "/deploy/chart"
)

// world is what all tests share; it is made by the first that needs it.
var world struct {
	programs string // a folder with rectifier, helm and kubectl
	cluster  *controlplane.ControlPlane
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	defer func() {
		if world.cluster != nil {
			if err := world.cluster.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
		if world.programs != "" {
			_ = os.RemoveAll(world.programs)
		}
	}()
	return m.Run()
}

// programs makes the folder with rectifier, helm and kubectl, and skips the test
// where the slow tests are off.
func programs(t *testing.T) string {
	t.Helper()
	ops.Require(t)
	if world.programs != "" {
		return world.programs
	}
	dir, err := os.MkdirTemp("", "rectifier-install-")
	if err != nil {
		t.Fatal(err)
	}
	world.programs = dir
	output(t, root, "go", "build", "-o", filepath.Join(dir, "rectifier"), "./cmd/rectifier")
	helm := strings.TrimSpace(output(t, root, "go", "run", "./internal/ops/install/helm"))
	kubectl, err := binaries.Find("kubectl")
	if err != nil {
		t.Fatalf("%v (make kubectl)", err)
	}
	for name, path := range map[string]string{"helm": helm, "kubectl": kubectl} {
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// output runs a command that must succeed, and returns its standard output.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// cluster starts the control plane, once for all tests.
func cluster(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	ops.Require(t)
	if world.cluster == nil {
		cp, err := controlplane.Start(context.Background(), controlplane.Options{Audit: true, ControllerManager: true})
		if err != nil {
			t.Fatal(err)
		}
		world.cluster = cp
	}
	return world.cluster
}

func clients(t *testing.T) (*kubernetes.Clientset, dynamic.Interface) {
	t.Helper()
	config := cluster(t).AdminConfig()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, dyn
}
