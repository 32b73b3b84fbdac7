package live

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// Get reads an object. Namespace does not count for cluster-scoped resources. The
// error is ErrNotFound if there is none.
func (c *Cluster) Get(ctx context.Context, info gvr.Info, namespace, name string) (map[string]any, error) {
	if !info.Namespaced {
		namespace = ""
	}
	object, err := c.in(info.Resource, namespace).Get(silent(ctx), name, metav1.GetOptions{})
	what := fmt.Sprintf("get %s %s", info.Resource.GroupResource(), join(namespace, name))
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s: %w", what, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, &readError{err})
	}
	// Caches of the engine do not have it either.
	object.SetManagedFields(nil)
	return object.Object, nil
}

// maxNames is how many names of objects are worth completing.
const maxNames = 500

// ObjectNames returns the names of objects, not more than fit on a screen or
// two, sorted.
func (c *Cluster) ObjectNames(ctx context.Context, info gvr.Info, namespace string) ([]string, error) {
	if !info.Namespaced {
		namespace = ""
	}
	list, err := c.in(info.Resource, namespace).List(silent(ctx), metav1.ListOptions{Limit: maxNames})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", info.Resource.GroupResource(), &readError{err})
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName())
	}
	slices.Sort(out)
	return out, nil
}

func join(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (c *Cluster) in(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.client.Resource(resource)
	}
	return c.client.Resource(resource).Namespace(namespace)
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

type namespaceAnswer struct {
	object map[string]any
	err    error
}

// Namespace reads a Namespace.
func (c *Cluster) Namespace(ctx context.Context, name string) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.ns[name]; ok {
		return known.object, known.err
	}
	object, err := readNamespace(ctx, c.client, name)
	c.ns[name] = namespaceAnswer{object, err}
	return object, err
}

// pageSize is how many objects are asked for at once; tests change it.
var pageSize int64 = 500

type listAnswer struct {
	objects []map[string]any
	err     error
}

// lookups answers rules.Lookups from the cluster.
type lookups struct {
	*Cluster
	ctx context.Context
}

// Find implements rules.Lookups. Unlike the engine's it costs requests, one LIST
// for each different query.
func (l lookups) Find(q rules.Query) ([]map[string]any, error) {
	if _, reason, served := l.Info(l.ctx, q.Resource); !served {
		if q.Optional && !l.failed[q.Resource.GroupVersion()] {
			return nil, nil
		}
		return nil, fmt.Errorf("%s: %s", rules.ResourceName(q.Resource), reason)
	}
	options := listOptions(q)
	if options == nil {
		return nil, nil
	}
	key := fmt.Sprintf("%s %s %q %q %q", rules.ResourceName(q.Resource), q.Index(), q.Keys(), options.LabelSelector, options.FieldSelector)
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.lists[key]
	if !ok {
		known.objects, known.err = l.list(q, *options)
		l.lists[key] = known
	}
	return known.objects, known.err
}

// listOptions lets the server select as far as it can; nil: nothing can be
// selected.
func listOptions(q rules.Query) *metav1.ListOptions {
	options := &metav1.ListOptions{Limit: pageSize}
	if q.Selector != nil {
		requirements, selectable := q.Selector.Requirements()
		if !selectable {
			return nil
		}
		if len(requirements) > 0 {
			options.LabelSelector = q.Selector.String()
		}
	}
	for i, path := range q.Where {
		// Of all fields, this is one by which every resource can be selected. So
		// a Role that names objects is enough.
		if path == "metadata.name" && len(q.Values[i]) == 1 && q.Values[i][0] != "" {
			options.FieldSelector = fields.OneTermEqualSelector(path, q.Values[i][0]).String()
		}
	}
	return options
}

// list reads what a query selects, page by page.
func (l lookups) list(q rules.Query, options metav1.ListOptions) ([]map[string]any, error) {
	keys := map[string]bool{}
	for _, key := range q.Keys() {
		keys[key] = true
	}
	var out []map[string]any
	for {
		page, err := l.in(q.Resource, q.Namespace).List(silent(l.ctx), options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			options.Continue, options.Limit, out = "", 0, nil // it took too long: all at once
			continue
		}
		if err != nil {
			where := ""
			if q.Namespace != "" {
				where = " in " + q.Namespace
			}
			return nil, fmt.Errorf("list %s%s: %w", q.Resource.GroupResource(), where, &readError{err})
		}
		for i := range page.Items {
			u := &page.Items[i]
			if keys[q.Key(u.Object)] && q.Selects(u.Object) {
				u.SetManagedFields(nil)
				out = append(out, withKind(u, page))
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	slices.SortFunc(out, func(a, b map[string]any) int {
		x, y := unstructured.Unstructured{Object: a}, unstructured.Unstructured{Object: b}
		return cmp.Or(strings.Compare(x.GetNamespace(), y.GetNamespace()), strings.Compare(x.GetName(), y.GetName()))
	})
	return out, nil
}

// withKind gives an item of a list the kind that only the list says.
func withKind(u *unstructured.Unstructured, list *unstructured.UnstructuredList) map[string]any {
	if u.GetKind() != "" {
		return u.Object
	}
	out := maps.Clone(u.Object)
	out["apiVersion"], out["kind"] = list.GetAPIVersion(), strings.TrimSuffix(list.GetKind(), "List")
	return out
}
