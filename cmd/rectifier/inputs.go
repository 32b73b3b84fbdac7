package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// readManifests reads what must be readable: an error is one of usage.
func readManifests(what string, paths []string, s streams) ([]*manifest.File, error) {
	files, err := input.Read(paths, s.in, yamldoc.ManifestLimits.MaxBytes)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("read the %s: %w", what, err)}
	}
	out := make([]*manifest.File, len(files))
	for i, in := range files {
		if out[i], err = manifest.Parse(in.Name, in.Data); err != nil {
			return nil, &exitError{exitUsage, fmt.Errorf("read the %s: %w", what, err)}
		}
	}
	return out, nil
}

// oneStdin refuses a command line that names standard input (-) for two things:
// the second would get nothing, and say nothing of it.
func oneStdin(uses ...[]string) error {
	n := 0
	for _, paths := range uses {
		for _, path := range paths {
			if path == "-" {
				n++
			}
		}
	}
	if n > 1 {
		return &exitError{exitUsage, errors.New("standard input (-) is named twice, and can be read once only: use files for the others")}
	}
	return nil
}

// addObjects adds what is in the manifests to a world, and keeps nothing else.
func addObjects(world *offline.World, paths []string, s streams) error {
	sources, err := input.Find(paths, s.in)
	for i := 0; err == nil && i < len(sources); i++ {
		err = readOnce(sources[i], func(file *manifest.File) error {
			world.Add(file)
			return nil
		})
	}
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("read the objects: %w", err)}
	}
	return nil
}

// readOnce reads a manifest document by document, for the last time.
func readOnce(source *input.Source, each func(*manifest.File) error) error {
	r, err := source.Open(true)
	if err != nil {
		return err
	}
	reader := manifest.NewReader(source.Name, r)
	for err == nil {
		var file *manifest.File
		if file, err = reader.Next(); err == nil {
			err = each(file)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, r.Close(), source.Close())
}

// readCatalog reads CRD manifests; files may hold other objects beside them.
func readCatalog(paths []string, s streams) (*gvr.Catalog, openapi.Types, error) {
	files, err := readManifests("CRDs", paths, s)
	if err != nil {
		return nil, nil, err
	}
	catalog, types, _, err := offline.NewCatalog(files...)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	return catalog, types, nil
}
