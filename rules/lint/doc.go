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
// and resources through Known.
package lint
