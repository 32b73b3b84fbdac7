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
	e, err := engine.New(engine.Options{Config: config, Rules: set, Namespaces: f.namespaces, ReadNamespaces: read, FieldManager: f.fieldManager, DryRun: true})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	refused := 0
	err = e.Preview(ctx, engine.PreviewOptions{Select: selected.selects, ServerDryRun: f.serverDryRun}, func(v engine.Preview) {
		c := newChange(refOf(v.Object.Object), v.Object.Object, v.Result)
		c.Error = v.Unknown
		if v.Server != nil {
			c.answered(v.Server)
			if errors.Is(v.Server.Err, engine.ErrUnreachable) {
				refused++
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
	if missing := selected.missing(); err == nil || errors.Is(err, engine.ErrParked) {
		if len(missing) > 0 && p.err == nil {
			return &exitError{exitUsage, errors.Join(fmt.Errorf("not in the cluster: %s", strings.Join(missing, ", ")), err)}
		}
	}
	switch {
	case p.err != nil:
		return nil // it is what there is to tell
	case errors.Is(err, engine.ErrParked) && !errors.Is(err, engine.ErrUnreachable):
		return &exitError{exitFindings, err}
	case err != nil:
		return clusterError(err, printReadRole)
	case refused > 0:
		return &exitError{exitCluster, fmt.Errorf("%s could not be tried", count(refused, "change", "changes"))}
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
			for _, r := range found {
				if len(set.For(r)) > 0 {
					s.resources = append(s.resources, r)
				}
			}
		}
		if len(s.resources) == 0 {
			return nil, &exitError{exitUsage, unknownResource(set, resource)}
		}
		out = append(out, s)
	}
	return out, nil
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

func (s selection) selects(info gvr.Info, _, name string) bool {
	if len(s) == 0 {
		return true
	}
	hit := false
	for _, one := range s {
		if slices.Contains(one.resources, info.Resource) && (one.name == "" || one.name == name) {
			one.found, hit = true, true
		}
	}
	return hit
}

// missing are the names that no object has.
func (s selection) missing() []string {
	var out []string
	for _, one := range s {
		if one.name != "" && !one.found {
			out = append(out, one.text)
		}
	}
	return out
}
