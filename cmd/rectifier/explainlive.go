package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/live"
	"github.com/rectifier-dev/rectifier/rules"
)

// explainLive explains objects of the cluster.
func (f *explainFlags) explainLive(ctx context.Context, set *rules.Set, written writtenRules, names []string, now time.Time) (explainReport, error) {
	report := explainReport{Objects: []explainedObject{}}
	wanted, err := parseNames(names)
	if err != nil {
		return report, err
	}
	config, err := f.cluster.config()
	if err != nil {
		return report, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	cluster, err := live.Connect(ctx, config)
	if err != nil {
		return report, clusterError(err, printReadRole)
	}
	catalog, err := gvr.NewCatalog()
	if err != nil {
		return report, err
	}
	costs := f.newCosts(set, catalog)
	var missing error
	for _, w := range wanted {
		resources, err := cluster.Resources(w.resource, func(r schema.GroupResource) bool { return len(set.Versions(r)) > 0 })
		if err != nil {
			return report, &exitError{exitUsage, err}
		}
		for _, resource := range about(set, resources) {
			o, err := f.explainLiveObject(ctx, cluster, set, written, costs, resource, w.name, now)
			switch {
			case errors.Is(err, live.ErrNotFound):
				if _, err := readNamespaces(ctx, config, f.namespaceGiven()); errors.As(err, new(*live.NoNamespaceError)) {
					return report, err
				}
				missing = errors.Join(missing, err) // the others are there, maybe
				continue
			case err != nil:
				return report, getError(err)
			}
			report.Objects = append(report.Objects, o)
		}
	}
	if missing != nil {
		return report, &exitError{exitUsage, missing}
	}
	return report, nil
}

// about are the versions of a resource that rules are about; if there are none,
// the first.
func about(set *rules.Set, versions []schema.GroupVersionResource) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, v := range versions {
		if len(set.For(v)) > 0 {
			out = append(out, v)
		}
	}
	if out == nil {
		out = versions[:1]
	}
	return out
}

func (f *explainFlags) explainLiveObject(ctx context.Context, cluster *live.Cluster, set *rules.Set, written writtenRules, costs *costs, resource schema.GroupVersionResource, name string, now time.Time) (explainedObject, error) {
	info, reason, ok := cluster.Info(ctx, resource)
	if !ok {
		return explainedObject{}, errors.New(reason)
	}
	object, err := cluster.Get(ctx, info, f.liveNamespace(), name)
	if err != nil {
		return explainedObject{}, err
	}
	out := explainedObject{objectRef: refOf(object), Resource: rules.ResourceName(resource), Rules: []explainedRule{}}
	all := set.For(resource)
	excluded := f.excluded(resource.GroupResource(), out.objectRef)
	if len(all) == 0 {
		out.Notes = []string{noRule(out.objectRef)}
		out.addUnserved(ctx, cluster, set, resource.GroupResource(), excluded)
		costs.add(&out, info, object)
		return out, nil
	}
	// A rule that cannot run does nothing, but what it would do is worth seeing.
	cannot := map[*rules.Rule]string{}
	for _, r := range all {
		if why := cluster.Parked(ctx, r, info); why != "" {
			cannot[r] = why
		}
	}
	running := slices.DeleteFunc(slices.Clone(all), func(r *rules.Rule) bool { return cannot[r] != "" })
	evaluation := cluster.Evaluate(ctx, running, info, object, now)
	verdicts, notes := evaluation.Verdicts, evaluation.Notes
	for r := range cannot {
		alone := cluster.Evaluate(ctx, []*rules.Rule{r}, info, object, now)
		verdicts, notes = append(verdicts, alone.Verdicts...), append(notes, alone.Notes...)
	}
	slices.SortStableFunc(verdicts, func(a, b rules.Verdict) int { return strings.Compare(a.Rule.Name, b.Rule.Name) })
	slices.Sort(notes)
	out.Notes = slices.Compact(notes)
	for _, v := range verdicts {
		one := written.rule(v, cannot[v.Rule], whatTheClusterLacks)
		one.leaveOut(excluded)
		out.Rules = append(out.Rules, one)
	}
	out.addUnserved(ctx, cluster, set, resource.GroupResource(), excluded)
	out.addReports(ctx, cluster, object)
	costs.add(&out, info, object)
	return out, ctx.Err()
}

// excluded says why the controller leaves an object alone that is in a namespace
// of --exclude-namespace; empty: it does not.
func (f *explainFlags) excluded(resource schema.GroupResource, o objectRef) string {
	pattern, ok := engine.ExcludedBy(f.exclude.globs(), resource, o.Namespace, o.Name)
	switch {
	case !ok:
		return ""
	case o.Namespace == "":
		return fmt.Sprintf("this Namespace is excluded: --exclude-namespace %s", pattern)
	}
	return fmt.Sprintf("its namespace is excluded: --exclude-namespace %s", pattern)
}

// namespaceGiven is what --namespace names, if it does.
func (f *explainFlags) namespaceGiven() []string {
	if f.namespace == "" {
		return nil
	}
	return []string{f.namespace}
}

// liveNamespace is where kubectl would look.
func (f *explainFlags) liveNamespace() string {
	if f.namespace != "" {
		return f.namespace
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.cluster.context}
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.cluster.loading(), overrides).Namespace()
	if err != nil || namespace == "" {
		return "default"
	}
	return namespace
}

// completeTimeout is how long a shell waits for names of the cluster.
const completeTimeout = 3 * time.Second

// completeObjects completes RESOURCE/NAME and RESOURCE NAME from the cluster,
// and nothing where that is not possible.
func (f *explainFlags) completeObjects(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(f.files) > 0 {
		return nil, none
	}
	config, err := f.cluster.config()
	if err != nil {
		return nil, none
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	cluster, err := live.Connect(ctx, config)
	if err != nil {
		return nil, none
	}
	resource, _, slash := strings.Cut(toComplete, "/")
	switch {
	case slash:
		names := f.names(ctx, cluster, resource)
		for i := range names {
			names[i] = resource + "/" + names[i]
		}
		return names, none
	case len(args) > 0 && !strings.Contains(args[0], "/"):
		return f.names(ctx, cluster, args[0]), none
	}
	var out []string
	for _, name := range cluster.Names() {
		out = append(out, fmt.Sprintf("%s/", name))
	}
	return out, none | cobra.ShellCompDirectiveNoSpace
}

func (f *explainFlags) names(ctx context.Context, cluster *live.Cluster, resource string) []string {
	resources, err := cluster.Resources(live.ParseArgument(resource), func(schema.GroupResource) bool { return false })
	if err != nil {
		return nil
	}
	info, _, ok := cluster.Info(ctx, resources[0])
	if !ok {
		return nil
	}
	names, err := cluster.ObjectNames(ctx, info, f.liveNamespace())
	if err != nil {
		return nil
	}
	return names
}
