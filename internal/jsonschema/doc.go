// Package jsonschema makes JSON Schemas of the formats of files, from the Go
// types that strictyaml decodes them into and from what these do not say: so
// that the schema which an editor uses cannot drift from what is read. What a
// schema accepts may still be refused, because it does not see into CEL; what
// it refuses must be refused too, and the tests of each format hold that.
package jsonschema
