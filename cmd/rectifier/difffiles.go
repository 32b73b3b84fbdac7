package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/objectdiff"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// diffFiles shows what fix would write: it reads and evaluates as fix does.
func (f *diffFlags) diffFiles(ctx context.Context, set *rules.Set, paths []string, report *diffReport, p *diffPrinter) error {
	if err := oneStdin(paths, f.rules.paths, f.crds, f.objects); err != nil {
		return err
	}
	fix := &fixFlags{crds: f.crds, objects: f.objects, now: f.now, namespace: "default"}
	if len(f.namespaces) > 0 {
		fix.namespace = f.namespaces[0]
	}
	fixer, err := fix.fixer(set, p.streams)
	if err != nil {
		return err
	}
	sources, err := input.Find(paths, p.in)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("read the manifests: %w%s", err, f.liveHint(paths, err))}
	}
	err = (&fixJob{fixer: fixer}).learn(ctx, sources)
	unreadable := 0
	for i := 0; err == nil && i < len(sources) && p.err == nil; i++ {
		d := &fileDiff{fixer: fixer, report: report, p: p, name: sources[i].Name}
		err = d.diff(ctx, sources[i])
		unreadable += d.unreadable
	}
	for _, source := range sources {
		err = errors.Join(err, source.Close())
	}
	switch {
	case err != nil:
		return &exitError{exitUsage, err}
	case unreadable > 0:
		return &exitError{code: exitUsage}
	}
	return nil
}

