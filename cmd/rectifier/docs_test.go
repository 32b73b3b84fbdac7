package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const cliDocument = "../../docs/cli.md"

// docs/cli.md is what the commands say of themselves: UPDATE=1 writes it anew.
func TestCLIDocs(t *testing.T) {
	got := cliDocs(newRoot(streams{}))
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(cliDocument, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(cliDocument)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/cli.md is not what the commands say: UPDATE=1 go test ./cmd/rectifier -run TestCLIDocs (-document +commands):\n%s", diff)
	}
}

// cliDocs writes the document.
func cliDocs(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`<!-- Written by the commands: UPDATE=1 go test ./cmd/rectifier -run TestCLIDocs -->

# The command line

One binary, ` + "`rectifier`" + `, which also is a plugin of kubectl. ` + "`rectifier COMMAND --help`" + ` tells what stands here.

| command | does |
|---|---|
`)
	all := documented(root)
	for _, cmd := range all {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", cmd.CommandPath(), anchor(cmd), cmd.Short)
	}
	b.WriteString(commonDocs)
	for _, cmd := range all {
		writeCommand(&b, cmd)
	}
	return b.String()
}

// documented are the commands that are shown, but for the four of completion,
// whose help is that of cobra.
func documented(root *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			out = append(out, cmd)
		}
	}
	return out
}

// anchor is where GitHub puts a heading.
func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

const commonDocs = `
## What all commands share

**Streams.** Results go to standard output; logs, progress, problems and summaries go to standard error.

**Exit codes.** The help of a command says what it takes for a finding.

| code | meaning |
|---|---|
| 0 | fine |
| 1 | findings: something would be changed, a test or a rule failed, a right is missing |
| 2 | wrong usage, or input that cannot be read: rules that do not compile, manifests that are no YAML |
| 3 | the cluster could not be reached, or refused |

**PATH** is a file, a folder, or ` + "`-`" + ` for standard input. A folder is read recursively: all of its ` + "`*.yaml`, `*.yml` and `*.json`" + ` files in lexical
order, without hidden files and folders. A file that is reached in several ways is read once. A file may hold several documents, and lists such as those that
` + "`kubectl get -o yaml`" + ` prints.

**Rules** come from ` + "`--rules PATH` and `--builtin NAME`; `--rule NAME`" + ` picks some of them. A rule that does not compile is reported with its position and left
out; the others do their work.

**Output.** ` + "`-o`" + ` changes how a report is printed, never what is found or the exit code. JSON and YAML have the same fields, in a stable order.

**Cluster.** It is found as kubectl does: ` + "`--kubeconfig`, `$KUBECONFIG`, `~/.kube/config`" + `, or the service account of the pod.

**Environment.**

| variable | meaning |
|---|---|
| ` + "`KUBECONFIG`" + ` | files that say how to reach clusters, as for kubectl |
| ` + "`NO_COLOR`" + ` | not empty: no colour, on a terminal either |

### A plugin of kubectl

Under the name ` + "`kubectl-rectify`, in a folder of `$PATH`, the same binary is `kubectl rectify`" + `; help and messages then say so. kubectl completes for
it with the help of a second link:

` + "```" + `
ln -s "$(command -v rectifier)" ~/bin/kubectl-rectify
ln -s "$(command -v rectifier)" ~/bin/kubectl_complete-rectify
` + "```" + `

### Completion

` + "`source <(rectifier completion bash)`" + ` (or zsh, fish, powershell) completes commands, flags, files, and the names of rules, built-in rules and contexts.
`

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```\n%s\n```\n%s", cmd.CommandPath(), cmd.Short, cmd.UseLine(), prose(cmd.Long))
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```\n%s\n```\n", unindented(cmd.Example))
	}
	if flags := flagsOf(cmd); len(flags) > 0 {
		b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
		for _, f := range flags {
			writeFlag(b, f)
		}
	}
}

