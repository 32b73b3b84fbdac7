package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// NoNamespaceError says that there is no Namespace of a name.
type NoNamespaceError struct {
	Name       string
	Suggestion string // " (did you mean …?)", or empty
}

func (e *NoNamespaceError) Error() string {
	return fmt.Sprintf("there is no namespace %q%s", e.Name, e.Suggestion)
}

// Namespaces reads Namespaces, as far as that is permitted: those that may not be
// read are missing in the result. The error is a *NoNamespaceError for the first
// that does not exist; if there is none, it is about the first of which that is not
// known, because the cluster gave no answer.
func Namespaces(ctx context.Context, config *rest.Config, names []string) (map[string]map[string]any, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	out := map[string]map[string]any{}
	var unknown error
	for _, name := range names {
		object, err := readNamespace(ctx, client, name)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil, &NoNamespaceError{name, suggest.DidYouMean(name, namespaceNames(ctx, client))}
		case err == nil:
			out[name] = object
		case !apierrors.IsForbidden(err):
			unknown = cmp.Or(unknown, err)
		}
	}
	if unknown != nil {
		return nil, unknown
	}
	return out, nil
}

// readNamespace reads a Namespace with the permission to get it, which a Role in
// it can give, or with that to list, which is what the engine needs. The error is
// ErrNotFound if there is none.
func readNamespace(ctx context.Context, client dynamic.Interface, name string) (map[string]any, error) {
	object, err := client.Resource(namespaces).Get(silent(ctx), name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		selector := fields.OneTermEqualSelector("metadata.name", name).String()
		list, listErr := client.Resource(namespaces).List(silent(ctx), metav1.ListOptions{FieldSelector: selector})
		switch {
		case listErr == nil && len(list.Items) == 0:
			err = ErrNotFound
		case listErr == nil:
			object, err = &list.Items[0], nil
			object.Object = withKind(object, list)
		}
	}
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("get namespaces %s: %w", name, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("get namespaces %s: %w", name, &readError{err})
	}
	object.SetManagedFields(nil)
	return object.Object, nil
}

// namespaceNames are the names of Namespaces, if they may be listed: to suggest
// one of them.
func namespaceNames(ctx context.Context, client dynamic.Interface) []string {
	list, err := client.Resource(namespaces).List(silent(ctx), metav1.ListOptions{Limit: maxNames})
	if err != nil {
		return nil
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName())
	}
	return out
}
