// Package builtin holds the rules that ship with the binary. They are ordinary
// rule files, embedded: nothing in Go treats them in a special way.
package builtin

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules"
)

//go:embed *.yaml
var files embed.FS

// Default is the rule that runs unless the user says otherwise.
const Default = "expected-replicas"

// Prefix begins the names of the Sources here: builtin:expected-replicas.
const Prefix = "builtin:"

// Names lists the built-in rules, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Source returns the file of a built-in rule. The error names those that
// there are.
func Source(name string) (rules.Source, error) {
	if !slices.Contains(Names(), name) {
		return rules.Source{}, fmt.Errorf("there is no built-in rule %q%s: there is %s", name, suggest.DidYouMean(name, Names()), strings.Join(Names(), ", "))
	}
	data, err := files.ReadFile(name + ".yaml")
	return rules.Source{Name: Prefix + name, Data: data}, err
}
