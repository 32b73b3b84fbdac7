package offline

import (
	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/manifest"
)

// NewCatalog makes a catalogue and a source of schemas of the built-in kinds
// and of the CRDs in manifests. Other objects there are passed over; found is
// the number of CRDs.
func NewCatalog(files ...*manifest.File) (catalog *gvr.Catalog, types openapi.Types, found int, err error) {
	var crds []map[string]any
	for _, file := range files {
		for _, o := range file.Objects() {
			if o.Value()["kind"] == "CustomResourceDefinition" {
				crds = append(crds, o.Value())
			}
		}
	}
	if catalog, err = gvr.NewCatalog(crds...); err != nil {
		return nil, nil, 0, err
	}
	own, err := openapi.NewCRDs(crds...)
	if err != nil {
		return nil, nil, 0, err
	}
	return catalog, openapi.Join(own, openapi.Builtin()), len(crds), nil
}
