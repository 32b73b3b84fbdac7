package binaries

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnotherVersionHasAFolderOfItsOwn(t *testing.T) {
	root := tree(t, "v1.37.2", "v3.7.3")
	own := cacheDir(t)
	for _, same := range []string{"1.37.2", "v1.37.2"} {
		t.Setenv(VersionVariable, same)
		if got := cacheDir(t); got != own {
			t.Errorf("%s: %s, want the tree's own %s", same, got, own)
		}
	}
	t.Setenv(VersionVariable, "1.34.4")
	other := cacheDir(t)
	if want := filepath.Join(root, "cache/control-plane/kubernetes-v1.34.4-etcd-v3.7.3-"); !strings.HasPrefix(other, want) {
		t.Errorf("%s does not begin with %s", other, want)
	}
	if _, err := Find("kube-apiserver"); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing is built, and the error is %v", err)
	}
	write(t, filepath.Join(other, "kube-apiserver"), "")
	if got, err := Find("kube-apiserver"); err != nil || got != filepath.Join(other, "kube-apiserver") {
		t.Errorf("Find = %s, %v", got, err)
	}
	write(t, filepath.Join(root, "internal/controlplane/kubernetes/go.sum"), "a dependency")
	if got := cacheDir(t); got != other {
		t.Error("the tree's Kubernetes module changes the folder of another version")
	}
	write(t, filepath.Join(root, "internal/controlplane/etcd/go.sum"), "a dependency")
	if got := cacheDir(t); got == other {
		t.Error("a change of the etcd module does not change the folder")
	}
}

func TestOnlyReleasesCanBeAskedFor(t *testing.T) {
	tree(t, "v1.37.2", "v3.7.3")
	for _, version := range []string{"1.34", "main", "1.34.4-rc.0", "2.0.0", "../1.34.4", "d706e7f-dirty"} {
		t.Setenv(VersionVariable, version)
		if _, err := Find("etcd"); err == nil || !strings.Contains(err.Error(), "not a Kubernetes release") {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestAGeneratedModule(t *testing.T) {
	const published = `{"Go": "1.24.0", "Replace": [
		{"Old": {"Path": "k8s.io/apiserver"}, "New": {"Path": "./staging/src/k8s.io/apiserver"}},
		{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
		{"Old": {"Path": "example.org/pinned"}, "New": {"Path": "example.org/pinned"}}
	]}`
	var m goMod
	if err := json.Unmarshal([]byte(published), &m); err != nil {
		t.Fatal(err)
	}
	const want = `module kubernetes

go 1.24.0

require k8s.io/kubernetes v1.34.4

replace (
	k8s.io/api => k8s.io/api v0.34.4
	k8s.io/apiserver => k8s.io/apiserver v0.34.4
)
`
	if got := string(m.skewModule("v1.34.4")); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
