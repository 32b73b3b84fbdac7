// Package strictyaml fills Go structs from YAML nodes: strictly, and with the
// position of everything that does not fit. The file formats that people write
// by hand, rules and tests of rules, are decoded here.
//
// The json tags of a struct name its fields. An unknown field, a wrong type, an
// empty value and a word that YAML reads as something else than a string are
// reported, all of a document, not only the first; what fits is filled in.
// Values that have to remember where they stand, or that are read by a compiler
// of their own, implement NodeDecoder.
//
// It also has the small things that whoever walks nodes needs: Pairs, IsNull,
// Describe. All but Decoder is pure.
package strictyaml
