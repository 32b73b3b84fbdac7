package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// splitList is a large list that is read item by item.
type splitList struct {
	head  map[string]any // apiVersion and what else stands before the items
	pos   yamldoc.Position
	items int
	ended bool // and has been judged
	bad   bool // what is left is passed over
}

// maySplit decides whether a large document with the layout of a list is one, from its head and its first item. kubectl writes the kind behind the items: then
// it must be the core List, whose items say what they are. A tail that says otherwise is an error when it is read.
func maySplit(head, first yamldoc.Chunk) bool {
	list, _, err := mapping(head)
	if err != nil || list == nil || bytes.IndexByte(head.Text, '&') >= 0 {
		return false
	}
	if value, set := list["items"]; !set || isCollection(value) {
		return false
	}
	delete(list, "items")
	if list["kind"] != nil {
		return isList(list)
	}
	source, err := first.Parse()
	if err != nil || source == nil || list["apiVersion"] != "v1" {
		return false
	}
	value, err := source.InexactValue()
	if err != nil {
		return false
	}
	if items, ok := value.([]any); ok && len(items) == 1 {
		value = items[0]
	}
	item, _ := value.(map[string]any)
	return item["apiVersion"] != nil && item["kind"] != nil
}

// mapping parses a part of a list that is a mapping, or empty.
func mapping(c yamldoc.Chunk) (map[string]any, *yamldoc.Document, error) {
	source, err := c.Parse()
	if err != nil || source == nil {
		return nil, nil, err
	}
	value, err := source.InexactValue()
	if err != nil {
		return nil, nil, err
	}
	m, ok := value.(map[string]any)
	if !ok {
		return nil, nil, &yamldoc.Error{Pos: source.Pos(source.Root), Msg: "must be an object, got " + typeName(value)}
	}
	return m, source, nil
}

// isList reports whether a kind is that of a list. What has a name is none.
func isList(m map[string]any) bool {
	kind, _ := m["kind"].(string)
	meta, _ := m["metadata"].(map[string]any)
	return strings.HasSuffix(kind, "List") && meta["name"] == nil
}

// part reads a part of a list that is split. An error ends the list: that the next item is where it seems to be is not certain any more.
func (r *Reader) part(chunk yamldoc.Chunk) (*File, error) {
	f := &File{name: r.name, data: chunk.Text, bom: chunk.BOM, before: chunk.Lines()}
	var err error
	switch chunk.Part {
	case yamldoc.ListHead:
		err = r.head(chunk)
	case yamldoc.ListItem:
		err = r.item(f, chunk)
	case yamldoc.ListTail:
		err = r.tail(chunk)
	}
	if err == nil {
		return f, nil
	}
	r.list.bad = true
	return nil, explain(err, chunk.Text, chunk.Lines())
}

func (r *Reader) head(chunk yamldoc.Chunk) error {
	r.list = &splitList{}
	head, source, err := mapping(chunk)
	if err == nil {
		delete(head, "items")
		r.list.head, r.list.pos = head, source.Pos(source.Root)
	}
	return err
}

func (r *Reader) item(f *File, chunk yamldoc.Chunk) error {
	path := fmt.Sprintf("items[%d]", r.list.items)
	source, err := chunk.Parse()
	if err != nil {
		return inItem(err, path)
	}
	if source == nil || source.Root.Kind == yaml.SequenceNode && len(source.Root.Content) != 1 {
		return &yamldoc.Error{Pos: chunk.Pos(), Msg: path + ": this is not one item of the list"}
	}
	var implied map[string]any
	if kind, _ := r.list.head["kind"].(string); kind != "List" && kind != "" {
		implied = map[string]any{"apiVersion": r.list.head["apiVersion"], "kind": strings.TrimSuffix(kind, "List")}
	}
	r.list.items++
	return f.addItem(source, path, implied)
}

// inItem says about an error of the parser that aliases do not reach from item to item.
func inItem(err error, path string) error {
	var e *yamldoc.Error
	if !errors.As(err, &e) {
		return err
	}
	msg := path + ": " + e.Msg
	if strings.HasPrefix(e.Msg, "unknown anchor") {
		msg += " (the items of a list as large as this are read one by one: an alias reaches no other item)"
	}
	return &yamldoc.Error{Pos: e.Pos, Msg: msg, Err: e.Err}
}

func (r *Reader) tail(chunk yamldoc.Chunk) error {
	tail, source, err := mapping(chunk)
	if err != nil {
		return err
	}
	for key := range tail {
		if _, twice := r.list.head[key]; twice || key == "items" {
			k, _ := yamldoc.Field(source.Root, key)
			return &yamldoc.Error{Pos: source.Pos(k), Msg: fmt.Sprintf("duplicate key %q", key)}
		}
	}
	for key, value := range tail {
		r.list.head[key] = value
	}
	return r.list.end()
}

// end checks what could not be checked before: that the list is one.
func (l *splitList) end() error {
	if l.bad || l.ended {
		return nil
	}
	l.ended = true
	if isList(l.head) {
		return nil
	}
	return &yamldoc.Error{Pos: l.pos, Msg: fmt.Sprintf(
		"not a list, as its end shows (kind: %s): because of its size it was read item by item before", typeOrValue(l.head["kind"]))}
}

func typeOrValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return typeName(v)
}
