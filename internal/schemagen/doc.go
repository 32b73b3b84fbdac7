// Command schemagen makes gvr/openapi/builtin.json.gz: the OpenAPI v3 schemas of Kubernetes' own kinds, reduced to what a
// structured merge and a type check need.
//
//	go generate ./gvr/openapi
//
// The source is the folder api/openapi-spec/v3 of the module k8s.io/kubernetes, in the version that
// internal/controlplane/kubernetes builds the API server from. The module must be in the module cache: `go mod download
// k8s.io/kubernetes@VERSION` fetches it, and so does building the control plane.
//
// Kept are the kinds that have metadata (objects, not options, lists or reviews of what is stored), and what they refer to.
// Dropped are paths, descriptions, examples, validation, and defaults, except those of fields that are keys of a list: an
// element without the key is the element that has the default.
//
// The schemas are Copyright The Kubernetes Authors, under the Apache License, Version 2.0; see gvr/openapi/doc.go.
package main
