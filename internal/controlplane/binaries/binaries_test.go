package binaries

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes a source tree with tool modules, works in a folder of it, and
// returns its root.
func tree(t *testing.T, kubernetes, etcd string) string {
	t.Helper()
	root := t.TempDir()
	for dir, gomod := range map[string]string{
		"kubernetes": "module k\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes " + kubernetes + "\n)\n",
		"etcd":       "module e\n\ngo 1.26.0\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 " + etcd + "\n)\n",
	} {
		write(t, filepath.Join(root, "internal/controlplane", dir, "go.mod"), gomod)
		write(t, filepath.Join(root, "internal/controlplane", dir, "go.sum"), "")
	}
	inside := filepath.Join(root, "engine")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inside)
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv(VersionVariable, "")
	t.Setenv("RECTIFIER_CACHE", filepath.Join(root, "cache"))
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func cacheDir(t *testing.T) string {
	t.Helper()
	modules, err := findModules()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := modules.cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheCacheIsPerVersionAndDependencies(t *testing.T) {
	root := tree(t, "v1.37.2", "v3.7.3")
	before := cacheDir(t)
	if want := filepath.Join(root, "cache/control-plane/kubernetes-v1.37.2-etcd-v3.7.3-"); !strings.HasPrefix(before, want) {
		t.Errorf("%s does not begin with %s", before, want)
	}
	for _, file := range []string{"kubernetes/go.sum", "etcd/go.sum"} {
		write(t, filepath.Join(root, "internal/controlplane", file), "a dependency")
		after := cacheDir(t)
		if after == before {
			t.Errorf("a change of %s does not change the cache folder", file)
		}
		before = after
	}
}

func TestFind(t *testing.T) {
	tree(t, "v1.37.2", "v3.7.3")
	if _, err := Find("etcd"); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing is built, and the error is %v", err)
	}
	built := filepath.Join(cacheDir(t), "etcd")
	write(t, built, "")
	if got, err := Find("etcd"); err != nil || got != built {
		t.Errorf("Find = %s, %v, want %s", got, err, built)
	}
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	write(t, filepath.Join(assets, "etcd"), "")
	if got, err := Find("etcd"); err != nil || got != filepath.Join(assets, "etcd") {
		t.Errorf("with KUBEBUILDER_ASSETS, Find = %s, %v", got, err)
	}
}

func TestFindFailures(t *testing.T) {
	t.Run("outside the tree", func(t *testing.T) {
		t.Chdir(t.TempDir())
		t.Setenv("KUBEBUILDER_ASSETS", "")
		if _, err := Find("etcd"); err == nil || !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no version", func(t *testing.T) {
		tree(t, "", "v3.7.3")
		if _, err := Find("etcd"); err == nil || !strings.Contains(err.Error(), "does not say which version") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("relative cache folder", func(t *testing.T) {
		tree(t, "v1.37.2", "v3.7.3")
		t.Setenv("RECTIFIER_CACHE", "cache")
		if _, err := Find("etcd"); err == nil || !strings.Contains(err.Error(), "not an absolute path") {
			t.Errorf("got %v", err)
		}
	})
}

func TestBuildOfWhatIsThereDoesNothing(t *testing.T) {
	tree(t, "v1.37.2", "v3.7.3")
	write(t, filepath.Join(cacheDir(t), "etcd"), "as it was")
	t.Setenv("PATH", "") // no go command: it must not be needed
	var progress bytes.Buffer
	dir, err := Build(t.Context(), []string{"etcd"}, &progress)
	if err != nil || dir != cacheDir(t) || progress.Len() != 0 {
		t.Errorf("Build = %s, %v, and said %q", dir, err, progress.String())
	}
}

func TestAFailedBuildInstallsNothingAndSaysWhy(t *testing.T) {
	tree(t, "v1.37.2", "v3.7.3")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=readonly")
	_, err := Build(t.Context(), []string{"etcd"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "go.etcd.io/etcd/server/v3") {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(cacheDir(t))
	if err != nil || len(left) != 1 || left[0].Name() != ".lock" {
		t.Errorf("the cache folder holds %v (%v)", left, err)
	}
}

func TestBuildRefusesUnknownNames(t *testing.T) {
	tree(t, "v1.37.2", "v3.7.3")
	if _, err := Build(t.Context(), []string{"kubelet"}, &bytes.Buffer{}); err == nil {
		t.Error("it was built")
	}
}

func TestTheVersionIsStamped(t *testing.T) {
	got, err := stampVersion("v1.37.2")
	for _, want := range []string{"client-go/pkg/version.gitVersion=v1.37.2 ", "component-base/version.gitVersion=v1.37.2 ", ".gitMajor=1 ", ".gitMinor=37 "} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%q is not in %q (%v)", want, got, err)
		}
	}
	if _, err := stampVersion("main"); err == nil {
		t.Error("main is taken for a version")
	}
}
