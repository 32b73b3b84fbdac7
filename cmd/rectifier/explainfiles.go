package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/live"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules"
)

// explainFiles explains the objects in files, or those of them that are named.
func (f *explainFlags) explainFiles(set *rules.Set, written writtenRules, names []string, now time.Time, s streams) (explainReport, error) {
	report := explainReport{Objects: []explainedObject{}}
	wanted, err := parseNames(names)
	if err != nil {
		return report, err
	}
	catalog, types, err := readCatalog(f.crds, s)
	if err != nil {
		return report, err
	}
	files, err := readManifests("manifests", f.files, s)
	if err != nil {
		return report, err
	}
	namespace := f.namespace
	if namespace == "" {
		namespace = "default"
	}
	fixer := &offline.Fixer{Rules: set, Catalog: catalog, Namespace: namespace, World: offline.NewWorld(catalog, namespace), Types: types, Now: now, Trace: true}
	if err := addObjects(fixer.World, f.objects, s); err != nil {
		return report, err
	}
	var all []*manifest.Object
	for _, file := range files {
		for _, w := range file.Warnings() {
			fmt.Fprintf(s.err, "%s: warning: %s\n", w.Pos, w.Msg)
		}
		fixer.World.Add(file)
		all = append(all, file.Objects()...)
	}
	if len(all) == 0 {
		return report, &exitError{exitUsage, fmt.Errorf("there is no object in %s", strings.Join(f.files, ", "))}
	}
	chosen, err := choose(all, wanted, catalog, f.namespace)
	if err != nil {
		return report, &exitError{exitUsage, err}
	}
	costs := f.newCosts(set, catalog)
	for _, object := range chosen {
		report.Objects = append(report.Objects, f.explainObject(fixer, written, object, costs))
	}
	return report, nil
}

func (f *explainFlags) explainObject(fixer *offline.Fixer, written writtenRules, object *manifest.Object, costs *costs) explainedObject {
	e, ok := fixer.Evaluate(object.Value())
	out := explainedObject{objectRef: refOf(object.Value()), Rules: []explainedRule{}}
	if ok {
		out.objectRef = refOf(e.Object)
		out.Resource = rules.ResourceName(e.Info.Resource)
	} else {
		out.Notes = []string{noRule(out.objectRef)}
	}
	out.Notes = append(out.Notes, otherVersions(fixer, object)...)
	out.at(object.Position())
	for _, v := range e.Verdicts {
		out.Rules = append(out.Rules, written.rule(v, "", whatToGive))
	}
	costs.add(&out, e.Info, e.Object)
	return out
}

func noRule(o objectRef) string {
	return fmt.Sprintf("no rule is about objects of kind %s in %s", o.Kind, o.APIVersion)
}

// wantedObject is an argument that names an object.
type wantedObject struct {
	text     string
	resource live.Argument
	name     string
}

// parseNames takes arguments apart: RESOURCE/NAME…, or RESOURCE NAME….
func parseNames(args []string) ([]wantedObject, error) {
	var out []wantedObject
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		if len(args) == 1 {
			return nil, &exitError{exitUsage, fmt.Errorf("%q names no object: write RESOURCE/NAME, such as deployments/web", args[0])}
		}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, &exitError{exitUsage, fmt.Errorf("%q: write either RESOURCE/NAME for all objects, or RESOURCE NAME…", name)}
			}
			out = append(out, wantedObject{args[0] + "/" + name, live.ParseArgument(args[0]), name})
		}
		return out, nil
	}
	for _, arg := range args {
		resource, name, ok := strings.Cut(arg, "/")
		if !ok || resource == "" || name == "" || strings.Contains(name, "/") {
			return nil, &exitError{exitUsage, fmt.Errorf("%q names no object: write RESOURCE/NAME, such as deployments/web", arg)}
		}
		out = append(out, wantedObject{arg, live.ParseArgument(resource), name})
	}
	return out, nil
}

// choose returns the objects that are named, in the order of the files; all if
// none is. Each name must be there.
func choose(all []*manifest.Object, wanted []wantedObject, catalog *gvr.Catalog, namespace string) ([]*manifest.Object, error) {
	if len(wanted) == 0 {
		return all, nil
	}
	var out []*manifest.Object
	found := make([]bool, len(wanted))
	var known []string
	for _, o := range all {
		ref := refOf(o.Value())
		known = append(known, strings.ToLower(ref.Kind)+"/"+ref.Name)
		if namespace != "" && ref.Namespace != "" && ref.Namespace != namespace {
			continue
		}
		here := false
		for i, w := range wanted {
			if w.name == ref.Name && namesKind(w.resource, ref, catalog) {
				here, found[i] = true, true
			}
		}
		if here {
			out = append(out, o)
		}
	}
	if i := slices.Index(found, false); i >= 0 {
		return nil, fmt.Errorf("there is no %s in the files%s", wanted[i].text, suggest.DidYouMean(wanted[i].text, known))
	}
	return out, nil
}

// namesKind reports whether an argument names the kind of an object, as far as
// that is known without a cluster.
func namesKind(a live.Argument, ref objectRef, catalog *gvr.Catalog) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false
	}
	names := []string{strings.ToLower(ref.Kind)}
	for _, info := range catalog.Info(gv.WithKind(ref.Kind)) {
		names = append(names, info.Resource.Resource)
		names = append(names, shortNames[info.Resource.GroupResource()]...)
	}
	return slices.ContainsFunc(names, func(name string) bool { return a.Names(gv.WithResource(name)) })
}

// shortNames are those of common resources; others are known to a cluster only.
var shortNames = map[schema.GroupResource][]string{
	{Resource: "configmaps"}:                                     {"cm"},
	{Resource: "namespaces"}:                                     {"ns"},
	{Resource: "nodes"}:                                          {"no"},
	{Resource: "persistentvolumeclaims"}:                         {"pvc"},
	{Resource: "persistentvolumes"}:                              {"pv"},
	{Resource: "pods"}:                                           {"po"},
	{Resource: "serviceaccounts"}:                                {"sa"},
	{Resource: "services"}:                                       {"svc"},
	{Group: "apps", Resource: "daemonsets"}:                      {"ds"},
	{Group: "apps", Resource: "deployments"}:                     {"deploy"},
	{Group: "apps", Resource: "replicasets"}:                     {"rs"},
	{Group: "apps", Resource: "statefulsets"}:                    {"sts"},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: {"hpa"},
	{Group: "batch", Resource: "cronjobs"}:                       {"cj"},
	{Group: "networking.k8s.io", Resource: "ingresses"}:          {"ing"},
	{Group: "networking.k8s.io", Resource: "networkpolicies"}:    {"netpol"},
	{Group: "policy", Resource: "poddisruptionbudgets"}:          {"pdb"},
}
