package projection

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A message is compiled from a Go type by what its tags say: the number of a field, as
// the generated code has it, its name in JSON and what is left out there. What the
// compiler does not know for certain is an error: then the resource is read as JSON.

// Limits of a message: of a field's number, and of the fields that are kept.
const (
	maxNumber = 1 << 10
	maxFields = 64
)

type messageKey struct {
	goType reflect.Type
	plan   *plan
}

// messageCompiler compiles messages, each of them once.
type messageCompiler struct {
	done map[messageKey]*messagePlan
}

// wireUnmarshaler is what the generated code makes of a Go type.
type wireUnmarshaler interface{ Unmarshal(data []byte) error }

var (
	unmarshaler  = reflect.TypeFor[wireUnmarshaler]()
	marshaler    = reflect.TypeFor[json.Marshaler]()
	zeroer       = reflect.TypeFor[interface{ IsZero() bool }]()
	typeMetaType = reflect.TypeFor[metav1.TypeMeta]()
)

// messageBuilder makes one message, with those that are inline in it.
type messageBuilder struct {
	*messageCompiler
	plan    *plan
	isRoot  bool
	names   map[string]bool // of all fields in JSON
	inlines []inlineMessage
}

type inlineMessage struct {
	around *messagePlan
	number uint64
}

// compile returns the message of a type of which a plan keeps something. The plan is
// not nil.
func (c *messageCompiler) compile(t reflect.Type, p *plan, isRoot bool) (*messagePlan, error) {
	key := messageKey{t, p}
	if m := c.done[key]; m != nil {
		return m, nil
	}
	m := &messagePlan{strict: p.whole || p.keys}
	c.done[key] = m
	b := messageBuilder{messageCompiler: c, plan: p, isRoot: isRoot, names: map[string]bool{}}
	if err := b.addFields(m, t); err != nil {
		return nil, err
	}
	for _, name := range p.names {
		// There is none, or it is a field that only the server knows.
		m.strict = m.strict || !b.names[name]
	}
	for _, inline := range slices.Backward(b.inlines) {
		inner := inline.around.fields[inline.number].value.message
		inner.strict = m.strict
		if !inner.strict && inner.count == 0 {
			inline.around.drop(inline.number)
		}
	}
	return m, nil
}

// addFields adds the fields of a type.
func (b *messageBuilder) addFields(m *messagePlan, t reflect.Type) error {
	for i := range t.NumField() {
		if err := b.addField(m, t.Field(i)); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

func (b *messageBuilder) addField(m *messagePlan, f reflect.StructField) error {
	if f.Anonymous && f.Type == typeMetaType {
		return b.addType()
	}
	tags, err := readTags(f)
	if err == nil && tags.inline {
		return b.addInline(m, f.Type, tags.number)
	}
	if b.names[tags.name] {
		return fmt.Errorf("there are two fields %s", tags.name)
	}
	b.names[tags.name] = true
	sub, kept := b.plan.field([]byte(tags.name))
	switch {
	case err != nil && kept:
		return err
	case err != nil:
		return nil
	case !kept:
		return m.set(ignored, tags.number)
	}
	field := &wireField{omitZero: tags.omitEmpty, isZero: tags.omitZero, plan: sub}
	field.key = append(appendString(nil, tags.name), ':')
	if err := b.setType(field, f.Type); err != nil {
		return fmt.Errorf("%s: %w", tags.name, err)
	}
	return m.add(field, tags.number)
}

// addType adds apiVersion and kind. They are not in protobuf. Those of an object are
// known; those of one in a list, as in the volumeClaimTemplates of a StatefulSet, are
// what the server makes of them.
func (b *messageBuilder) addType() error {
	for _, name := range []string{"apiVersion", "kind"} {
		b.names[name] = true
		if _, kept := b.plan.field([]byte(name)); kept && !b.isRoot {
			return fmt.Errorf("its %s is not in protobuf", name)
		}
	}
	return nil
}

// addInline adds a message whose fields are, in JSON, those of the message around it.
func (b *messageBuilder) addInline(m *messagePlan, t reflect.Type, number uint64) error {
	if t.Kind() != reflect.Struct || isOpaque(t) {
		return fmt.Errorf("%s is inline", t)
	}
	inner := &messagePlan{}
	b.inlines = append(b.inlines, inlineMessage{m, number})
	if err := b.addFields(inner, t); err != nil {
		return err
	}
	return m.add(&wireField{inline: true, value: wireValue{kind: wireMessage, message: inner}}, number)
}

// ignored is a field that is known, and not kept.
var ignored = &wireField{role: ofNothing}

// add adds a field that is kept.
func (m *messagePlan) add(f *wireField, number uint64) error {
	if m.count >= maxFields {
		return errors.New("it has too many fields")
	}
	f.bit = 1 << m.count
	m.count++
	if !f.omitZero && (f.isPointer || f.repeat != once || f.value.kind == wireBase64) {
		m.nullable = append(m.nullable, f)
	}
	return m.set(f, number)
}

func (m *messagePlan) set(f *wireField, number uint64) error {
	if number > maxNumber {
		return fmt.Errorf("a field has the number %d", number)
	}
	if missing := int(number) + 1 - len(m.fields); missing > 0 {
		m.fields = append(m.fields, make([]*wireField, missing)...)
	}
	if m.fields[number] != nil {
		return fmt.Errorf("two fields have the number %d", number)
	}
	m.fields[number] = f
	return nil
}

// drop ignores a field that was added.
func (m *messagePlan) drop(number uint64) {
	m.fields[number] = ignored
	m.count--
}

// fieldTags are what the tags of a field say.
type fieldTags struct {
	number                      uint64
	name                        string
	omitEmpty, omitZero, inline bool
}

func readTags(f reflect.StructField) (t fieldTags, err error) {
	options := strings.Split(f.Tag.Get("json"), ",")
	t.name = options[0]
	for _, option := range options[1:] {
		switch option {
		case "omitempty":
			t.omitEmpty = true
		case "omitzero":
			t.omitZero = true
		case "inline": // encoding/json looks at the missing name
		default:
			return t, fmt.Errorf("%s is %q in JSON", f.Name, option)
		}
	}
	t.inline = f.Anonymous && t.name == ""
	if t.name == "-" || t.name == "" && !t.inline {
		return t, fmt.Errorf("%s has no name in JSON", f.Name)
	}
	wire := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(wire) < 2 || !f.IsExported() {
		return t, fmt.Errorf("%s is not in protobuf", f.Name)
	}
	if t.number, err = strconv.ParseUint(wire[1], 10, 32); err != nil || t.number == 0 {
		return t, fmt.Errorf("%s has no number", f.Name)
	}
	return t, nil
}

// isOpaque says that a type is read and written by its own methods.
func isOpaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) && (t.Kind() != reflect.Struct || p.Implements(marshaler))
}

