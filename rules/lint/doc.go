// Package lint finds what is wrong with rules before they run: all that can be
// known from the rule files, and from the schemas of the resources that they
// name.
//
// Data flow: Run loads the sources with rules.LoadDefinitions, which compiles
// them as the engine does and keeps the text beside them. Every Check looks at
// every rule that compiles; what does not compile is a finding by itself. The
// findings are data, in the order of the files; cmd/rectifier prints them.
//
// One check = one file = one ID = one page in docs/lint. A check knows neither
// CEL's library nor a cluster: expressions are read through rules/expression,
// and resources through Known. The checks of loading are in load.go alone: their
// work is the loader's.
//
// What several checks need: a scene (scene.go) is a rule as one text, in which
// variables are read where they are used, with names for the places in the
// object; a folder (fold.go) evaluates expressions as far as all objects give
// the same, or all that lack a certain field; typing and shape (typing.go,
// schema.go) are what schemas say. ignore.go reads the comments.
package lint