// inCluster is what RESOURCE/NAME looks like.
var inCluster = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.]*/[a-z0-9][a-z0-9.-]*$`)

// liveHint tells of --cluster where a path is none and looks like an object.
func (f *diffFlags) liveHint(paths []string, err error) string {
	for _, path := range paths {
		if _, stat := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && errors.Is(stat, fs.ErrNotExist) &&
			inCluster.MatchString(path) && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return "; for an object in the cluster: --cluster " + path
		}
	}
	return ""
}

// fileDiff compares one file with what fix would make of it. It holds the text,
// but no more than one document of it in another form.
type fileDiff struct {
	fixer  *offline.Fixer
	report *diffReport
	p      *diffPrinter
	name   string

	before []byte
	after  bytes.Buffer
	at     int // how much of before is in after

	masks      [2][]*objectdiff.Mask // of all objects: before and after
	masked     bool
	unreadable int
}

// diff compares a file. What is wrong with it is told and counted; an error ends
// the run.
func (d *fileDiff) diff(ctx context.Context, source *input.Source) error {
	r, err := source.Open(true)
	if err == nil {
		d.before, err = io.ReadAll(contextReader{ctx, r})
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.complain(fmt.Errorf("read the manifests: %w", err))
		return nil
	}
	reader := manifest.NewReader(d.name, contextReader{ctx, bytes.NewReader(d.before)})
	for {
		file, err := reader.Next()
		switch {
		case err == io.EOF:
			d.after.Write(d.before[d.at:])
			d.print()
			return nil
		case errors.As(err, new(*yamldoc.Error)):
			d.complain(err)
		case err != nil:
			return err
		default:
			d.document(file)
		}
	}
}

func (d *fileDiff) complain(err error) {
	d.p.tell("rectifier: %v\n", err)
	d.unreadable++
}

// document evaluates the objects of a document and adds its text to what the
// file becomes. Documents that could not be read stay as they are.
func (d *fileDiff) document(file *manifest.File) {
	before, err := file.Bytes()
	if err != nil {
		d.complain(err)
		return
	}
	for _, w := range file.Warnings() {
		d.p.tell("%s: warning: %s\n", w.Pos, w.Msg)
	}
	for _, object := range file.Objects() {
		d.object(object)
	}
	after, err := file.Bytes()
	if err != nil {
		d.complain(fmt.Errorf("write the changes into the manifest: %w", err))
	}
	if start := bytes.Index(d.before[d.at:], before); start >= 0 {
		d.after.Write(d.before[d.at : d.at+start])
		d.after.Write(after)
		d.at += start + len(before)
	}
}

func (d *fileDiff) object(object *manifest.Object) {
	c, matched := d.change(object)
	if d.report.add(c, matched) {
		d.p.findings(c)
	}
	d.p.progress.show(d.report.Summary.Objects, d.report.Summary.Changed)
	old, changed := c.masks()
	d.masks[0], d.masks[1] = append(d.masks[0], old), append(d.masks[1], changed)
	d.masked = d.masked || old != nil
	if len(c.Patch) == 0 {
		return
	}
	if err := object.Update(unplaced(object.Value(), c.after)); err != nil {
		d.complain(fmt.Errorf("change %s: %w", c.where(), err))
	}
}

// change evaluates an object.
func (d *fileDiff) change(object *manifest.Object) (c *objectChange, matched bool) {
	seen, result := object.Value(), rules.Result{}
	if e, ok := d.fixer.Evaluate(object.Value()); ok {
		seen, result, matched = e.Object, e.Result, isMatched(e.Verdicts)
	}
	ref := refOf(seen)
	ref.File, ref.Line, ref.Column = object.Position().File, object.Position().Line, object.Position().Column
	return newChange(ref, seen, result, d.report.shield), matched
}

// unplaced takes away the namespace that an object was given to be evaluated.
func unplaced(written, after map[string]any) map[string]any {
	if meta, _ := written["metadata"].(map[string]any); meta["namespace"] != nil {
		return after
	}
	return patch.ApplyMerge(after, map[string]any{"metadata": map[string]any{"namespace": nil}})
}

// print prints how the text changes. Where a secret value cannot be found in the
// text, it prints how the objects change instead.
func (d *fileDiff) print() {
	after := d.after.Bytes()
	if !d.p.text || bytes.Equal(d.before, after) {
		return
	}
	if d.masked {
		d.p.tell("%s: values of Secrets are not shown: this diff cannot be applied\n", d.name)
	}
	shownBefore, err := objectdiff.Manifest(d.name, d.before, d.masks[0])
	shownAfter, errAfter := objectdiff.Manifest(d.name, after, d.masks[1])
	if errors.Join(err, errAfter) == nil {
		d.p.diff(objectdiff.Unified(objectdiff.FileName(diffName("a/", d.name)), objectdiff.FileName(diffName("b/", d.name)), shownBefore, shownAfter))
		return
	}
	d.printObjects()
}

// printObjects prints how the objects change, in a second pass over the file.
func (d *fileDiff) printObjects() {
	reader := manifest.NewReader(d.name, bytes.NewReader(d.before))
	for {
		file, err := reader.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			continue // told before
		}
		for _, object := range file.Objects() {
			if c, _ := d.change(object); !patch.Equal(c.before, c.after) {
				d.p.objectDiff(diffName("a/", d.name)+": "+c.String(), diffName("b/", d.name)+": "+c.String(), c)
			}
		}
	}
}

// diffName is a path as it stands in the header of a diff, behind a/ or b/: that
// of a file below the working directory is relative to it, as patch and git apply
// want it, however it was given.
func diffName(side, name string) string {
	if name == input.Stdin {
		return side + name
	}
	return side + strings.TrimLeft(filepath.ToSlash(belowWorkingDirectory(filepath.Clean(name))), "/")
}

// belowWorkingDirectory makes a path relative to the working directory, if it is
// below that.
func belowWorkingDirectory(name string) string {
	if filepath.IsLocal(name) {
		return name
	}
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if local, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(local) {
		return local
	}
	// The folder may be written in another way, with a link in it.
	realDir, err := filepath.EvalSymlinks(dir)
	folder, errFolder := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Join(err, errFolder) == nil {
		if local, err := filepath.Rel(realDir, filepath.Join(folder, filepath.Base(path))); err == nil && filepath.IsLocal(local) {
			return local
		}
	}
	return name
}
