package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// written are what a complete run writes, as paths from the root of the module:
// changes of these say nothing of what is measured.
var written = []string{"docs/benchmarks.md", "docs/images/" + imageCPU, "docs/images/" + imageMemory}

// commitOf names the commit of a tree, and says so if it is not all of it.
func commitOf(ctx context.Context, root string) string {
	commit, err := git(ctx, root, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if reproducible(ctx, root) != nil {
		commit += ", with changes"
	}
	return commit
}

// reproducible fails if the tree is not that of a commit: then nobody can measure
// the same.
func reproducible(ctx context.Context, root string) error {
	args := []string{"status", "--porcelain", "--", "."}
	for _, path := range written {
		args = append(args, ":(exclude,top)"+path)
	}
	changes, err := git(ctx, root, args...)
	if err != nil {
		return err
	}
	if changes == "" {
		return nil
	}
	const shown = 10
	lines := strings.Split(changes, "\n")
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("and %d more", more))
	}
	return errors.New("the tree has changes that are not committed:\n" + strings.Join(lines, "\n"))
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
