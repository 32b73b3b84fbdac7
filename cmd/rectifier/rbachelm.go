package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	kubernetesyaml "sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

// configMapFlag names the flag.
const configMapFlag = "config-map"

// notWithHelm are the flags whose part the chart plays itself.
var notWithHelm = map[string]string{
	"check":           "it prints values",
	"name":            "the chart names the roles",
	"service-account": "the chart binds the roles",
	"leader-elect":    "the chart always gives the rights on the Lease",
	leaseName:         "the chart names the Lease",
	"authorize":       "set metrics.enabled: the chart then gives the rights for it",
	"read-only":       "set dryRun: the chart then leaves out what writes",
	"rule":            "name just the files of those rules",
}

// validateHelm refuses what -o helm has no use for.
func (f *rbacFlags) validateHelm(cmd *cobra.Command) error {
	if f.output.value != "helm" {
		if f.configMap != "" {
			return fmt.Errorf("--%s goes with --output helm", configMapFlag)
		}
		return nil
	}
	for _, flag := range slices.Sorted(maps.Keys(notWithHelm)) {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s does not go with --output helm: %s", flag, notWithHelm[flag])
		}
	}
	if f.configMap != "" && len(validation.IsDNS1123Subdomain(f.configMap)) > 0 {
		return fmt.Errorf("--%s: %q is not the name of a ConfigMap", configMapFlag, f.configMap)
	}
	return nil
}

// helmFailure prints values that the chart refuses with the reason. In a pipe to
// helm the exit code is lost; no values at all would install other rules, or none.
func helmFailure(s streams, err error) error {
	reason := err.Error()
	if exit := (*exitError)(nil); errors.As(err, &exit) && exit.err == nil {
		reason = "not all rules can have the rights that they need: see what it printed"
	}
	text, encodeErr := yaml.Marshal(map[string]string{"error": "rectifier rbac: " + reason})
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	if _, writeErr := s.out.Write(text); writeErr != nil {
		return errors.Join(err, fmt.Errorf("print the values: %w", writeErr))
	}
	return err
}

// asksForHelm reports whether a command line asks for values of the chart, even if
// it is so wrong that no command can read it.
func asksForHelm(args []string) bool {
	for i, arg := range args {
		value, short := strings.CutPrefix(arg, "-o")
		long, isLong := strings.CutPrefix(arg, "--output")
		if isLong {
			value = long
		}
		if value = strings.TrimPrefix(value, "="); value == "" && i+1 < len(args) {
			value = args[i+1]
		}
		if (short || isLong) && strings.EqualFold(value, "helm") {
			return true
		}
	}
	return false
}

// printHelm prints values for the chart, but none for rules that lack rights: run
// would not run them. The warnings name a value that the chart asks for.
func (f *rbacFlags) printHelm(s streams, sources []rules.Source, definitions []*rules.Definition, problems []*rules.Problem, needs rbac.Needs) (complete bool, err error) {
	for _, warning := range needs.Warnings() {
		fmt.Fprintln(s.err, "warning:", warning)
	}
	if complete := tellParked(s, needs); !complete || len(problems) > 0 {
		return complete, nil
	}
	values, err := f.helmValues(sources, definitions, needs)
	if err != nil {
		return false, &exitError{exitUsage, err}
	}
	text, err := values.yaml()
	if err != nil {
		return false, err
	}
	if _, err := s.out.Write(text); err != nil {
		return false, fmt.Errorf("print the values: %w", err)
	}
	return true, nil
}

// helmValues are the values of the chart that a set of rules decides.
type helmValues struct {
	rules      map[string]string // file names and texts of the ConfigMap
	configMap  string            // instead of rules: one that somebody else makes
	builtin    map[string]string // names and texts of built-in rules
	namespaces []string
	roles      []rbac.Role
}

func (f *rbacFlags) helmValues(sources []rules.Source, definitions []*rules.Definition, needs rbac.Needs) (helmValues, error) {
	v := helmValues{configMap: f.configMap, builtin: map[string]string{}, roles: rbac.Roles(needs, f.name, types.NamespacedName{})}
	for _, source := range sources {
		if name, ok := strings.CutPrefix(source.Name, builtin.Prefix); ok {
			v.builtin[name] = string(source.Data)
		}
	}
	v.namespaces = slices.Compact(slices.Sorted(slices.Values(f.namespaces)))
	if f.configMap != "" {
		if len(f.rules.paths) == 0 {
			return v, fmt.Errorf("--%s goes with --rules: rights are made for the rules in it", configMapFlag)
		}
		return v, nil
	}
	var err error
	v.rules, err = configMapData(sources, definitions)
	return v, err
}

// maxConfigMap is what of the 1 MiB of a ConfigMap is used for rules; values of a
// release are stored by Helm in a Secret of the same size, but compressed.
const maxConfigMap = 1_000_000

