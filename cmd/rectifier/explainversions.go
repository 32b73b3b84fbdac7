package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/live"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/rules"
)

// addUnserved adds the rules that name the resource in no other version than ones
// that are not served: who wrote them for this object has to learn why they do
// nothing.
func (o *explainedObject) addUnserved(ctx context.Context, cluster *live.Cluster, set *rules.Set, resource schema.GroupResource, excluded string) {
	why, served := map[*rules.Rule][]string{}, map[*rules.Rule]bool{}
	for _, version := range set.Versions(resource) {
		_, reason, ok := cluster.Info(ctx, version)
		for _, r := range set.For(version) {
			served[r] = served[r] || ok
			if !ok {
				why[r] = append(why[r], fmt.Sprintf("%s: %s", rules.ResourceName(version), reason))
			}
		}
	}
	for r, reasons := range why {
		if served[r] {
			continue
		}
		one := explainedRule{
			Rule: r.Name, Position: r.Pos.String(), Mode: string(r.Mode),
			Outcome: parked, Error: "it is not about this object: " + strings.Join(reasons, "; "),
		}
		one.leaveOut(excluded)
		o.Rules = append(o.Rules, one)
	}
	slices.SortStableFunc(o.Rules, func(a, b explainedRule) int { return strings.Compare(a.Rule, b.Rule) })
}

// otherVersions tells of rules about the kind of an object in a file, but in
// another version: a cluster that serves both has them see the object.
func otherVersions(fixer *offline.Fixer, object *manifest.Object) []string {
	ref := refOf(object.Value())
	of := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	var out []string
	for _, info := range fixer.Catalog.Info(of) {
		for _, version := range fixer.Rules.Versions(info.Resource.GroupResource()) {
			for _, r := range fixer.Rules.For(version) {
				if !slices.Contains(r.Resources, info.Resource) {
					out = append(out, fmt.Sprintf("rule %s is about %s: without a cluster, it does not see an object in %s", r.Name, rules.ResourceName(version), ref.APIVersion))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
