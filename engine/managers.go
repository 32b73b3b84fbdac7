package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/rectifier-dev/rectifier/rules"
)

// managersTimeout bounds the request that asks who owns fields: the answer is
// good to have, and a worker waits for it.
const managersTimeout = 3 * time.Second

// maxManager is how much of a manager's name is told: anybody chooses it.
const maxManager = 64

// opponents are those who set back what a rule writes.
type opponents struct {
	managers []string
	presumed bool // they are not the owners of the fields, but wrote last
	namesake bool // the owner goes by the name of this engine's field manager
}

// String says by whom.
func (o opponents) String() string {
	switch {
	case o.namesake:
		return "by another writer under the field manager " + o.managers[0]
	case len(o.managers) == 0:
		return "(managedFields do not tell by whom)"
	case o.presumed:
		return "by " + list(o.managers) + ", presumably"
	}
	return "by " + list(o.managers)
}

// opponents finds out who has set back what a rule changes: the managers that
// own the fields now. A field that was removed has no owner, and with capped
// nobody needs to have touched the fields; then it is presumed to be those who
// have written since.
func (d *decision) opponents(ctx context.Context, change *rules.Change, capped bool) opponents {
	entries, err := d.managedFields(ctx)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("It is not known who sets a change back", "reason", reasonOf(err))
		return opponents{}
	}
	own := d.opts.FieldManager
	owners := ownersOf(entries, d.object.Object, change.Paths())
	others := slices.DeleteFunc(slices.Clone(owners), func(name string) bool { return name == own })
	switch {
	case len(others) > 0:
		return opponents{managers: printable(others)}
	case len(owners) > 0 && !capped:
		return opponents{managers: printable(owners), namesake: true}
	}
	status := slices.ContainsFunc(change.Paths(), func(p []string) bool { return len(p) > 0 && p[0] == "status" })
	since := d.contentions.newest(d.object.GetUID())
	var writers []string
	for _, e := range entries {
		if since != "" && e.Manager != own && (e.Subresource == "status") == status && e.Time != nil && timeOf(e) >= since {
			writers = append(writers, e.Manager)
		}
	}
	return opponents{managers: printable(writers), presumed: true}
}

// managedFields asks the server who owns the fields of the object: caches do
// not hold that. It is a LIST, because that is what the engine may do.
func (d *decision) managedFields(ctx context.Context) ([]metav1.ManagedFieldsEntry, error) {
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logr.Discard()), managersTimeout)
	defer cancel()
	found, err := d.metadata.Resource(d.resource).Namespace(d.key.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", d.key.Name).String(), Limit: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("list the object's managedFields: %w", err)
	}
	for _, o := range found.Items {
		if o.UID == d.object.GetUID() {
			return o.ManagedFields, nil
		}
	}
	return nil, nil
}

// ownersOf are the managers that own one of these places in an object.
func ownersOf(entries []metav1.ManagedFieldsEntry, object map[string]any, paths [][]string) []string {
	var out []string
	for _, e := range entries {
		if e.FieldsV1 == nil {
			continue
		}
		var set fieldpath.Set
		if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			continue // a form that is not known here
		}
		if slices.ContainsFunc(paths, func(p []string) bool { return owns(&set, object, p) }) {
			out = append(out, e.Manager)
		}
	}
	return out
}

// owns reports whether a set of fields holds something at or below a path of
// what is at, or the whole list that it is in. (Of a map that has no fields in a
// set, it is only known that the owner has made it.)
func owns(set *fieldpath.Set, at any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if _, isList := at.([]any); isList && path[0] == "-" {
		return true // it owns an element, and another one is to be added
	}
	found := false
	set.Children.Iterate(func(element fieldpath.PathElement) {
		if next, ok := step(element, at, path[0]); ok && !found {
			below, _ := set.Children.Get(element)
			found = owns(below, next, path[1:])
		}
	})
	set.Members.Iterate(func(element fieldpath.PathElement) {
		next, ok := step(element, at, path[0])
		_, isList := next.([]any)
		_, divided := set.Children.Get(element)
		found = found || ok && (len(path) == 1 || isList && !divided)
	})
	return found
}

// step reports whether an element of a set is the one that a key or an index
// leads to, and returns what is there in the object.
func step(element fieldpath.PathElement, at any, token string) (next any, ok bool) {
	if element.FieldName != nil {
		m, _ := at.(map[string]any)
		return m[token], *element.FieldName == token
	}
	l, _ := at.([]any)
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(l) {
		return nil, false
	}
	switch {
	case element.Index != nil:
		return l[i], *element.Index == i
	case element.Value != nil:
		return l[i], value.Equals(*element.Value, value.NewValueInterface(l[i]))
	case element.Key != nil:
		m, isMap := l[i].(map[string]any)
		return m, isMap && !slices.ContainsFunc(*element.Key, func(f value.Field) bool {
			return !value.Equals(f.Value, value.NewValueInterface(m[f.Name]))
		})
	}
	return nil, false
}

// timeOf is the time of an entry as it stands in the object: such times compare
// as text.
func timeOf(e metav1.ManagedFieldsEntry) string { return e.Time.UTC().Format(time.RFC3339) }

// newestTime is the latest time in an object's managedFields; empty: there is none.
func newestTime(object *unstructured.Unstructured) string {
	entries, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	newest := ""
	for _, e := range list {
		m, _ := e.(map[string]any)
		at, _ := m["time"].(string)
		newest = max(newest, at)
	}
	return newest
}

// printable makes names of managers fit to be told: sorted, each once, bounded.
func printable(managers []string) []string {
	out := make([]string, len(managers))
	for i, name := range managers {
		name = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, name)
		if len(name) > maxManager {
			name = strings.ToValidUTF8(name[:maxManager], "") + "…"
		}
		out[i] = name
	}
	slices.Sort(out)
	return slices.Compact(out)
}
