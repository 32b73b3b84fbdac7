package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/live"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules"
)

// diffCluster shows what run would write.
func (f *diffFlags) diffCluster(ctx context.Context, set *rules.Set, names []string, report *diffReport, p *diffPrinter) error {
	config, err := f.cluster.config()
	if err != nil {
		return err
	}
	logger := logr.Discard() // what could not be done is told in the end
	if f.verbosity > 0 {
		p.progress.terminal = false // the informers write beside it
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(p.progress.w), textlogger.Verbosity(f.verbosity)))
	}
	klog.SetLogger(logger)
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger), f.timeout)
	defer cancel()
	read, err := readNamespaces(ctx, config, f.namespaces)
	if err != nil {
		return err
	}
	selected, err := selectObjects(set, names, func(arg live.Argument) ([]schema.GroupVersionResource, error) {
		cluster, err := live.Connect(ctx, config)
		if err != nil {
			return nil, err
		}
		found, _ := cluster.Resources(arg, func(r schema.GroupResource) bool { return len(set.Versions(r)) > 0 })
		return found, nil // no rule is about what there is not
	})
	if err != nil {
		return err
	}
	if len(selected) > 0 {
		// What else the rules are about is not read, and keeps nothing from being fine.
		set = set.About(selected.about)
		report.of(set)
	}
	e, err := engine.New(engine.Options{
		Config: config, Rules: set, Namespaces: f.namespaces, ReadNamespaces: read, ExcludeNamespaces: f.exclude.patterns,
		FieldManager: f.fieldManager, DryRun: true,
	})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	err = f.preview(ctx, cancel, e, selected, report, p)
	report.notes(set, f.namespaces, read)
	return f.verdict(err, selected, report, p)
}

// preview has the engine look at the objects that are selected, and tells of them
// as they come.
func (f *diffFlags) preview(ctx context.Context, cancel func(), e *engine.Engine, selected selection, report *diffReport, p *diffPrinter) error {
	selects := f.selects(selected)
	return e.Preview(ctx, engine.PreviewOptions{Select: selects, ServerDryRun: f.serverDryRun}, func(v engine.Preview) {
		c := newChange(refOf(v.Object.Object), v.Object.Object, v.Result, report.shield)
		c.Error = v.Unknown
		if v.Server != nil {
			c.answered(v.Server)
			if errors.Is(v.Server.Err, engine.ErrUnreachable) {
				report.untried++
			}
		}
		// Rules that the server refuses are not among the verdicts any more.
		matched := isMatched(v.Result.Verdicts) || v.Server != nil && len(v.Server.Refused) > 0
		if report.add(c, matched) {
			p.findings(c)
			p.liveDiff(c)
		}
		p.progress.show(report.Summary.Objects, report.Summary.Changed)
		if p.err != nil {
			cancel() // nobody reads any more
		}
	})
}

// verdict is how a preview ends: err is its error.
func (f *diffFlags) verdict(err error, selected selection, report *diffReport, p *diffPrinter) error {
	if short := new(engine.Shortfall); errors.As(err, &short) {
		report.NotDone = short.Lines
	}
	if missing := selected.missing(); err == nil || errors.Is(err, engine.ErrParked) {
		if missing != nil && p.err == nil {
			return &exitError{exitUsage, errors.Join(missing, err)}
		}
	}
	switch {
	case p.err != nil:
		return nil // it is what there is to tell
	case errors.Is(err, engine.ErrParked) && !errors.Is(err, engine.ErrUnreachable):
		return &exitError{exitFindings, err}
	case err != nil:
		return clusterError(err, printReadRole)
	case report.untried > 0:
		return &exitError{exitCluster, fmt.Errorf("%s could not be tried", count(report.untried, "change", "changes"))}
	}
	return nil
}

// selection is which live objects are looked at.
type selection []*selector

type selector struct {
	text      string
	resources []schema.GroupVersionResource
	name      string // empty: all
	found     bool
	excluded  bool // it is there, but left out
}

