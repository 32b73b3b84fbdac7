package openapi

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BuiltinVersion is the Kubernetes version whose kinds Builtin knows.
const BuiltinVersion = "v1.37.2"

//go:embed builtin.json.gz
var builtinGzip []byte

// builtinDocument is inflated once, at first use.
var builtinDocument = sync.OnceValues(inflateBuiltin)

func inflateBuiltin() (*document, error) {
	reader, err := gzip.NewReader(bytes.NewReader(builtinGzip))
	if err != nil {
		return nil, fmt.Errorf("open built-in schemas: %w", err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("inflate built-in schemas: %w", err)
	}
	return parseDocument(data)
}

var builtin = &builtinTypes{}

// Builtin knows the kinds of Kubernetes BuiltinVersion, without a cluster. Like all sources it is safe for concurrent use.
func Builtin() Types { return builtin }

type builtinTypes struct {
	types lazyTypes
}

func (b *builtinTypes) Type(_ context.Context, gvk schema.GroupVersionKind) (*Type, error) {
	doc, err := builtinDocument()
	if err != nil {
		return nil, err
	}
	return b.types.get(gvk, func() (*Type, error) { return doc.build(gvk) })
}

// lazyTypes builds each Type once, for sources that do not change. The zero value is empty.
type lazyTypes struct {
	built sync.Map // schema.GroupVersionKind → func() (*Type, error)
}

func (l *lazyTypes) get(gvk schema.GroupVersionKind, build func() (*Type, error)) (*Type, error) {
	once, ok := l.built.Load(gvk)
	if !ok {
		once, _ = l.built.LoadOrStore(gvk, sync.OnceValues(build))
	}
	return once.(func() (*Type, error))()
}
