package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

type fixFlags struct {
	rules     ruleFlags
	crds      []string
	objects   []string
	now       string
	namespace string
	inPlace   bool
	check     bool
	match     bool
}

func newFix(s streams) *cobra.Command {
	var f fixFlags
	cmd := &cobra.Command{
		Use:   "fix PATH…",
		Short: "Apply rules to manifests, offline",
		Long: `Fix prints manifests as the rules want them, and leaves everything else byte for
byte as it was: comments, order, quotes, separators. YAML in, YAML out; JSON in,
JSON out. A PATH is a file, a folder (recursive), or - for standard input.

What was changed, and why, goes to standard error. A rule that fails on an
object is reported there and changes nothing. Rules of mode Audit are reported,
not applied.`,
		Example: `  rectifier fix --builtin expected-replicas deployment.yaml
  rectifier fix --rules rules/ --check manifests/
  kubectl get deployments -o yaml | rectifier fix --rules rules/ -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			if f.namespace == "" {
				return &exitError{exitUsage, errors.New("--namespace is empty: is a variable not set?")}
			}
			if f.inPlace && slices.Contains(paths, "-") {
				return &exitError{exitUsage, errors.New("--in-place writes files, and standard input (-) is none")}
			}
			return f.run(paths, s)
		},
	}
	f.rules.add(cmd, nil)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.crds, "crds", nil, "`PATH` of CRD manifests: plural names, scope and replica paths of custom resources")
	flags.StringArrayVar(&f.objects, "objects", nil, "`PATH` of objects that rules may look up, Namespaces among them; those in PATH… count too")
	flags.StringVar(&f.now, "now", "", "the `TIME` that rules read, such as 2026-01-01T00:00:00Z (default: the real one)")
	flags.StringVarP(&f.namespace, "namespace", "n", "default", "where objects of namespaced kinds are that do not say so")
	flags.BoolVarP(&f.inPlace, "in-place", "i", false, "write the files instead of printing them")
	flags.BoolVar(&f.check, "check", false, "print and write no manifests; exit with 1 if something would change")
	flags.BoolVar(&f.match, "require-match", false, "exit with 1 if no object is matched by any rule")
	cmd.MarkFlagsMutuallyExclusive("in-place", "check")
	return cmd
}

func (f *fixFlags) run(paths []string, s streams) error {
	set, problems, err := f.rules.load(s)
	if err != nil {
		return err
	}
	catalog, types, err := readCatalog(f.crds, s)
	if err != nil {
		return err
	}
	files, err := input.Read(paths, s.in, yamldoc.ManifestLimits.MaxBytes)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("read the manifests: %w", err)}
	}
	fixer := &offline.Fixer{Rules: set, Catalog: catalog, Namespace: f.namespace, World: offline.NewWorld(catalog, f.namespace), Types: types, Now: time.Now()}
	if f.now != "" {
		if fixer.Now, err = time.Parse(time.RFC3339, f.now); err != nil {
			return &exitError{exitUsage, fmt.Errorf("--now: %w", err)}
		}
	}
	if err := addObjects(fixer.World, f.objects, s); err != nil {
		return err
	}
	var total offline.Report
	unreadable := 0
	printed := &joiner{out: s.out}
	parsed := make([]*manifest.File, len(files))
	for i, file := range files {
		if parsed[i], err = manifest.Parse(file.Name, file.Data); err != nil {
			fmt.Fprintln(s.err, "rectifier:", err)
			unreadable++
			continue
		}
		fixer.World.Add(parsed[i])
	}
	for _, file := range parsed {
		if file == nil {
			continue
		}
		report, err := f.fixFile(fixer, file, s, printed)
		total.Add(report)
		if err != nil {
			fmt.Fprintln(s.err, "rectifier:", err)
			unreadable++
		}
	}
	failed := printSummary(s.err, total)
	switch {
	case unreadable > 0, len(problems) > 0:
		return &exitError{code: exitUsage}
	case failed > 0, f.check && total.Changed > 0, f.match && total.Matched == 0:
		return &exitError{code: exitFindings}
	}
	return nil
}

// fixFile fixes one file and puts the result where it belongs.
func (f *fixFlags) fixFile(fixer *offline.Fixer, file *manifest.File, s streams, printed *joiner) (offline.Report, error) {
	report, err := fixer.Fix(file)
	if err != nil {
		return report, err
	}
	for _, finding := range report.Findings {
		printFinding(s.err, finding)
	}
	text, err := file.Bytes()
	switch {
	case err != nil:
		return report, fmt.Errorf("write the changes into the manifest: %w", err)
	case f.check:
		return report, nil
	case f.inPlace:
		if report.Changed == 0 {
			return report, nil
		}
		return report, replaceFile(file.Name(), text)
	}
	return report, printed.print(text, filepath.Ext(file.Name()) == ".json")
}

func printFinding(w io.Writer, f offline.Finding) {
	v := f.Verdict
	where := fmt.Sprintf("%s: %s", f.Pos, f.Object)
	switch {
	case v.Err != nil:
		fmt.Fprintf(w, "%s: rule %s failed: %v%s\n", where, v.Rule.Name, v.Err, whatToGive(v.Err))
	case v.Rule.Mode == rules.Audit:
		fmt.Fprintf(w, "%s: rule %s would change it (Audit): %s\n", where, v.Rule.Name, v.Event.Message)
	default:
		fmt.Fprintf(w, "%s: %s: %s\n", where, v.Rule.Name, v.Event.Message)
	}
}

// whatToGive names the flag that makes known what a rule needs to know.
func whatToGive(err error) string {
	var unknown *rules.UnknownError
	switch {
	case errors.Is(err, rules.ErrReplicasUnknown):
		return " (--crds tells)"
	case !errors.As(err, &unknown):
		return ""
	case unknown.Schema:
		return " (give its CRD with --crds)"
	}
	return " (give it with --objects)"
}

// printSummary prints the counts and returns how often a rule failed.
func printSummary(w io.Writer, r offline.Report) (failed int) {
	for _, f := range r.Findings {
		if f.Verdict.Err != nil {
			failed++
		}
	}
	fmt.Fprintf(w, "%s, %d matched, %d changed, %s\n",
		count(r.Objects, "object", "objects"), r.Matched, r.Changed, count(failed, "failure", "failures"))
	return failed
}

// joiner prints files one after another as one valid stream. One file alone is
// printed as it is, to the last byte.
type joiner struct {
	out  io.Writer
	last byte // 0: nothing printed yet
}

func (j *joiner) print(text []byte, json bool) error {
	if len(text) == 0 {
		return nil
	}
	glue := ""
	if j.last != 0 && j.last != '\n' {
		glue = "\n"
	}
	if j.last != 0 && !json && !bytes.HasPrefix(text, []byte("---")) {
		glue += "---\n"
	}
	j.last = text[len(text)-1]
	if _, err := io.WriteString(j.out, glue); err != nil {
		return err
	}
	_, err := j.out.Write(text)
	return err
}

// replaceFile writes a file anew, all or nothing, with its permissions. What
// a link points to is written, not the link. A file that may not be written is
// not replaced either, although its folder would allow that.
func replaceFile(name string, text []byte) (err error) {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	if err := mayWrite(target, info); err != nil {
		return fmt.Errorf("write the changes into the manifest: %w; it is left as it was", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), target)
}

// mayWrite returns an error if a file is read-only, for root too, or cannot be
// written by this user.
func mayWrite(name string, info os.FileInfo) error {
	if info.Mode().Perm()&0o222 == 0 {
		return fmt.Errorf("%s is read-only (mode %04o)", name, info.Mode().Perm())
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