// selectObjects reads RESOURCE and RESOURCE/NAME. A resource is written as in
// a rule or as kubectl has it: deployments, deploy, Deployment, deployments.apps.
// What only the cluster knows, all but the plural, resolve is asked for.
func selectObjects(set *rules.Set, args []string, resolve func(live.Argument) ([]schema.GroupVersionResource, error)) (selection, error) {
	var out selection
	for _, arg := range args {
		resource, name, named := strings.Cut(arg, "/")
		if resource == "" || named && (name == "" || strings.Contains(name, "/")) {
			return nil, &exitError{exitUsage, fmt.Errorf("%q is not RESOURCE or RESOURCE/NAME", arg)}
		}
		s := &selector{text: arg, name: name, resources: namedBy(set, live.ParseArgument(resource))}
		if len(s.resources) == 0 {
			found, err := resolve(live.ParseArgument(resource))
			if err != nil {
				return nil, clusterError(err, printReadRole)
			}
			s.resources = inRules(set, found, live.ParseArgument(resource).Version())
		}
		if len(s.resources) == 0 {
			return nil, &exitError{exitUsage, unknownResource(set, resource)}
		}
		out = append(out, s)
	}
	return out, nil
}

// inRules are the versions of a resource in which rules name it: also those that
// are not served, of which it has to be told. version is the only one that is
// asked for; empty: all are.
func inRules(set *rules.Set, found []schema.GroupVersionResource, version string) []schema.GroupVersionResource {
	if len(found) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(set.Versions(found[0].GroupResource())), func(r schema.GroupVersionResource) bool {
		return version != "" && r.Version != version
	})
}

// unknownResource says that no rule is about a resource.
func unknownResource(set *rules.Set, resource string) error {
	var known []string
	for _, r := range set.Resources() {
		known = append(known, r.Resource)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return fmt.Errorf("no rule is about %q%s: the rules are about %s", resource, suggest.DidYouMean(resource, known), strings.Join(known, ", "))
}

// namedBy are those resources of the rules that an argument names in the plural.
func namedBy(set *rules.Set, arg live.Argument) []schema.GroupVersionResource {
	return slices.DeleteFunc(slices.Clone(set.Resources()), func(r schema.GroupVersionResource) bool { return !arg.Names(r) })
}

// selects is the selection for a preview, which knows what is left out.
func (f *diffFlags) selects(s selection) func(info gvr.Info, namespace, name string) bool {
	globs := f.exclude.globs()
	return func(info gvr.Info, namespace, name string) bool {
		_, excluded := engine.ExcludedBy(globs, info.Resource.GroupResource(), namespace, name)
		return s.selects(info, name, excluded)
	}
}

// about reports whether a resource is among those that are selected.
func (s selection) about(resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(s, func(one *selector) bool { return slices.Contains(one.resources, resource) })
}

func (s selection) selects(info gvr.Info, name string, excluded bool) bool {
	if len(s) == 0 {
		return true
	}
	hit := false
	for _, one := range s {
		if slices.Contains(one.resources, info.Resource) && (one.name == "" || one.name == name) {
			one.found, one.excluded = one.found || !excluded, one.excluded || excluded
			hit = true
		}
	}
	return hit
}

// missing tells of the names that no object has which is looked at; nil: there
// is none.
func (s selection) missing() error {
	var absent, excluded []string
	for _, one := range s {
		switch {
		case one.name == "" || one.found:
		case one.excluded:
			excluded = append(excluded, one.text)
		default:
			absent = append(absent, one.text)
		}
	}
	var out []error
	if len(absent) > 0 {
		out = append(out, fmt.Errorf("not in the cluster: %s", strings.Join(absent, ", ")))
	}
	if len(excluded) > 0 {
		out = append(out, fmt.Errorf("left out by --exclude-namespace: %s", strings.Join(excluded, ", ")))
	}
	return errors.Join(out...)
}
