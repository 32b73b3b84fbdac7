// Package yamldoc is the one parser of YAML and JSON text: rule files, manifests and tests all come through here.
//
// Data flow: Parse cuts a file at its document markers, parses each piece into yaml.v3 nodes (JSON pieces with a parser of
// their own, because YAML cannot read all of JSON), checks what must hold for the whole document, and returns one Document for
// each that has content. Values and positions come from the same nodes:
//
//	text ──split──▶ pieces ──yaml.v3 / JSON──▶ nodes ──check──▶ Document ──▶ Value (Go values), Pos / PosIn (positions)
//
// A Scanner cuts a stream in the same places, so that a long file can be parsed document by document (Chunk.Parse); scan.go hands out the chunks, cut.go,
// jsonscan.go and listcut.go find their ends. Tests hold the two against each other.
//
// Values are what sigs.k8s.io/yaml followed by the JSON decoding of k8s.io/apimachinery gives: YAML 1.1 words are
// booleans (yes, no, on, off, y, n; as keys too), 0644 is octal, whole numbers are int64, others float64, timestamps are
// strings, .inf and .nan are errors. Tests hold the two against each other. The differences are deliberate:
//
//   - a key that appears twice is an error, also when the two are spelled differently (y and on are both "true");
//   - an explicit key wins over a merged one (<<) wherever it stands, as the YAML specification says;
//   - an alias cannot reach into another document;
//   - 1.0 is int64 1 in JSON files too: a manifest gives the same verdict in both notations, and the API server stores 1;
//   - integers that do not fit into int64 are an error in Value, and a float64 only in InexactValue.
//
// Parse refuses documents whose aliases expand without measure, so callers may follow aliases freely.
//
// Everything here but a Scanner is safe to call from several goroutines as long as nobody modifies the nodes. Documents keep a reference to
// the bytes that were given to Parse: they must not be modified afterwards.
package yamldoc
