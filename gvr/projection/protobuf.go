package projection

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the scanner does with protobuf: it writes the JSON text of what is kept, as it
// does from JSON. These methods do not look at s.in.

// message writes the members of a message, behind those that the text of the map which
// begins at first has already.
func (s *scanner) message(m *messagePlan, b []byte, first, depth int) error {
	if depth > maxDepth {
		return errUnusual
	}
	var seen uint64
	for i := 0; i < len(b); {
		number, wire, next := wireTag(b, i)
		if next < 0 {
			return errUnusual
		}
		f := m.field(number)
		if f == nil && m.strict {
			return errUnknown
		}
		if f == nil || f == ignored {
			if _, _, i = wireContent(b, next, wire); i < 0 {
				return errUnusual
			}
			continue
		}
		// What comes again is merged, or replaces what was before: no server does that.
		if seen&f.bit != 0 {
			return errUnusual
		}
		seen |= f.bit
		var err error
		if f.role == ordinary {
			i, err = s.wireField(f, b, next, number, wire, first, depth)
		} else {
			i, err = s.special(f, b, next, wire, first)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range m.nullable {
		if seen&f.bit == 0 {
			s.wireKey(f, first)
			s.out = append(s.out, "null"...)
		}
	}
	return nil
}

// wireKey writes the key of a field.
func (s *scanner) wireKey(f *wireField, first int) {
	if len(s.out) > first {
		s.out = append(s.out, ',')
	}
	s.out = append(s.out, f.key...)
}

// wireField writes the member that a field is. i is behind its tag; what is returned is
// the index behind the field, of a list or map behind the last element.
func (s *scanner) wireField(f *wireField, b []byte, i int, number, wire uint64, first, depth int) (int, error) {
	switch f.repeat {
	case isList:
		s.wireKey(f, first)
		return s.wireList(f, b, i, number, wire, depth)
	case isMap:
		s.wireKey(f, first)
		return s.wireMap(f, b, i, number, wire, depth)
	}
	content, n, i := wireContent(b, i, wire)
	switch {
	case i < 0 || wire != f.value.wireType():
		return 0, errUnusual
	case f.inline:
		return i, s.message(f.value.message, content, first, depth)
	case f.omitZero && !f.isPointer:
		if isZero, err := f.value.isZero(content, n); err != nil || isZero {
			return i, err
		}
	}
	s.wireKey(f, first)
	return i, s.wireValue(&f.value, f.plan, content, n, depth+1)
}

// isZero says whether a value that is no list and no map is left out in JSON.
func (v *wireValue) isZero(content []byte, n uint64) (bool, error) {
	switch v.kind {
	case wireString, wireBase64:
		return len(content) == 0, nil
	case wireInt32, wireUint32:
		return uint32(n) == 0, nil
	case wireOpaque:
		value, err := v.unmarshal(content)
		if err != nil {
			return false, err
		}
		return value.(interface{ IsZero() bool }).IsZero(), nil
	}
	return n == 0, nil
}

// wireList writes a list of which the first element's content is at i.
func (s *scanner) wireList(f *wireField, b []byte, i int, number, wire uint64, depth int) (int, error) {
	plan, all := f.plan.elements()
	if f.plan == nil {
		s.out = append(s.out, "null"...)
	} else {
		s.out = append(s.out, '[')
	}
	start := len(s.out)
	for more := true; more; {
		content, n, end := wireContent(b, i, wire)
		if end < 0 || wire != f.value.wireType() { // packed, for one
			return 0, errUnusual
		}
		if all {
			if len(s.out) > start {
				s.out = append(s.out, ',')
			}
			if err := s.wireValue(&f.value, plan, content, n, depth+2); err != nil {
				return 0, err
			}
		}
		if i, more = sameTag(b, end, number, wire); !more {
			i = end
		}
	}
	if f.plan != nil {
		s.out = append(s.out, ']')
	}
	return i, nil
}

// wireMap writes a map of which the first entry's content is at i.
func (s *scanner) wireMap(f *wireField, b []byte, i int, number, wire uint64, depth int) (int, error) {
	if f.plan == nil {
		s.out = append(s.out, "null"...)
	} else {
		s.out = append(s.out, '{')
	}
	start := len(s.out)
	for more := true; more; {
		content, _, end := wireContent(b, i, wire)
		if end < 0 || wire != wireBytes {
			return 0, errUnusual
		}
		if f.plan != nil {
			if err := s.wireEntry(f, content, start, depth); err != nil {
				return 0, err
			}
		}
		if i, more = sameTag(b, end, number, wire); !more {
			i = end
		}
	}
	if f.plan != nil {
		s.out = append(s.out, '}')
	}
	return i, nil
}

// wireEntry writes an entry of the map whose text begins at first, if it is kept.
func (s *scanner) wireEntry(f *wireField, b []byte, first, depth int) error {
	var key, value []byte
	var n uint64
	seen := 0
	for i := 0; i < len(b); {
		number, wire, next := wireTag(b, i)
		if next < 0 || number > 2 || seen&(1<<number) != 0 {
			return errUnusual
		}
		seen |= 1 << number
		content, v, end := wireContent(b, next, wire)
		switch {
		case end < 0:
			return errUnusual
		case number == 1 && wire == wireBytes:
			key = content
		case number == 2 && wire == f.value.wireType():
			value, n = content, v
		default:
			return errUnusual
		}
		i = end
	}
	if !utf8.Valid(key) {
		key = []byte(validUTF8(string(key))) // plans go by the names in JSON
	}
	plan, kept := f.plan.field(key)
	if !kept {
		return nil
	}
	if len(s.out) > first {
		s.out = append(s.out, ',')
	}
	s.out = append(appendText(s.out, key), ':')
	return s.wireValue(&f.value, plan, value, n, depth+2)
}

// wireValue writes what a plan keeps of a value: a number, or else content.
func (s *scanner) wireValue(v *wireValue, p *plan, content []byte, n uint64, depth int) error {
	switch {
	case p == nil:
		s.out = append(s.out, "null"...)
		return nil
	case v.kind == wireMessage:
		s.out = append(s.out, '{')
		err := s.message(v.of(p), content, len(s.out), depth)
		s.out = append(s.out, '}')
		return err
	case v.kind == wireOpaque:
		return s.opaque(v, p, content, depth)
	case !p.whole && !p.keys:
		content, n = nil, 0
	}
	switch v.kind {
	case wireString:
		s.out = appendText(s.out, content)
	case wireBase64:
		s.out = append(s.out, '"')
		s.out = base64.StdEncoding.AppendEncode(s.out, content)
		s.out = append(s.out, '"')
	case wireBool:
		s.out = strconv.AppendBool(s.out, n != 0)
	case wireInt32:
		s.out = strconv.AppendInt(s.out, int64(int32(n)), 10)
	case wireInt64:
		s.out = strconv.AppendInt(s.out, int64(n), 10)
	case wireUint32:
		s.out = strconv.AppendUint(s.out, uint64(uint32(n)), 10)
	case wireUint64:
		s.out = strconv.AppendUint(s.out, n, 10)
	}
	return nil
}

// opaque writes a value of which only its Go type knows the JSON.
func (s *scanner) opaque(v *wireValue, p *plan, content []byte, depth int) error {
	text, err := v.text(content)
	if err != nil {
		return err
	}
	in := s.in
	s.in = text
	end := s.value(p, space(text, 0), depth)
	s.in = in
	if end < 0 || space(text, end) != len(text) {
		return errUnusual
	}
	return nil
}

// text is the JSON of a value of an opaque type. It may be part of its content.
func (v *wireValue) text(content []byte) ([]byte, error) {
	if v.opaque == fieldsType {
		// It is JSON; encoding/json would look at all of it once more.
		if raw, ok := onlyField(content, 1); ok && len(raw) > 0 {
			return raw, nil
		}
	}
	value, err := v.unmarshal(content)
	if err != nil {
		return nil, err
	}
	if t, ok := value.(*metav1.Time); ok && !t.IsZero() {
		return append(t.UTC().AppendFormat(append(make([]byte, 0, len(time.RFC3339)+2), '"'), time.RFC3339), '"'), nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, errUnusual
	}
	return text, nil
}

var fieldsType = reflect.TypeFor[metav1.FieldsV1]()

// onlyField returns the content of a message that has one field, of bytes.
func onlyField(b []byte, number uint64) ([]byte, bool) {
	i, ok := sameTag(b, 0, number, wireBytes)
	if !ok {
		return nil, false
	}
	content, _, end := wireContent(b, i, wireBytes)
	return content, end == len(b)
}

// unmarshal returns a pointer to a value of an opaque type. A list that is a value of a
// map, or of another list, is never nil.
func (v *wireValue) unmarshal(content []byte) (any, error) {
	value := reflect.New(v.opaque)
	if v.opaque.Kind() == reflect.Slice {
		value.Elem().Set(reflect.MakeSlice(v.opaque, 0, 0))
	}
	p := value.Interface()
	if p.(wireUnmarshaler).Unmarshal(content) != nil {
		return nil, errUnusual
	}
	return p, nil
}

const lowerHex = "0123456789abcdef"

// appendText writes a JSON string. What is no UTF-8 is left as it is, for who parses the
// text. Stretches that need no escapes are copied at once.
func appendText(out, s []byte) []byte {
	out = append(out, '"')
	for len(s) > 0 {
		n := plainText(s)
		out = append(out, s[:n]...)
		if n == len(s) {
			break
		}
		switch c := s[n]; {
		case c == '\n':
			out = append(out, '\\', 'n')
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&0xf])
		default:
			out = append(out, '\\', c)
		}
		s = s[n+1:]
	}
	return append(out, '"')
}

// plainText returns the number of bytes that need no escapes.
func plainText(s []byte) (i int) {
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		// Of bytes below a space, the upper three bits are zero.
		if m := zeros(w^quotes) | zeros(w^slash) | zeros(w&(0xe0*ones)); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}
