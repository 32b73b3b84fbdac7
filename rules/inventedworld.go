package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// inventedWorld answers lookups of one trial. It is the same for all rules, and
// stays as it is while they run: two rules that look for the same find the same,
// as in a cluster.
type inventedWorld map[schema.GroupVersionResource][]map[string]any

// world makes up what the rules look up for an object: for each question that
// they ask, mostly something that answers it. What they ask about the object
// after they have changed it finds something only by chance.
func (g *inventor) world(in Input) inventedWorld {
	w := inventedWorld{}
	asked := map[string]bool{}
	for _, r := range g.rules {
		s := scope{in: &in, rule: r, object: in.Object, start: in.Object}
		for _, l := range r.Lookups {
			q, err := l.query(atStart{&s})
			if q == nil || err != nil || asked[q.question()] {
				continue
			}
			asked[q.question()] = true
			if g.IntN(4) > 0 {
				w.add(l.Resource, g.answer(q))
			}
		}
	}
	return w
}

// question is the same for two queries that find the same.
func (q *Query) question() string {
	selector := ""
	if q.Selector != nil {
		selector = q.Selector.String()
	}
	return fmt.Sprintf("%v %s %q %s", q.Resource, q.Index(), q.Keys(), selector)
}

// Find implements Lookups.
func (w inventedWorld) Find(q Query) ([]map[string]any, error) {
	var out []map[string]any
	keys := q.Keys()
	for _, object := range w[q.Resource] {
		if slices.Contains(keys, q.Key(object)) && q.Selects(object) {
			out = append(out, object)
		}
	}
	return out, nil
}

// add puts an object into the world, unless there is another one of its name.
func (w inventedWorld) add(resource schema.GroupVersionResource, object map[string]any) {
	at, there := slices.BinarySearchFunc(w[resource], object, func(a, b map[string]any) int {
		nameA, namespaceA := identity(a)
		nameB, namespaceB := identity(b)
		return cmp.Or(strings.Compare(namespaceA, namespaceB), strings.Compare(nameA, nameB))
	})
	if !there {
		w[resource] = slices.Insert(w[resource], at, object)
	}
}

// answer makes up an object that a query finds, with all fields that any of the
// rules reads of its resource.
func (g *inventor) answer(q *Query) map[string]any {
	reads := fieldset.Empty()
	for _, r := range g.rules {
		for _, l := range r.Lookups {
			if l.Resource == q.Resource {
				reads = reads.Union(l.reads)
			}
		}
	}
	object, _ := g.value("", reads).(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	if metadataOf(object) == nil {
		object["metadata"] = map[string]any{}
	}
	meta := metadataOf(object)
	meta["name"] = "probe"
	if q.Namespaced {
		meta["namespace"] = q.Namespace
	}
	for i, path := range q.Where {
		if len(q.Values[i]) > 0 {
			setField(object, strings.Split(path, "."), q.Values[i][0])
		}
	}
	g.label(q.Selector, meta)
	return object
}
