package binaries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// VersionVariable is the environment variable that asks for another Kubernetes
// than the source tree's, such as 1.34.4.
const VersionVariable = "RECTIFIER_KUBERNETES_VERSION"

// generation is part of the cache's key: raise it when what generate writes, or
// how the result is built, changes.
const generation = "generated module, 1"

var releaseVersion = regexp.MustCompile(`^v1\.\d+\.\d+$`)

// generatedBuildFlags complete go.mod and go.sum while they build, and leave the
// cloud providers out that were in the tree until 1.30: nothing here runs in a
// cloud, and they are hundreds of packages.
var generatedBuildFlags = []string{"-mod=mod", "-tags=providerless"}

// wantedKubernetes returns the tree's module, or a generated one where
// VersionVariable names another version.
func wantedKubernetes(tree module) (module, error) {
	wanted := os.Getenv(VersionVariable)
	if wanted == "" {
		return tree, nil
	}
	version := "v" + strings.TrimPrefix(wanted, "v")
	if !releaseVersion.MatchString(version) {
		return module{}, fmt.Errorf("%s=%q is not a Kubernetes release such as 1.34.4", VersionVariable, wanted)
	}
	if version == tree.version {
		return tree, nil
	}
	return module{version: version, content: []byte(generation), generated: true}, nil
}

// generate makes a module in the cache folder that k8s.io/kubernetes can be built
// from, unless it is there, and returns its folder. Kubernetes' own go.mod points
// the staging modules at folders of its repository; here each is replaced by the
// module that was published with that release. The go line is Kubernetes' own, so
// that the servers run with the Go behaviour (GODEBUG) of their time.
func generate(ctx context.Context, cache, version string) (dir string, err error) {
	dir = filepath.Join(cache, "module")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	tmp, err := os.MkdirTemp(cache, ".module-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	published, err := publishedGoMod(ctx, tmp, version)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tmp, "go.mod"), published.skewModule(version), 0o644); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// goMod is the part of a go.mod, as `go mod edit -json` prints it, that a
// generated module depends on.
type goMod struct {
	Go      string
	Replace []struct {
		Old, New struct{ Path string }
	}
}

// publishedGoMod downloads k8s.io/kubernetes and reads its go.mod. It works in
// dir, an empty folder outside of any module.
func publishedGoMod(ctx context.Context, dir, version string) (*goMod, error) {
	var download struct{ GoMod, Error string }
	// The answer names the reason also where the command fails.
	err := goJSON(ctx, dir, &download, "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	if download.Error != "" {
		return nil, errors.New(download.Error)
	} else if err != nil {
		return nil, err
	}
	published := &goMod{}
	return published, goJSON(ctx, dir, published, "mod", "edit", "-json", download.GoMod)
}

// goJSON decodes what a go command prints.
func goJSON(ctx context.Context, dir string, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, runErr := cmd.Output()
	if err := json.Unmarshal(output, into); err != nil && runErr == nil {
		return fmt.Errorf("reading the output of go %s: %w", strings.Join(args, " "), err)
	}
	if runErr != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), runErr, stderr.Bytes())
	}
	return nil
}

// skewModule returns a go.mod that requires k8s.io/kubernetes alone: v1.34.4 of
// it belongs to v0.34.4 of its staging modules.
func (m *goMod) skewModule(version string) []byte {
	staging := strings.Replace(version, "v1.", "v0.", 1)
	var b bytes.Buffer
	fmt.Fprintf(&b, "module kubernetes\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n", m.Go, version)
	var paths []string
	for _, replace := range m.Replace {
		if strings.HasPrefix(replace.New.Path, "./staging/") {
			paths = append(paths, replace.Old.Path)
		}
	}
	sort.Strings(paths)
	for _, path := range paths {
		fmt.Fprintf(&b, "\t%s => %s %s\n", path, path, staging)
	}
	b.WriteString(")\n")
	return b.Bytes()
}
