package binaries

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrMissing says that a binary has not been built yet.
var ErrMissing = errors.New("not built yet, run: make control-plane (kube-controller-manager: make controller-manager)")

// Find returns the path of the named binary: in $KUBEBUILDER_ASSETS where that
// is set, else in the cache directory of this source tree's versions (or of
// $RECTIFIER_KUBERNETES_VERSION). The error wraps ErrMissing when there is no
// such file.
func Find(name string) (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		modules, err := findModules()
		if err != nil {
			return "", err
		}
		if dir, err = modules.cacheDir(); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("finding %s: %w", path, ErrMissing)
	} else if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	return path, nil
}
