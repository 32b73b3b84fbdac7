package openapi

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNoSchema says that a source does not know a kind. It can come to know it later: a Cluster when the CRD appears.
var ErrNoSchema = errors.New("no schema is known")

// Types is a source of schemas.
type Types interface {
	// Type returns the schema of a kind. An error that is ErrNoSchema means that this source does not know the kind; any
	// other that it could not find out, or that the schema cannot be used. No error is final.
	Type(ctx context.Context, gvk schema.GroupVersionKind) (*Type, error)
}

// Join asks the sources in order and takes the answer of the first one that knows the kind. A source that fails ends the
// search: what a later one knows may be out of date. Without sources, no kind is known.
func Join(sources ...Types) Types { return joined(sources) }

type joined []Types

func (j joined) Type(ctx context.Context, gvk schema.GroupVersionKind) (*Type, error) {
	for _, source := range j {
		if t, err := source.Type(ctx, gvk); !errors.Is(err, ErrNoSchema) {
			return t, err
		}
	}
	return nil, noSchema(gvk)
}

func noSchema(gvk schema.GroupVersionKind) error {
	return fmt.Errorf("%w for %s of %s", ErrNoSchema, gvk.Kind, gvk.GroupVersion())
}
