package projection

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// builtinKind is how objects of a built-in kind are read from protobuf.
type builtinKind struct {
	kind             *typeMeta
	object, metadata *messagePlan
	listKind         string
	items, listMeta  uint64 // numbers of fields of a list
}

// BuiltinKind returns the kind of a built-in resource, as far as client-go's scheme and
// the rules of English tell. Alpha and beta versions have none: what they leave out of
// JSON still changes from release to release.
func BuiltinKind(gvr schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	if !stable.MatchString(gvr.Version) {
		return schema.GroupVersionKind{}, false
	}
	for kind, t := range scheme.Scheme.KnownTypes(gvr.GroupVersion()) {
		gvk := gvr.GroupVersion().WithKind(kind)
		if plural, _ := meta.UnsafeGuessKindToResource(gvk); plural == gvr && strings.HasPrefix(t.PkgPath(), typesPath) {
			return gvk, true
		}
	}
	return schema.GroupVersionKind{}, false
}

var stable = regexp.MustCompile(`^v[0-9]+$`)

// typesPath is where the Go types of built-in kinds are. What else is in client-go's
// scheme was put there by somebody else.
const typesPath = "k8s.io/api/"

// builtin returns how objects of a kind are read from protobuf. The error says why they
// are not: there is no Go type, or it does not tell all that is kept.
func (p *Projector) builtin(gvk schema.GroupVersionKind) (*builtinKind, error) {
	types := scheme.Scheme.KnownTypes(gvk.GroupVersion())
	k := &builtinKind{kind: typeOf(gvk.GroupVersion().String(), gvk.Kind), listKind: gvk.Kind + "List"}
	object, list := types[gvk.Kind], types[k.listKind]
	if object == nil || list == nil || k.kind.standard || !strings.HasPrefix(object.PkgPath(), typesPath) {
		return nil, errors.New("it is no built-in kind")
	}
	metadata, ok := object.FieldByName("ObjectMeta")
	items, hasItems := list.FieldByName("Items")
	listMeta, hasMeta := list.FieldByName("ListMeta")
	if !ok || !hasItems || !hasMeta || items.Type != reflect.SliceOf(object) {
		return nil, errors.New("it is no kind of objects")
	}
	metadataTags, err := readTags(metadata)
	itemsTags, err2 := readTags(items)
	listTags, err3 := readTags(listMeta)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	k.items, k.listMeta = itemsTags.number, listTags.number

	compiler := messageCompiler{map[messageKey]*messagePlan{}}
	if k.object, err = compiler.compile(object, p.plan, true); err != nil {
		return nil, err
	}
	if k.object, err = k.object.with(metadataTags.number, "metadata", ofMetadata); err != nil {
		return nil, err
	}
	if k.metadata, err = compiler.compile(metadata.Type, p.metadata, false); err != nil {
		return nil, err
	}
	return k, k.setRoles(p.fields.ManagedFields)
}

// setRoles sets which fields of the metadata are not written like others.
func (k *builtinKind) setRoles(managedFields bool) (err error) {
	for _, special := range []struct {
		number uint64
		name   string
		role   fieldRole
	}{
		{1, "name", ofName}, {3, "namespace", ofNamespace}, {5, "uid", ofUID}, {6, "resourceVersion", ofResourceVersion},
		{17, "managedFields", ofNothing},
	} {
		if special.role == ofNothing && (managedFields || k.metadata.field(special.number) == ignored) {
			continue
		}
		if k.metadata, err = k.metadata.with(special.number, special.name, special.role); err != nil {
			return fmt.Errorf("its metadata: %w", err)
		}
	}
	return nil
}

// with returns a copy in which a field that is kept has a role.
func (m *messagePlan) with(number uint64, name string, role fieldRole) (*messagePlan, error) {
	f := m.field(number)
	if f == nil || string(f.key) != `"`+name+`":` {
		return nil, fmt.Errorf("there is no field %d %s", number, name)
	}
	out := *m
	out.fields = slices.Clone(m.fields)
	out.fields[number] = &wireField{role: role, bit: f.bit}
	if role == ofNothing {
		out.fields[number] = ignored
	}
	return &out, nil
}

// scan writes what is kept of an object, besides its identity.
func (k *builtinKind) scan(s *scanner, b []byte) (id identity, err error) {
	s.id, s.metadata = identity{}, k.metadata
	s.out = append(s.out, '{')
	err = s.message(k.object, b, len(s.out), 1)
	s.out = append(s.out, '}')
	return s.id, err
}

// special reads a field of an object that is not written like others.
func (s *scanner) special(f *wireField, b []byte, i int, wire uint64, first int) (int, error) {
	content, _, i := wireContent(b, i, wire)
	if i < 0 || wire != wireBytes {
		return 0, errUnusual
	}
	switch f.role {
	case ofMetadata:
		return i, s.wireMetadata(content, first)
	case ofName:
		s.id.name = content
	case ofNamespace:
		s.id.namespace = content
	case ofUID:
		s.id.uid = content
	case ofResourceVersion:
		s.id.resourceVersion = content
	}
	if !utf8.Valid(content) {
		return 0, errUnusual
	}
	return i, nil
}

// wireMetadata writes the metadata, unless nothing of it is kept but the identity.
func (s *scanner) wireMetadata(b []byte, first int) error {
	undo := len(s.out)
	if undo > first {
		s.out = append(s.out, ',')
	}
	s.out = append(s.out, `"metadata":{`...)
	empty := len(s.out)
	if err := s.message(s.metadata, b, empty, 2); err != nil {
		return err
	}
	if len(s.out) == empty {
		s.out = s.out[:undo]
	} else {
		s.out = append(s.out, '}')
	}
	return nil
}
