package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// mustBeJSON refuses a document of a .json file that is YAML only: changes would be written into it as YAML, and no JSON parser reads it anyway.
func mustBeJSON(name string, data []byte, doc *yamldoc.Document) error {
	if doc.IsJSON() || !strings.EqualFold(filepath.Ext(name), ".json") {
		return nil
	}
	pos := doc.Pos(doc.Root)
	x, ok := doc.Extent(doc.Root)
	if !ok {
		return &yamldoc.Error{Pos: pos, Msg: "invalid JSON, in a file named .json"}
	}
	_, end := doc.Span()
	offset, err := jsonError(data[x.Outer:end])
	return &yamldoc.Error{Pos: after(pos, data[x.Outer:x.Outer+offset]), Msg: "invalid JSON: " + err.Error(), Err: err}
}

// jsonError returns where text ceases to be a sequence of JSON values, and why.
func jsonError(text []byte) (offset int, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	for err == nil {
		var value json.RawMessage
		err = dec.Decode(&value)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return max(int(syntax.Offset)-1, 0), err
	}
	return len(bytes.TrimRight(text, " \t\r\n")), errors.New("unexpected end")
}

// after returns the position behind text that starts at pos.
func after(pos yamldoc.Position, text []byte) yamldoc.Position {
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		pos.Line += bytes.Count(text, []byte("\n"))
		pos.Column = 1
		text = text[i+1:]
	}
	pos.Column += utf8.RuneCount(text)
	return pos
}

// explain adds what is behind an error of the parser where the text shows it: Helm charts hold templates, not manifests. linesBefore stand before the text in its file.
func explain(err error, text []byte, linesBefore int) error {
	var e *yamldoc.Error
	if !errors.As(err, &e) || e.Pos.Line <= linesBefore {
		return err
	}
	line := e.Pos.Line - linesBefore
	lines := bytes.SplitN(text, []byte("\n"), line+1)
	if len(lines) < line || !bytes.Contains(lines[line-1], []byte("{{")) {
		return err
	}
	return &yamldoc.Error{Pos: e.Pos, Msg: e.Msg + " ({{ looks like a template, which has to be rendered first)", Err: e.Err}
}
