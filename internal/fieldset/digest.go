package fieldset

import (
	"fmt"
	"hash/maphash"
	"math"
)

// The seed makes digests differ from process to process: nobody can prepare an
// object whose change goes unseen.
var (
	seed = maphash.MakeSeed()
	base = maphash.String(seed, "fieldset")
)

// What a digest knows of a value besides its content.
const (
	isAbsent = iota + 1
	isUnknown
	isNull
	isString
	isFalse
	isTrue
	isInt
	isFloat
	isMap
	isList
	isOther
)

// Digest returns a hash of the fields of the object that are in the set: that
// of its projection is the same. Digests by equal sets can be compared within
// one process. It does not allocate on JSON-shaped objects.
func (s *Set) Digest(object map[string]any) uint64 { return orEmpty(s).digest(object) }

func (s *Set) digest(v any) uint64 {
	switch {
	case s == nil:
		return mix(base, isUnknown)
	case s.whole:
		return hash(v)
	}
	switch v := v.(type) {
	case map[string]any:
		return s.digestMap(v)
	case []any:
		return s.digestList(v)
	}
	if s.keys {
		return hash(v)
	}
	switch v.(type) {
	case nil:
		return mix(base, isNull)
	case string:
		return mix(base, isString)
	case bool:
		return mix(base, isFalse)
	case int64:
		return mix(base, isInt)
	case float64:
		return mix(base, isFloat)
	}
	return hash(v)
}

func (s *Set) digestMap(m map[string]any) uint64 {
	h := mix(base, isMap)
	if s.keys {
		var sum uint64 // whatever the order
		for k, v := range m {
			sum += mix(maphash.String(seed, k), s.Field(k).digest(v))
		}
		return mix(mix(h, uint64(len(m))), sum)
	}
	for i, name := range s.names {
		if v, ok := m[name]; ok {
			h = mix(h, s.fields[i].digest(v))
		} else {
			h = mix(h, isAbsent)
		}
	}
	return h
}

func (s *Set) digestList(l []any) uint64 {
	switch {
	case s.lists:
		return hash(l)
	case !s.keys:
		return mix(base, isList)
	}
	h := mix(mix(base, isList), uint64(len(l)))
	if s.items != nil {
		for _, v := range l {
			h = mix(h, s.items.digest(v))
		}
	}
	return h
}

// hash is that of a whole value.
func hash(v any) uint64 {
	switch v := v.(type) {
	case nil:
		return mix(base, isNull)
	case string:
		return mix(mix(base, isString), maphash.String(seed, v))
	case bool:
		if v {
			return mix(base, isTrue)
		}
		return mix(base, isFalse)
	case int64:
		return mix(mix(base, isInt), uint64(v))
	case float64:
		return mix(mix(base, isFloat), math.Float64bits(v))
	case map[string]any:
		var sum uint64
		for k, x := range v {
			sum += mix(maphash.String(seed, k), hash(x))
		}
		return mix(mix(mix(base, isMap), uint64(len(v))), sum)
	case []any:
		h := mix(mix(base, isList), uint64(len(v)))
		for _, x := range v {
			h = mix(h, hash(x))
		}
		return h
	}
	// Not JSON-shaped: correct, if not cheap.
	return mix(mix(base, isOther), maphash.String(seed, fmt.Sprintf("%T %#v", v, v)))
}

// mix adds a word to a digest. It is a bijection in each of its arguments, so
// that one changed field always shows.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0xff51afd7ed558ccd
	return h ^ h>>32
}
