package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is the tree that is released.
type source struct {
	root    string    // absolute
	version string    // git describe: v1.2.3, or v1.2.3-4-gabcdef0 between releases
	commit  string    // 40 hex digits
	time    time.Time // of the commit, or $SOURCE_DATE_EPOCH
	dirty   bool
	changes string // git status --porcelain
}

func readSource(ctx context.Context, root string) (*source, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	var answers [4]string
	for i, args := range [][]string{
		{"describe", "--tags", "--always", "--dirty"},
		{"rev-parse", "HEAD"},
		{"log", "-1", "--format=%ct"},
		{"status", "--porcelain"},
	} {
		if answers[i], err = git(ctx, root, args...); err != nil {
			return nil, err
		}
	}
	epoch := strings.TrimSpace(answers[2])
	if wanted := os.Getenv("SOURCE_DATE_EPOCH"); wanted != "" {
		epoch = wanted
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the time of the sources (SOURCE_DATE_EPOCH): %w", err)
	}
	return &source{
		root:    root,
		version: strings.TrimSpace(answers[0]),
		commit:  strings.TrimSpace(answers[1]),
		time:    time.Unix(seconds, 0).UTC(),
		dirty:   answers[3] != "",
		changes: answers[3],
	}, nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	return output(ctx, root, nil, "git", args...)
}

// output runs a command and returns what it prints. The error has what it
// complained of.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("running %s %s: %w", name, strings.Join(args, " "), err),
			errors.New(strings.TrimSpace(stderr.String())))
	}
	return string(printed), nil
}
