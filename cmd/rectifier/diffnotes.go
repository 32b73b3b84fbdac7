package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules"
)

// notes tells where `run --namespace` does something else than what was found: it
// reads no Namespaces, which is what only a watch of all of them could keep up to
// date. A look reads those that it is about, by their names.
func (r *diffReport) notes(set *rules.Set, namespaces []string, read map[string]map[string]any) {
	if len(read) == 0 {
		return
	}
	flag := "run --namespace " + strings.Join(namespaces, ",")
	var parked []string
	for _, c := range r.Rules {
		if c.Changed+c.Audited+c.Failed > 0 && set.Get(c.Rule).NeedsNamespace {
			parked = append(parked, c.Rule)
		}
	}
	if len(parked) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s parks %s: what reads Namespaces is done by a run for the whole cluster, or by run --once", flag, strings.Join(parked, ", ")))
	}
	if r.Summary.LeftAlone == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		meta, _ := read[name]["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if _, asks := annotations[rules.SkipAnnotation]; asks {
			r.Notes = append(r.Notes, fmt.Sprintf("%s does not see that Namespace %s asks to be left alone (%s)", flag, name, rules.SkipAnnotation))
		}
	}
}
