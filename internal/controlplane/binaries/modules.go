package binaries

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// modules are the two tool modules of one source tree.
type modules struct {
	kubernetes, etcd module
}

// module is a tool module: a folder with a go.mod of its own.
type module struct {
	dir       string // empty for a generated module: see otherKubernetes
	version   string // of the module that the binaries come from, such as v1.37.2
	content   []byte // go.mod and go.sum, or what a generated module is made from
	generated bool
}

var (
	kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)
	etcdVersion       = regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/server/v3 (v\S+)`)
)

// findModules looks for the tool modules from the working directory upwards.
// Tests and `go run` start inside the tree, and unlike paths recorded by the
// compiler this also holds with -trimpath.
func findModules() (*modules, error) {
	start, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		root := filepath.Join(dir, "internal", "controlplane")
		if _, err := os.Stat(filepath.Join(root, "kubernetes", "go.mod")); err == nil {
			return readModules(root)
		}
		if dir == filepath.Dir(dir) {
			return nil, fmt.Errorf("no internal/controlplane/kubernetes/go.mod in %s or above: "+
				"work inside the source tree or set KUBEBUILDER_ASSETS", start)
		}
	}
}

func readModules(root string) (*modules, error) {
	kubernetes, err := readModule(filepath.Join(root, "kubernetes"), kubernetesVersion)
	if err != nil {
		return nil, err
	}
	etcd, err := readModule(filepath.Join(root, "etcd"), etcdVersion)
	if err != nil {
		return nil, err
	}
	if kubernetes, err = wantedKubernetes(kubernetes); err != nil {
		return nil, err
	}
	return &modules{kubernetes: kubernetes, etcd: etcd}, nil
}

func readModule(dir string, version *regexp.Regexp) (module, error) {
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return module{}, fmt.Errorf("reading a tool module: %w", err)
	}
	gosum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return module{}, fmt.Errorf("reading a tool module: %w", err)
	}
	match := version.FindSubmatch(gomod)
	if match == nil {
		return module{}, fmt.Errorf("%s/go.mod does not say which version to build (looked for %s)", dir, version)
	}
	return module{dir: dir, version: string(match[1]), content: append(gomod, gosum...)}, nil
}

// key names everything that the binaries depend on.
func (m *modules) key() string {
	hash := sha256.New()
	hash.Write(m.kubernetes.content)
	hash.Write(m.etcd.content)
	return fmt.Sprintf("kubernetes-%s-etcd-%s-%s-%s-%x",
		m.kubernetes.version, m.etcd.version, runtime.GOOS, runtime.GOARCH, hash.Sum(nil)[:4])
}

// CacheDir is the folder of all that is built once for tests, as an absolute path:
// $RECTIFIER_CACHE, or else rectifier in the user's cache folder. It need not exist.
func CacheDir() (string, error) {
	cache := os.Getenv("RECTIFIER_CACHE")
	if cache == "" {
		// Not os.UserCacheDir: XDG on every system, as the documentation says.
		base := os.Getenv("XDG_CACHE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("finding a cache folder (set RECTIFIER_CACHE): %w", err)
			}
			base = filepath.Join(home, ".cache")
		}
		cache = filepath.Join(base, "rectifier")
	}
	if !filepath.IsAbs(cache) {
		// Each package's tests run in another working directory.
		return "", fmt.Errorf("the cache folder %q is not an absolute path", cache)
	}
	return cache, nil
}

// cacheDir is the folder of these modules' binaries. It need not exist.
func (m *modules) cacheDir() (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "control-plane", m.key()), nil
}

// recipe is how one binary is built.
type recipe struct {
	module  module
	pkg     string
	ldflags string
}

func (m *modules) recipe(name string) (recipe, error) {
	switch name {
	case "etcd":
		return recipe{module: m.etcd, pkg: "go.etcd.io/etcd/server/v3", ldflags: "-s -w"}, nil
	case "kube-apiserver", "kube-controller-manager", "kubectl":
		stamp, err := stampVersion(m.kubernetes.version)
		if err != nil {
			return recipe{}, err
		}
		return recipe{module: m.kubernetes, pkg: "k8s.io/kubernetes/cmd/" + name, ldflags: "-s -w " + stamp}, nil
	default:
		return recipe{}, errors.New("unknown binary " + name)
	}
}

// stampVersion returns the linker flags without which Kubernetes binaries
// report a version that clients cannot parse.
func stampVersion(version string) (string, error) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return "", fmt.Errorf("%q is not a Kubernetes version", version)
	}
	var flags []string
	// Old API servers answer /version with client-go's copy.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			pkg, version, parts[0], parts[1]))
	}
	return strings.Join(flags, " "), nil
}
