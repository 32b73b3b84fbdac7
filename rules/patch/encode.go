package patch

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

// MaxBodyBytes is how long a request body may be: what the API server reads.
const MaxBodyBytes = 3 << 20

// encoder writes JSON: keys sorted, whole float64 as integers, everything else
// byte for byte as encoding/json does. The bytes matter: the API server compares
// the value of a test operation with the object as bytes, and encodes the object
// with encoding/json, so a "<" written plainly would never be equal to one there.
type encoder struct {
	buf   []byte
	limit int
	keys  []string // a stack: the sorted keys of the maps that are being written
}

func (e *encoder) value(v any, depth int) *ValueError {
	switch {
	case depth > maxDepth:
		return tooDeep()
	case len(e.buf) > e.limit:
		return e.overflow()
	}
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	case string:
		e.string(v)
	case int64:
		e.buf = strconv.AppendInt(e.buf, v, 10)
	case float64:
		return e.float(v)
	case map[string]any:
		return e.object(v, depth)
	case []any:
		return e.list(v, depth)
	case ensuredMap, wholeMap:
		return &ValueError{Msg: "a composed merge patch can be written only after Shrink"}
	default:
		return foreignType(v)
	}
	return nil
}

func (e *encoder) object(m map[string]any, depth int) *ValueError {
	base := len(e.keys)
	for key := range m {
		e.keys = append(e.keys, key)
	}
	slices.Sort(e.keys[base:])
	e.buf = append(e.buf, '{')
	for i := range len(m) {
		key := e.keys[base+i]
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.string(key)
		e.buf = append(e.buf, ':')
		if err := e.value(m[key], depth+1); err != nil {
			return err.under(key)
		}
	}
	e.buf = append(e.buf, '}')
	e.keys = e.keys[:base]
	return nil
}

func (e *encoder) list(l []any, depth int) *ValueError {
	e.buf = append(e.buf, '[')
	for i, v := range l {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.value(v, depth+1); err != nil {
			return err.under(strconv.Itoa(i))
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

func (e *encoder) float(f float64) *ValueError {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return notFinite()
	}
	if whole, ok := jsonvalue.WholeNumber(f); ok {
		e.buf = strconv.AppendInt(e.buf, whole, 10)
		return nil
	}
	return e.standard(f)
}

func (e *encoder) string(s string) {
	if !plain(s) {
		_ = e.standard(s) // every string can be encoded
		return
	}
	e.buf = append(e.buf, '"')
	e.buf = append(e.buf, s...)
	e.buf = append(e.buf, '"')
}

// standard leaves what is rare and subtle to encoding/json.
func (e *encoder) standard(v any) *ValueError {
	b, err := json.Marshal(v)
	if err != nil {
		return &ValueError{Msg: err.Error()}
	}
	e.buf = append(e.buf, b...)
	return nil
}

// plain reports whether encoding/json writes s as it is, between quotes.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// op writes an operation that was checked.
func (e *encoder) op(o Op) *ValueError {
	e.buf = append(e.buf, `{"op":"`...)
	e.buf = append(e.buf, o.Op...)
	e.buf = append(e.buf, `","path":`...)
	e.string(o.Path.String())
	if len(o.From) > 0 {
		e.buf = append(e.buf, `,"from":`...)
		e.string(o.From.String())
	}
	if o.HasValue {
		e.buf = append(e.buf, `,"value":`...)
		if err := e.value(o.Value, 0); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, '}')
	return nil
}

func (e *encoder) overflow() *ValueError {
	return &ValueError{Msg: fmt.Sprintf("%v: more than %d bytes", ErrTooLarge, e.limit), err: ErrTooLarge}
}

// finish returns what was written if it kept to the limit.
func (e *encoder) finish() ([]byte, error) {
	if len(e.buf) > e.limit {
		return nil, e.overflow()
	}
	return e.buf, nil
}

// encodedSize returns how long v is as JSON: at most limit, or ErrTooLarge.
func encodedSize(v any, limit int) (int, error) {
	e := encoder{limit: limit}
	if err := e.value(v, 0); err != nil {
		return 0, err
	}
	b, err := e.finish()
	return len(b), err
}
