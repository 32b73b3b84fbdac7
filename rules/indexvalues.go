package rules

import (
	"cmp"
	"math"
	"slices"
)

// valueTests are the rules whose guard is a comparison of the value at one place. A
// value that a test cannot be asked of is an error in CEL, as is the comparison of a
// number with a text: these rules are found.
type valueTests struct {
	// Order comparisons. Whole numbers compare exactly; a double compares with a
	// whole number as if that was a double too, as in CEL.
	wholes  bounds[int64]
	doubles bounds[float64]
	words   bounds[string]
	// Guards that the value is none of some: all of them, and those that are false
	// of a value.
	others      []int32
	otherTexts  map[string][]int32
	otherWholes map[int64][]int32
	otherBools  [2][]int32

	parts []partTest
}

// partTest asks of a text what begins it, ends it, or is in it.
type partTest struct {
	part  string
	holds func(text, part string) bool
	not   bool
	rule  int32
}

// exactInts is the number up to which each whole number is a double of its own.
const exactInts = 1 << 53

// file reports false, as places.file does, if it does not know what the guard asks.
func (t *valueTests) file(rule int32, g guard) bool {
	switch g.asks {
	case comparison:
		switch bound := g.values[0].(type) {
		case int64:
			return t.wholes.file(bound, g.relation, rule)
		case float64:
			return t.doubles.file(bound, g.relation, rule)
		case string:
			return t.words.file(bound, g.relation, rule)
		}
	case noneOf:
		t.fileOther(rule, g.values)
		return true
	case textRelation:
		part, isText := g.values[0].(string)
		if holds := textRelations[g.relation]; isText && holds != nil {
			t.parts = append(t.parts, partTest{part, holds, g.not, rule})
			return true
		}
	}
	return false
}

// fileOther has a rule found except where one of the values stands. Those of other
// kinds than these keep it from nothing.
func (t *valueTests) fileOther(rule int32, values []any) {
	t.others = append(t.others, rule)
	for _, v := range values {
		switch v := v.(type) {
		case string:
			fileUnder(&t.otherTexts, v, rule)
		case int64:
			fileUnder(&t.otherWholes, v, rule)
		case bool:
			t.otherBools[bit(v)] = append(t.otherBools[bit(v)], rule)
		}
	}
}

func fileUnder[K comparable](m *map[K][]int32, key K, rule int32) {
	if *m == nil {
		*m = map[K][]int32{}
	}
	(*m)[key] = append((*m)[key], rule)
}

// find adds the rules whose guards are not false of a value.
func (t *valueTests) find(v any, into ruleSet) {
	into.add(t.others)
	text, isText := v.(string)
	for i := range t.parts {
		if p := &t.parts[i]; !isText || p.holds(text, p.part) != p.not {
			into.addOne(p.rule)
		}
	}
	switch v := v.(type) {
	case string:
		into.drop(t.otherTexts[v])
		t.words.find(v, into)
		t.wholes.all(into)
		t.doubles.all(into)
		return
	case int64:
		into.drop(t.otherWholes[v])
		t.wholes.find(v, into)
		t.doubles.find(float64(v), into)
	case float64:
		// Beyond it several bounds are the same double: their order is no guide.
		if math.Abs(v) < exactInts {
			t.wholes.findBy(func(bound int64) int { return cmp.Compare(float64(bound), v) }, into)
			t.doubles.find(v, into)
		} else {
			t.wholes.all(into)
			t.doubles.all(into)
		}
	case bool:
		into.drop(t.otherBools[bit(v)])
		t.wholes.all(into)
		t.doubles.all(into)
	default:
		t.wholes.all(into)
		t.doubles.all(into)
	}
	t.words.all(into)
}

// bounds are rules whose guard is that a value is below or above a bound.
type bounds[T cmp.Ordered] struct {
	// Each is in the order in which values pass: a value passes those up to one, and
	// none after it.
	above, below []bound[T]
}

type bound[T cmp.Ordered] struct {
	at      T
	orEqual bool
	rule    int32
}

func (b *bounds[T]) file(at T, r relation, rule int32) bool {
	list, direction := &b.above, 1
	switch r {
	case greater, greaterOrEqual:
	case less, lessOrEqual:
		list, direction = &b.below, -1
	default:
		return false
	}
	added := bound[T]{at, r == lessOrEqual || r == greaterOrEqual, rule}
	i, _ := slices.BinarySearchFunc(*list, added, func(a, b bound[T]) int {
		return cmp.Or(direction*cmp.Compare(a.at, b.at), bit(b.orEqual)-bit(a.orEqual))
	})
	*list = slices.Insert(*list, i, added)
	return true
}

func (b *bounds[T]) find(v T, into ruleSet) {
	if len(b.above)+len(b.below) > 0 {
		b.findBy(func(bound T) int { return cmp.Compare(bound, v) }, into)
	}
}

// findBy finds with a function that compares bounds with the value.
func (b *bounds[T]) findBy(compare func(T) int, into ruleSet) {
	addPassed(b.above, compare, into)
	addPassed(b.below, func(at T) int { return -compare(at) }, into)
}

// addPassed adds the rules whose bounds come before a value, or are equal to it and
// may be: the first ones.
func addPassed[T cmp.Ordered](list []bound[T], compare func(T) int, into ruleSet) {
	n, _ := slices.BinarySearchFunc(list, struct{}{}, func(b bound[T], _ struct{}) int {
		if c := compare(b.at); c < 0 || c == 0 && b.orEqual {
			return -1
		}
		return 1
	})
	for i := range list[:n] {
		into.addOne(list[i].rule)
	}
}

func (b *bounds[T]) all(into ruleSet) {
	for i := range b.above {
		into.addOne(b.above[i].rule)
	}
	for i := range b.below {
		into.addOne(b.below[i].rule)
	}
}
