package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// collector finds the objects of a document.
type collector struct {
	file *File
	doc  *document
}

// document collects the objects of the whole document, and adds it to the file.
func (c collector) document(n *yaml.Node, value any, path string, implied map[string]any) error {
	if err := c.collect(n, value, path, implied); err != nil {
		return err
	}
	c.file.documents = append(c.file.documents, c.doc)
	c.file.objects = append(c.file.objects, c.doc.objects...)
	return nil
}

func (c collector) fail(n *yaml.Node, path, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	return &yamldoc.Error{Pos: c.doc.source.Pos(n), Msg: prefix(path) + msg}
}

// collect adds the object at n, or the objects of the list at n. implied holds apiVersion and kind for items of a typed list.
func (c collector) collect(n *yaml.Node, value any, path string, implied map[string]any) error {
	m, ok := value.(map[string]any)
	if !ok {
		return c.fail(n, path, "must be an object, got %s", typeName(value))
	}
	full := m
	if len(implied) > 0 {
		full = maps.Clone(m)
		for k, v := range implied {
			if _, set := full[k]; !set {
				full[k] = v
			}
		}
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if s, ok := full[field].(string); !ok || s == "" {
			_, at := yamldoc.Field(n, field)
			if at == nil {
				at = n
			}
			return c.fail(at, join(path, field), "must be a non-empty string, got %s", typeName(full[field]))
		}
	}
	if v := full["items"]; full["kind"] == "List" && full["apiVersion"] == "v1" && v != nil {
		if _, ok := v.([]any); !ok {
			_, at := yamldoc.Field(n, "items")
			return c.fail(at, join(path, "items"), "must be a list, got %s", typeName(v))
		}
	}
	if items, ok := listItems(full); ok {
		return c.items(n, full, items, path)
	}
	if err := c.metadata(n, full, path); err != nil {
		return err
	}
	o := &Object{doc: c.doc, node: yamldoc.Resolve(n), path: path, pos: c.doc.source.Pos(n), text: m, value: full, implied: map[string]any{}}
	for k, v := range implied {
		if _, set := m[k]; !set {
			o.implied[k] = v
		}
	}
	c.doc.objects = append(c.doc.objects, o)
	return nil
}

// listItems returns the items of a list kind. An object with a name is none, whatever its kind is called: lists have no name.
func listItems(m map[string]any) ([]any, bool) {
	kind, _ := m["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	if meta, _ := m["metadata"].(map[string]any); meta["name"] != nil {
		return nil, false
	}
	items, ok := m["items"].([]any)
	return items, ok || kind == "List" && m["items"] == nil
}

func (c collector) items(n *yaml.Node, list map[string]any, items []any, path string) error {
	var implied map[string]any
	if kind := strings.TrimSuffix(list["kind"].(string), "List"); kind != "" {
		implied = map[string]any{"apiVersion": list["apiVersion"], "kind": kind}
	}
	if len(items) == 0 {
		c.file.warn(c.doc.source.Pos(n), "%sthe list is empty: it has no items", prefix(path))
	}
	_, nodes := yamldoc.Field(n, "items")
	for i, item := range items {
		if err := c.collect(nodes.Content[i], item, fmt.Sprintf("%s[%d]", join(path, "items"), i), implied); err != nil {
			return err
		}
	}
	return nil
}

// metadata refuses what the API server would: one unquoted word among the annotations, and common accessors see no annotations at all.
func (c collector) metadata(n *yaml.Node, m map[string]any, path string) error {
	v, set := m["metadata"]
	if !set {
		return nil
	}
	_, node := yamldoc.Field(n, "metadata")
	meta, ok := v.(map[string]any)
	if !ok {
		return c.fail(node, join(path, "metadata"), "must be an object, got %s", typeName(v))
	}
	for _, field := range []string{"name", "namespace", "generateName"} {
		if v, set := meta[field]; set {
			if _, ok := v.(string); !ok {
				_, at := yamldoc.Field(node, field)
				return c.notString(at, join(path, "metadata."+field), v)
			}
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		v, set := meta[field]
		if !set {
			continue
		}
		_, at := yamldoc.Field(node, field)
		entries, ok := v.(map[string]any)
		if !ok {
			return c.fail(at, join(path, "metadata."+field), "must be an object, got %s", typeName(v))
		}
		for _, k := range slices.Sorted(maps.Keys(entries)) {
			if _, ok := entries[k].(string); !ok {
				_, at := yamldoc.Field(at, k)
				return c.notString(at, fmt.Sprintf("%s[%s]", join(path, "metadata."+field), k), entries[k])
			}
		}
	}
	return nil
}

// notString says what YAML made of a scalar that is meant as a string: n, yes
// and 012 look like one.
func (c collector) notString(at *yaml.Node, path string, v any) error {
	hint := ""
	if n := yamldoc.Resolve(at); n != nil && n.Kind == yaml.ScalarNode && v != nil {
		hint = fmt.Sprintf(": YAML reads %s so, quote it", n.Value)
	}
	return c.fail(at, path, "must be string, got %s%s", typeName(v), hint)
}

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case int64:
		return "integer"
	case float64:
		return "number"
	}
	return fmt.Sprintf("%T", v)
}