// prose makes Markdown of a help text: what is indented is shown as it is.
func prose(text string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		text, shown := paragraph, ""
		if at := regexp.MustCompile(`(?m)^(?:  |\t)`).FindStringIndex(paragraph); at != nil {
			text, shown = paragraph[:at[0]], paragraph[at[0]:]
		}
		if text != "" {
			fmt.Fprintf(&b, "\n%s\n", escaped(strings.TrimSpace(text)))
		}
		if shown != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", unindented(shown))
		}
	}
	return b.String()
}

// escaped keeps Markdown from reading marks into plain text; `code` stays.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = regexp.MustCompile(`[*_<]`).ReplaceAllString(parts[i], `\$0`)
	}
	return strings.Join(parts, "`")
}

func unindented(text string) string {
	return regexp.MustCompile(`(?m)^  `).ReplaceAllString(strings.Trim(text, "\n"), "")
}

// flagsOf are the flags of a command, by name, without --help.
func flagsOf(cmd *cobra.Command) []*pflag.Flag {
	var out []*pflag.Flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			out = append(out, f)
		}
	})
	return out
}

func writeFlag(b *strings.Builder, f *pflag.Flag) {
	takes, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + "`, `" + name
	}
	if takes != "" {
		name += " " + takes
	}
	value := f.DefValue
	switch value {
	case "false", "[]", "0", "":
		value = ""
	default:
		value = "`" + strings.Trim(value, "[]") + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(escaped(usage), "|", "\\|"))
}

// Every command tells what it does, with an example; every flag says what it
// means.
func TestEveryCommandIsExplained(t *testing.T) {
	root := newRoot(streams{})
	for _, cmd := range commands(root) {
		path := cmd.CommandPath()
		if cmd.Hidden {
			t.Errorf("%s is hidden", path)
		}
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s: Short, Long and Example are needed", path)
		}
		if strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short ends with a full stop", path)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") && line != "\n" {
				t.Errorf("%s: an example is not indented by two: %q", path, line)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			takes, usage := pflag.UnquoteUsage(f)
			if strings.TrimSpace(usage) == "" {
				t.Errorf("%s --%s: no usage", path, f.Name)
			}
			if f.Value.Type() != "bool" && f.Value.Type() != takes && strings.ToUpper(takes) != takes {
				t.Errorf("%s --%s: what it takes is %q", path, f.Name, takes)
			}
		})
	}
}

// calls are the command lines of rectifier in a text: after a shell's operators
// too, without redirections and comments.
func calls(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, " #")
		for _, m := range regexp.MustCompile(`(?:^|[|;&(])\s*rectifier ([^|;&()<>]*)`).FindAllStringSubmatch(line, -1) {
			out = append(out, strings.Fields(m[1]))
		}
	}
	return out
}

// Examples are command lines that there are.
func TestExamplesParse(t *testing.T) {
	n := 0
	for _, documented := range commands(newRoot(streams{})) {
		for _, args := range calls(documented.Example + "\n" + indented(documented.Long)) {
			n++
			if err := parse(args); err != nil {
				t.Errorf("%s: rectifier %s: %v", documented.CommandPath(), strings.Join(args, " "), err)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d examples were found", n)
	}
	// The test can fail.
	for _, wrong := range [][]string{{"fxi", "x"}, {"fix", "--ruels", "x", "y"}, {"fix"}, {"version", "x"}, {"run", "--workers", "many"}} {
		if parse(wrong) == nil {
			t.Errorf("%q passes", wrong)
		}
	}
}

// indented are the lines of a text that show something.
func indented(text string) string {
	return strings.Join(regexp.MustCompile(`(?m)^(?:  |\t).*$`).FindAllString(text, -1), "\n")
}

// parse parses a command line, and checks its arguments, without running it.
func parse(args []string) error {
	root := newRoot(streams{})
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	return cmp.Or(cmd.ParseFlags(rest), cmd.ValidateArgs(cmd.Flags().Args()), cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
}
