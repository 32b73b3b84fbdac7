package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const dockerfile = "../../../deploy/Dockerfile"

// parse reads the Dockerfile as docker does.
func parse(t *testing.T) []instructions.Stage {
	t.Helper()
	content, err := os.Open(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	result, err := parser.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range result.Warnings {
		t.Error(warning.Short)
	}
	stages, _, err := instructions.Parse(result.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// TestTheDockerfileMakesAnEqualImage compares what both say about the image. The
// build arguments of the labels have the names of the labels.
func TestTheDockerfileMakesAnEqualImage(t *testing.T) {
	stages := parse(t)
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image is based on %s", last.BaseName)
	}
	got := v1.Config{ExposedPorts: map[string]struct{}{}, Labels: map[string]string{}}
	var copied []string
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			got.User = c.User
		case *instructions.WorkdirCommand:
			got.WorkingDir = c.Path
		case *instructions.EntrypointCommand:
			if c.PrependShell {
				t.Error("the entrypoint needs a shell")
			}
			got.Entrypoint = c.CmdLine
		case *instructions.EnvCommand:
			for _, pair := range c.Env {
				got.Env = append(got.Env, pair.Key+"="+pair.Value)
			}
		case *instructions.ExposeCommand:
			for _, port := range c.Ports {
				got.ExposedPorts[port+"/tcp"] = struct{}{}
			}
		case *instructions.LabelCommand:
			for _, pair := range c.Labels {
				got.Labels[pair.Key] = strings.Trim(pair.Value, `"`)
			}
		case *instructions.CopyCommand:
			copied = append(copied, c.DestPath)
		case *instructions.ArgCommand:
		default:
			t.Errorf("%s: not in the image that `make image` makes", command.Name())
		}
	}
	want := config("$VERSION", &binary{revision: "$REVISION"})
	want.Labels["org.opencontainers.image.created"] = "$CREATED"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("make image and the Dockerfile differ (-make image +Dockerfile):\n%s", diff)
	}
	var files []string
	for _, f := range append(systemFiles(), file{name: binaryPath}) {
		files = append(files, "/"+f.name)
	}
	if diff := cmp.Diff(files, copied); diff != "" {
		t.Errorf("files (-make image +Dockerfile):\n%s", diff)
	}
}

// TestTheBuilderCrossCompiles: with emulation instead, an arm64 image takes an hour.
func TestTheBuilderCrossCompiles(t *testing.T) {
	builder := parse(t)[0]
	if builder.Platform != "$BUILDPLATFORM" {
		t.Errorf("the builder runs on %q", builder.Platform)
	}
	var script strings.Builder
	for _, command := range builder.Commands {
		fmt.Fprintln(&script, command)
		if run, ok := command.(*instructions.RunCommand); ok {
			fmt.Fprintln(&script, run.CmdLine)
			for _, file := range run.Files {
				fmt.Fprintln(&script, file.Data)
			}
		}
	}
	for _, part := range []string{"GOOS=$TARGETOS", "GOARCH=$TARGETARCH", "CGO_ENABLED=0", "-trimpath", "-mod=readonly"} {
		if !strings.Contains(script.String(), part) {
			t.Errorf("the build says nothing of %s:\n%s", part, script.String())
		}
	}
}
