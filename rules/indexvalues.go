package rules

import (
	"cmp"
	"math"
	"slices"
	"strings"
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
	part     string
	relation relation
	not      bool
	rule     int32
}

// exactInts is the number up to which each whole number is a double of its own.
const exactInts = 1 << 53

func (t *valueTests) file(rule int32, g guard) {
	switch g.asks {
	case comparison:
		switch bound := g.values[0].(type) {
		case int64:
			t.wholes.file(bound, g.relation, rule)
		case float64:
			t.doubles.file(bound, g.relation, rule)
		case string:
			t.words.file(bound, g.relation, rule)
		}
	case noneOf:
		t.others = append(t.others, rule)
		for _, v := range g.values {
			switch v := v.(type) {
			case string:
				fileUnder(&t.otherTexts, v, rule)
			case int64:
				fileUnder(&t.otherWholes, v, rule)
			case bool:
				t.otherBools[bit(v)] = append(t.otherBools[bit(v)], rule)
			}
		}
	case textRelation:
		part, _ := g.values[0].(string)
		t.parts = append(t.parts, partTest{part, g.relation, g.not, rule})
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
		if p := &t.parts[i]; !isText || p.holds(text) {
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

func (p *partTest) holds(text string) bool { return p.relation.ofText(text, p.part) != p.not }

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

func (b *bounds[T]) file(at T, r relation, rule int32) {
	list, direction := &b.above, 1
	if r == less || r == lessOrEqual {
		list, direction = &b.below, -1
	}
	added := bound[T]{at, r == lessOrEqual || r == greaterOrEqual, rule}
	i, _ := slices.BinarySearchFunc(*list, added, func(a, b bound[T]) int {
		return cmp.Or(direction*cmp.Compare(a.at, b.at), bit(b.orEqual)-bit(a.orEqual))
	})
	*list = slices.Insert(*list, i, added)
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

// relation is how a value stands to another one.
type relation int

const (
	less relation = iota + 1
	lessOrEqual
	greater
	greaterOrEqual
	begins
	ends
	holds
)

var relations = map[string]relation{
	"<": less, "<=": lessOrEqual, ">": greater, ">=": greaterOrEqual,
	"startsWith": begins, "endsWith": ends, "contains": holds,
}

// mirrored is how b stands to a, where a stands so to b.
func (r relation) mirrored() relation {
	return [...]relation{less: greater, lessOrEqual: greaterOrEqual, greater: less, greaterOrEqual: lessOrEqual}[r]
}

// opposite holds of two values that can be ordered where the relation does not.
func (r relation) opposite() relation {
	return [...]relation{less: greaterOrEqual, lessOrEqual: greater, greater: lessOrEqual, greaterOrEqual: less}[r]
}

func (r relation) ofText(text, part string) bool {
	switch r {
	case begins:
		return strings.HasPrefix(text, part)
	case ends:
		return strings.HasSuffix(text, part)
	}
	return strings.Contains(text, part)
}
