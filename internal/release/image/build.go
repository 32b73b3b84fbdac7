package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// options are the command line.
type options struct {
	binaries  string
	platforms []string // such as linux/amd64
	version   string
	name      string
}

// binaryPath is where the program is in the image.
const binaryPath = "usr/local/bin/rectifier"

// user is that of the distroless images: charts and policies know it.
const user = "65532:65532"

// multiPlatform is an image of several platforms with its names.
type multiPlatform struct {
	image         v1.ImageIndex
	name, version string
	created       time.Time
}

// binary is one platform's program, and what it knows about itself.
type binary struct {
	content  []byte
	revision string // the commit
	created  time.Time
}

// readBinary refuses a program that was built from changes that are not committed
// or without a commit: the image would carry a label that is not true.
func readBinary(path string) (*binary, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the build information: %w", err)
	}
	b := &binary{content: content}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	b.revision = settings["vcs.revision"]
	if settings["vcs.modified"] == "true" {
		b.revision += "-dirty"
	}
	if b.created, err = time.Parse(time.RFC3339, settings["vcs.time"]); err != nil {
		return nil, fmt.Errorf("%s does not know its commit, build it with `make image`: %w", path, err)
	}
	return b, nil
}

// build makes the image of all platforms.
func build(o options) (*multiPlatform, error) {
	result := &multiPlatform{
		image: mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		name:  o.name, version: o.version,
	}
	for _, platform := range o.platforms {
		goos, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return nil, fmt.Errorf("%q is not a platform such as linux/amd64", platform)
		}
		b, err := readBinary(filepath.Join(o.binaries, goos+"_"+arch, "rectifier"))
		if err != nil {
			return nil, err
		}
		image, err := buildOne(o, v1.Platform{OS: goos, Architecture: arch}, b)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", platform, err)
		}
		result.created = b.created
		result.image = mutate.AppendManifests(result.image, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: goos, Architecture: arch}},
		})
	}
	return result, nil
}

// buildOne makes the image of one platform: a layer that changes with each release
// of the certificates, and one that changes with each release of the program.
func buildOne(o options, platform v1.Platform, b *binary) (v1.Image, error) {
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture,
		Created: v1.Time{Time: b.created},
		RootFS:  v1.RootFS{Type: "layers"},
		Config:  config(o.version, b),
	})
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		comment string
		files   []file
	}{
		{"certificates and user names", systemFiles()},
		{"rectifier", []file{{binaryPath, 0o755, b.content}}},
	} {
		layer, err := newLayer(part.files, b.created)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: b.created}, CreatedBy: "make image", Comment: part.comment},
		})
		if err != nil {
			return nil, err
		}
	}
	return image, nil
}

// config is how the program is started. deploy/Dockerfile says the same.
func config(version string, b *binary) v1.Config {
	return v1.Config{
		User:         user,
		WorkingDir:   "/",
		Env:          []string{"PATH=/usr/local/bin"},
		Entrypoint:   []string{"/" + binaryPath},
		ExposedPorts: map[string]struct{}{"8081/tcp": {}, "8443/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "rectifier",
			"org.opencontainers.image.description": "Puts Kubernetes objects right that already exist, by rules in YAML",
			"org.opencontainers.image.source":      "https://github.com/rectifier-dev/rectifier",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     version,
			"org.opencontainers.image.revision":    b.revision,
			"org.opencontainers.image.created":     b.created.UTC().Format(time.RFC3339),
		},
	}
}

// tag is a version as a tag: v0.1.0 is 0.1.0, the appVersion of the chart, and a
// registry does not take the + of build metadata.
func tag(version string) string {
	return strings.ReplaceAll(strings.TrimPrefix(version, "v"), "+", "-")
}
