package release_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/ops"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }

const version = "v0.0.0-image-test"

// makeImage makes this machine's image of the tree as it is, twice, and unpacks it.
func makeImage(t *testing.T, root string) settings {
	t.Helper()
	top, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	platform := "linux/" + runtime.GOARCH
	command(t, top, "go", "run", "./internal/release", "--binaries", "--allow-dirty",
		"--platforms", platform, "--version", version, "--output", dir)
	var said []string
	for _, name := range []string{"first.tar", "second.tar"} {
		output := command(t, filepath.Join(top, "internal/release/image"), "go", "run", ".", "--binaries", filepath.Join(dir, "bin"),
			"--platforms", platform, "--version", version, "--output", filepath.Join(dir, name))
		said = append(said, strings.TrimPrefix(output, filepath.Join(dir, name)))
	}
	if said[0] != said[1] || !strings.Contains(said[0], "@sha256:") {
		t.Errorf("one binary, two images: %s and %s", said[0], said[1])
	}
	return unpack(t, filepath.Join(dir, "first.tar"), root)
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var complaints strings.Builder
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, complaints.String())
	}
	return string(output)
}

// inImage returns a command that runs the program of the image in its file system
// alone, read-only, as its user.
func inImage(ctx context.Context, root string, how settings, args ...string) *exec.Cmd {
	const script = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && root=$1 && user=$2 && shift 2 &&
		exec chroot --userspec="$user" "$root" "$@"`
	line := append([]string{"--mount", "sh", "-c", script, "sh", root, how.User}, how.Entrypoint...)
	cmd := exec.CommandContext(ctx, "unshare", append(line, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // for unshare, mount and chroot; nothing else
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 40 * time.Second
	return cmd
}

// TestTheImageRuns runs the program of the image: it prints its version, and it puts
// an object of a real API server right.
func TestTheImageRuns(t *testing.T) {
	ops.Require(t, "unshare", "mount", "chroot")
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("chroot and mount need root on Linux")
	}
	root := t.TempDir()
	open(t, root)
	how := makeImage(t, root)
	want := settings{User: "65532:65532", Entrypoint: []string{"/usr/local/bin/rectifier"}, Env: []string{"PATH=/usr/local/bin"}}
	if diff := cmp.Diff(want, how); diff != "" {
		t.Errorf("how the image starts (-want +got):\n%s", diff)
	}
	output, err := inImage(t.Context(), root, how, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(output), "rectifier "+version) {
		t.Fatalf("rectifier version: %v\n%s", err, output)
	}
	t.Run("fixes an object", func(t *testing.T) { fixesAnObject(t, root, how) })
}

// open lets others than root look into the temporary folder.
func open(t *testing.T, dir string) {
	t.Helper()
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

const rule = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata:
  name: image-test
spec:
  resource: {version: v1, resource: configmaps}
  condition: object.data.key == 'wrong'
  patch:
    merge: {data: {key: right}}
`

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func fixesAnObject(t *testing.T, root string, how settings) {
	cluster := testcluster.Start(t)
	namespace := testcluster.Namespace(t)
	maps := testcluster.Dynamic(t).Resource(configMaps).Namespace(namespace)
	if _, err := maps.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "drifted"},
		"data":     map[string]any{"key": "wrong"},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// What a pod would mount.
	kubeconfig := filepath.Join(root, "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, "image", "system:masters"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(kubeconfig, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "rule.yaml"), []byte(rule), 0o644); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	ctx, stop := context.WithCancel(t.Context())
	cmd := inImage(ctx, root, how, "run", "--kubeconfig=/kubeconfig", "--rules=/rule.yaml", "--namespace="+namespace, "--bind-address=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	testcluster.Eventually(t, time.Minute, func() error {
		object, err := maps.Get(t.Context(), "drifted", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if value, _, _ := unstructured.NestedString(object.Object, "data", "key"); value != "right" {
			return fmt.Errorf("data.key is %q", value)
		}
		return nil
	})
}

// TestTheImageModule runs the tests of the module that makes the image, which
// `go test ./...` does not see: among them the comparison with deploy/Dockerfile.
func TestTheImageModule(t *testing.T) {
	ops.Require(t, "git", "tar")
	t.Log(command(t, "../../release/image", "go", "test", "./..."))
}
