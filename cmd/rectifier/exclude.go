package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rectifier-dev/rectifier/rules"
)

// excludeFlag are the namespaces that are left alone, whatever rules say.
type excludeFlag struct{ patterns []string }

// excludeNamespace is the flag.
const excludeNamespace = "exclude-namespace"

func (f *excludeFlag) add(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVar(&f.patterns, excludeNamespace, nil, usage)
}

// validate refuses what no namespace can match: who writes it means something
// else, and would not have it excluded. looked are those of --namespace.
func (f *excludeFlag) validate(cmd *cobra.Command, looked []string) error {
	if cmd.Flags().Changed(excludeNamespace) && (len(f.patterns) == 0 || slices.Contains(f.patterns, "")) {
		return errors.New("--exclude-namespace is empty: is a variable not set? Leave it out to exclude none")
	}
	globs, err := rules.NewGlobs(f.patterns...)
	if err != nil {
		return fmt.Errorf("--exclude-namespace: %w", err)
	}
	for _, p := range f.patterns {
		wild := strings.ContainsAny(p, `*?[\`)
		if strings.ContainsAny(p, "/_ ") || strings.ToLower(p) != p || !wild && len(validation.IsDNS1123Label(p)) > 0 {
			return fmt.Errorf("--exclude-namespace: %q matches no name that a namespace can have", p)
		}
	}
	left := slices.DeleteFunc(slices.Clone(looked), func(name string) bool { _, excluded := globs.Match(name); return excluded })
	if len(looked) > 0 && len(left) == 0 {
		return fmt.Errorf("nothing is left to look at: --exclude-namespace %s excludes all of --namespace %s", strings.Join(f.patterns, ","), strings.Join(looked, ","))
	}
	return nil
}

// globs are the patterns, which validate has found to be ones.
func (f *excludeFlag) globs() rules.Globs {
	out, _ := rules.NewGlobs(f.patterns...)
	return out
}
