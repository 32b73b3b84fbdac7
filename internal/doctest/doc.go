// Package doctest runs what the documentation shows. It has no code, only tests:
//
//   - the command lines in README.md, CONTRIBUTING.md, the pages that documents
//     lists and the examples' READMEs, and the workflow in docs/testing.md,
//   - each example's rule on its before.yaml, with the crd.yaml, objects.yaml and
//     now (a time) that the folder may hold, and its test.yaml,
//   - the table of flags, targets of make, links between the documents and to
//     their headings, and the index of docs/,
//   - files and names of the code that documents mention: a name in backticks that
//     links to a Go file is declared there,
//   - tables of conditions, of which rules are passed over by a guard; what the
//     chart's default limit of memory is said to be enough for.
//
// A ```console block holds commands after "$ " with the output that they must
// have, standard error included; a block without output is only run. A ```sh
// block holds commands without output. What stands in a comment before a block
// directs the test:
//
//	<!-- cluster -->      not run: the flags and targets of make must exist
//	<!-- fails -->        the commands must fail
//	<!-- file: PATH -->   the block is the content of a file for later commands
//
// Commands of one document run in one folder of their own, in which the
// repository's folders are linked. `rectifier` and `go run ./cmd/rectifier` are
// the binary, built once.
package doctest
