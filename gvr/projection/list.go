package projection

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// listScan is a list that is being scanned.
type listScan struct {
	*scanner
	projector *Projector
	id        identity // of the list: apiVersion and kind
	items     []unstructured.Unstructured
	hasItems  bool
}

// decodeList decodes a list: its items as the envelopes of objects, all else as it
// is. It returns the type of the list, or nil if the list is unusual; then into is as
// it was. An unusual item is decoded as a whole.
func (p *Projector) decodeList(data []byte, into *unstructured.UnstructuredList) *typeMeta {
	l := listScan{scanner: newScanner(data), projector: p}
	defer l.free()
	end := l.list(space(data, 0))
	if end < 0 || space(data, end) != len(data) || !l.hasItems || len(l.id.kind) == 0 || len(l.id.apiVersion) == 0 {
		return nil
	}
	kind := typeOf(string(l.id.apiVersion), string(l.id.kind))
	if kind.standard {
		return nil
	}
	into.Items = l.items
	into.Object = parse(string(l.out))
	return kind
}

// list scans the list at i and writes the text of all but its items.
func (l *listScan) list(i int) int {
	if i >= len(l.in) || l.in[i] != '{' {
		return unusual
	}
	l.out = append(l.out, '{')
	i, done := l.open(i, '}')
	for !done {
		var k key
		if k, i = l.member(i); i < 0 || !k.plain {
			return unusual
		}
		switch {
		case string(k.name) == "items":
			i = l.scanItems(i)
		case string(k.name) == "apiVersion":
			i = l.typeField(&l.id.apiVersion, k, i)
		case string(k.name) == "kind":
			i = l.typeField(&l.id.kind, k, i)
		case looksLikeType(k.name):
			return unusual
		default:
			i = l.field(wholePlan, k, len("{"), i, 1)
		}
		i, done = l.next(i, '}')
	}
	l.out = append(l.out, '}')
	return i
}

// typeField reads apiVersion or kind, and writes it.
func (l *listScan) typeField(field *[]byte, k key, i int) int {
	if l.identity(field, i) < 0 {
		return unusual
	}
	return l.field(wholePlan, k, len("{"), i, 1)
}

func (l *listScan) scanItems(i int) int {
	if l.hasItems || i >= len(l.in) || l.in[i] != '[' {
		return unusual
	}
	l.hasItems = true
	l.items = []unstructured.Unstructured{}
	i, done := l.open(i, ']')
	for !done {
		i = l.item(i)
		i, done = l.next(i, ']')
	}
	return i
}

// item decodes the item at i.
func (l *listScan) item(start int) int {
	text := len(l.out)
	id, end := l.projector.scanObject(l.scanner, start)
	if end >= 0 && len(id.apiVersion) == 0 && len(id.kind) == 0 {
		id.apiVersion, id.kind = l.id.apiVersion, bytes.TrimSuffix(l.id.kind, []byte("List"))
	}
	var o *Object
	if end >= 0 {
		o = l.projector.objectOf(id, l.out[text:])
	}
	l.out = l.out[:text]
	if o != nil {
		l.items = append(l.items, unstructured.Unstructured{Object: o.envelope()})
		return end
	}
	return l.unusualItem(start)
}

// unusualItem decodes the item at i as client-go does.
func (l *listScan) unusualItem(start int) int {
	end := skip(l.in, start)
	if end < 0 || l.in[start] != '{' || len(l.id.kind) == 0 || len(l.id.apiVersion) == 0 {
		return unusual
	}
	var item unstructured.Unstructured
	if err := kjson.UnmarshalCaseSensitivePreserveInts(l.in[start:end], &item.Object); err != nil {
		return unusual
	}
	if item.GetKind() == "" && item.GetAPIVersion() == "" {
		item.SetKind(string(bytes.TrimSuffix(l.id.kind, []byte("List"))))
		item.SetAPIVersion(string(l.id.apiVersion))
	}
	l.items = append(l.items, item)
	return end
}
