package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/rules"
)

// explainedCost is what a rule makes the controller keep and do, whatever the
// object: what --cost tells. It names fields, and quotes the rule, never an object.
type explainedCost struct {
	Kept []explainedKept `json:"kept"`
	// Guards have to hold of an object for the condition to be evaluated.
	Guards []string `json:"guards"`
	// Unguarded says on what the condition is evaluated; empty: there are guards.
	Unguarded string `json:"unguarded,omitempty"`
}

// explainedKept is what is kept of the objects of a resource.
type explainedKept struct {
	Resource string `json:"resource"`
	// Fields are paths as fieldset.Set has them.
	Fields []string `json:"fields"`
	// Of the object that is explained, as JSON; 0: it is of another resource.
	KeptBytes   int `json:"keptBytes,omitempty"`
	ObjectBytes int `json:"objectBytes,omitempty"`

	text []string // Fields for people
}

// explainedRuleCost is a rule without an object.
type explainedRuleCost struct {
	Rule     string         `json:"rule"`
	Position string         `json:"position,omitempty"`
	Cost     *explainedCost `json:"cost"`
}

// costs tell what the rules of a set cost. Nil tells nothing.
type costs struct {
	rules   map[string]*rules.Rule
	kept    engine.Kept
	catalog *gvr.Catalog
}

// newCosts returns nil without --cost.
func (f *explainFlags) newCosts(set *rules.Set, catalog *gvr.Catalog) *costs {
	if !f.cost {
		return nil
	}
	c := &costs{rules: map[string]*rules.Rule{}, kept: engine.NewKept(set), catalog: catalog}
	for _, r := range set.All() {
		c.rules[r.Name] = r
	}
	return c
}

// explainCosts tells of all rules, without an object or a cluster.
func (f *explainFlags) explainCosts(set *rules.Set, s streams) (explainReport, error) {
	report := explainReport{Objects: []explainedObject{}}
	catalog, _, err := readCatalog(f.crds, s)
	if err != nil {
		return report, err
	}
	c := f.newCosts(set, catalog)
	for _, r := range set.All() {
		report.Rules = append(report.Rules, explainedRuleCost{r.Name, r.Pos.String(), c.of(r, gvr.Info{}, nil)})
	}
	return report, nil
}

// add tells what each rule costs that has been explained on an object. info is what is
// known of its resource.
func (c *costs) add(o *explainedObject, info gvr.Info, object map[string]any) {
	if c == nil {
		return
	}
	for i := range o.Rules {
		if r := c.rules[o.Rules[i].Rule]; r != nil {
			o.Rules[i].Cost = c.of(r, info, object)
		}
	}
}

func (c *costs) of(r *rules.Rule, info gvr.Info, object map[string]any) *explainedCost {
	out := &explainedCost{Guards: r.Guards()}
	if len(out.Guards) == 0 {
		out.Guards, out.Unguarded = []string{}, unguarded(r)
	}
	for _, resource := range c.kept.Resources(r) {
		at := info
		if resource != info.Resource {
			at = c.info(resource)
		}
		fields := c.kept.Fields(r, resource, at.ReplicasPath)
		one := explainedKept{Resource: rules.ResourceName(resource), Fields: fields.Paths()}
		if one.text = one.Fields; fields.IsWhole() && fields.ManagedFields {
			one.text = []string{"everything"}
		} else if fields.IsWhole() {
			one.text = []string{"everything but .metadata.managedFields"}
		}
		if object != nil && resource == info.Resource {
			one.KeptBytes, one.ObjectBytes = sizes(object, fields)
		}
		out.Kept = append(out.Kept, one)
	}
	return out
}

// unguarded says when a rule without a guard is evaluated.
func unguarded(r *rules.Rule) string {
	const each = "at each change of what is kept of an object that match selects"
	switch {
	case r.RecheckAfter > 0:
		return each + ", and whenever its recheckAfter is over"
	case !r.HasCondition():
		return each + ": it has no condition"
	}
	return each + ": no part of the condition tells which objects it is about"
}

// info is what is known of a resource without a cluster.
func (c *costs) info(resource schema.GroupVersionResource) gvr.Info {
	for _, kind := range c.catalog.Kinds(resource) {
		for _, info := range c.catalog.Info(resource.GroupVersion().WithKind(kind)) {
			return info
		}
	}
	return gvr.Info{}
}

// sizes are how many bytes of JSON an object has, and how many are kept of it.
func sizes(object map[string]any, fields projection.Fields) (kept, all int) {
	all = jsonSize(object)
	if metadata, ok := object["metadata"].(map[string]any); ok && !fields.ManagedFields {
		object, metadata = maps.Clone(object), maps.Clone(metadata)
		delete(metadata, "managedFields")
		object["metadata"] = metadata
	}
	return jsonSize(fields.Project(object)), all
}

// jsonSize is 0 for what is no JSON.
func jsonSize(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(text)
}

// ruleCosts prints what rules cost, without an object.
func (p *explainPrinter) ruleCosts(all []explainedRuleCost) {
	for _, r := range all {
		p.line(0, r.Rule, "("+r.Position+")")
		p.cost(1, r.Cost)
	}
}

func (p *explainPrinter) cost(level int, c *explainedCost) {
	if c == nil {
		return
	}
	if c.Unguarded != "" {
		p.line(level, "evaluated "+c.Unguarded)
	} else {
		p.values(level, slices.Concat([]string{"evaluated only where"}, c.Guards[:1], prefixed("and ", c.Guards[1:]))...)
	}
	for _, k := range c.Kept {
		size := ""
		if k.ObjectBytes > 0 {
			size = fmt.Sprintf(", of this object %d of %d bytes", k.KeptBytes, k.ObjectBytes)
		}
		p.values(level, slices.Concat([]string{"keeps of " + k.Resource + size}, k.text)...)
	}
}

func prefixed(prefix string, all []string) []string {
	var out []string
	for _, s := range all {
		out = append(out, prefix+s)
	}
	return out
}