// configMapData gives the rule files the names that they have in a ConfigMap: the
// last part of their path, or all of it where that is not enough to tell them
// apart. Files of a folder that hold no rule stay out.
func configMapData(sources []rules.Source, definitions []*rules.Definition) (map[string]string, error) {
	out := map[string]string{}
	var files []rules.Source
	bases := map[string]int{}
	for _, source := range sources {
		holdsRule := func(d *rules.Definition) bool { return d.Doc.File == source.Name }
		if !strings.HasPrefix(source.Name, builtin.Prefix) && (!source.Listed || slices.ContainsFunc(definitions, holdsRule)) {
			files = append(files, source)
			bases[key(filepath.Base(source.Name))]++
		}
	}
	size := 0
	for _, file := range files {
		name := key(filepath.Base(file.Name))
		if bases[name] > 1 {
			name = key(file.Name)
		}
		if _, ok := out[name]; ok {
			return nil, fmt.Errorf("%s: another file gets the same name %s in the ConfigMap: rename one of them", file.Name, name)
		}
		if !utf8.Valid(file.Data) {
			return nil, fmt.Errorf("%s is not UTF-8: a ConfigMap cannot hold it", file.Name)
		}
		out[name] = string(file.Data)
		size += len(name) + len(file.Data)
	}
	if size > maxConfigMap {
		return nil, fmt.Errorf("the rule files have %d bytes together, and a ConfigMap holds %d: mount them in another way and use rectifier rbac without -o helm", size, maxConfigMap)
	}
	return out, nil
}

var notInKey = regexp.MustCompile(`[^-._a-zA-Z0-9]+`)

// key makes a path a key of a ConfigMap that is read as a rule file.
func key(path string) string {
	if path == input.Stdin {
		return "stdin.yaml"
	}
	name := strings.TrimLeft(notInKey.ReplaceAllString(filepath.ToSlash(path), "-"), "-._")
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		name += ".yaml"
	}
	return name
}

// digest is what ties rights to the rules that they were made for. The chart
// makes the same of its values, and refuses others: the SHA-256 of one line for
// each file, as sha256sum prints it, and for each other value that decides. Of a
// built-in rule the text counts too: another version of it may need other rights.
func (v helmValues) digest() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(v.rules)) {
		lines = append(lines, fmt.Sprintf("%x  %s", sha256.Sum256([]byte(v.rules[name])), name))
	}
	if v.configMap != "" {
		lines = append(lines, "configmap "+v.configMap)
	}
	for _, name := range slices.Sorted(maps.Keys(v.builtin)) {
		lines = append(lines, fmt.Sprintf("builtin %s %x", name, sha256.Sum256([]byte(v.builtin[name]))))
	}
	for _, name := range v.namespaces {
		lines = append(lines, "namespace "+name)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

// yaml writes the values, with comments that say for whom a right is.
func (v helmValues) yaml() ([]byte, error) {
	cluster := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	inNamespaces := &yaml.Node{Kind: yaml.MappingNode}
	for _, role := range v.roles {
		grants, err := grantNodes(role)
		if err != nil {
			return nil, err
		}
		if role.Namespace == "" {
			cluster = grants
			continue
		}
		inNamespaces.Content = append(inNamespaces.Content, textNode(role.Namespace), grants)
	}
	if len(inNamespaces.Content) == 0 {
		inNamespaces.Style = yaml.FlowStyle
	}
	values := mappingNode(
		"builtin", listNode(slices.Sorted(maps.Keys(v.builtin))),
		"namespaces", listNode(v.namespaces),
		"rbac", mappingNode("digest", textNode(v.digest()), "clusterRules", cluster, "namespaceRules", inNamespaces))
	switch {
	case v.configMap != "":
		values.Content = append(mappingNode("existingConfigMap", textNode(v.configMap)).Content, values.Content...)
	case len(v.rules) > 0:
		values.Content = append(mappingNode("rules", v.ruleNodes()).Content, values.Content...)
	}
	values.HeadComment = "# Values for the Helm chart: rules, and just the rights that they need. Made by\n" +
		"# `rectifier rbac -o helm`; make them anew instead of editing them.\n"
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(values), encoder.Close()); err != nil {
		return nil, fmt.Errorf("write the values: %w", err)
	}
	return out.Bytes(), nil
}

func (v helmValues) ruleNodes() *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range slices.Sorted(maps.Keys(v.rules)) {
		out.Content = append(out.Content, textNode(name), fileNode(v.rules[name]))
	}
	return out
}

// fileNode holds a text as a block if Helm reads just the same from that: the
// digest is made of each byte.
func fileNode(text string) *yaml.Node {
	n := textNode(text)
	n.Style = yaml.LiteralStyle
	var back map[string]string
	encoded, err := yaml.Marshal(mappingNode("file", n))
	if err != nil || kubernetesyaml.Unmarshal(encoded, &back) != nil || back["file"] != text {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// grantNodes are the rules of a role as package rbac writes them, comments too.
func grantNodes(role rbac.Role) (*yaml.Node, error) {
	text, err := rbac.YAML([]rbac.Role{role})
	if err != nil {
		return nil, err
	}
	var object struct{ Rules yaml.Node }
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("read a role: %w", err)
	}
	return &object.Rules, nil
}

// mappingNode makes a mapping of keys and nodes in turn.
func mappingNode(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		n.Content = append(n.Content, textNode(pairs[i].(string)), pairs[i+1].(*yaml.Node))
	}
	return n
}

func listNode(texts []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, text := range texts {
		n.Content = append(n.Content, textNode(text))
	}
	return n
}

// textNode is a string for YAML 1.1 too, which Helm reads: "on" or "0x1" as the
// name of a namespace must not become something else.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	var back any
	if kubernetesyaml.Unmarshal([]byte(text), &back) != nil || back != text {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