// setType sets what follows from the type of a field.
func (c *messageCompiler) setType(f *wireField, t reflect.Type) (err error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		f.isPointer = true
	}
	isScalar := isOpaque(t) || t.Kind() != reflect.Slice && t.Kind() != reflect.Map || isBytes(t)
	if f.isPointer && (!isScalar || isBytes(t)) {
		return fmt.Errorf("it is a pointer to %s", t)
	}
	switch {
	case isScalar:
		f.value, err = c.valueOf(t, f.plan)
		if err == nil && !f.isPointer {
			err = f.setEmpty(t)
		}
	case t.Kind() == reflect.Slice:
		f.repeat = isList
		elements, _ := f.plan.elements()
		f.value, err = c.valueOf(t.Elem(), elements)
	case t.Key().Kind() == reflect.String && !isOpaque(t.Key()):
		f.repeat = isMap
		var plans []*plan
		if f.plan != nil {
			plans = append(slices.Clone(f.plan.fields), f.plan.values)
			if f.plan.whole {
				plans = []*plan{wholePlan}
			}
		}
		f.value, err = c.valueOf(t.Elem(), plans...)
	default:
		err = fmt.Errorf("it is a %s", t)
	}
	if err == nil && f.isZero && (f.isPointer || f.value.kind != wireOpaque || !reflect.PointerTo(t).Implements(zeroer)) {
		err = fmt.Errorf("whether %s is zero is not known", t)
	}
	return err
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// setEmpty sets when a value is left out in JSON: structs are never empty there.
func (f *wireField) setEmpty(t reflect.Type) error {
	switch f.value.kind {
	case wireMessage:
		f.omitZero = false
	case wireOpaque:
		f.omitZero = f.isZero
		if t.Kind() != reflect.Struct {
			return fmt.Errorf("whether %s is nil is not known", t)
		}
	}
	return nil
}

// valueOf returns the kind of values of a type of which plans keep something. A nil
// plan keeps nothing.
func (c *messageCompiler) valueOf(t reflect.Type, plans ...*plan) (v wireValue, err error) {
	if isOpaque(t) {
		return wireValue{kind: wireOpaque, opaque: t}, nil
	}
	switch t.Kind() {
	case reflect.String:
		v.kind = wireString
	case reflect.Bool:
		v.kind = wireBool
	case reflect.Int32:
		v.kind = wireInt32
	case reflect.Int64:
		v.kind = wireInt64
	case reflect.Uint32:
		v.kind = wireUint32
	case reflect.Uint64:
		v.kind = wireUint64
	case reflect.Slice:
		v.kind = wireBase64
		if !isBytes(t) {
			err = fmt.Errorf("it has lists of %s", t.Elem())
		}
	case reflect.Struct:
		return c.messagesOf(t, plans)
	default:
		err = fmt.Errorf("it has a %s", t)
	}
	return v, err
}

func (c *messageCompiler) messagesOf(t reflect.Type, plans []*plan) (v wireValue, err error) {
	v.kind = wireMessage
	if !reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return v, fmt.Errorf("%s is no message", t)
	}
	v.messages = map[*plan]*messagePlan{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		m, err := c.compile(t, p, false)
		if err != nil {
			return v, err
		}
		v.messages[p] = m
		v.message = m
	}
	if len(v.messages) > 1 {
		v.message = nil
	}
	return v, nil
}
