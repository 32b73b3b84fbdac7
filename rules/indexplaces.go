package rules

// places is where rules are filed by their guards: a tree of the keys that lead to
// the places of an object. Rules are numbers, their order in an Index.
type places struct {
	// all are the rules that are filed here and below.
	all []int32
	// there are those whose guard is that there is something here.
	there []int32

	// Those whose guard is the value here. Values of other kinds are not equal to a
	// text or a whole number; a guard that asks for a bool may be an error then.
	texts   map[string][]int32
	wholes  map[int64][]int32
	bools   [2][]int32
	numbers []int32 // all in wholes: 3.0 equals 3
	// tests are those that compare the value in other ways; nil: there are none.
	tests *valueTests

	// Where a key is not in the map, guards below it are false if the steps to it
	// are safe (keys, byKey), else errors (strict).
	keys   []key
	byKey  map[string]*places
	strict []key
	// elements are by the text that they want as a key here, or as an element.
	elements map[string][]int32
	// lacking are by the text that they want neither as a key nor as an element.
	lacking map[string][]int32
	maps    []int32 // those below that are in neither: they want a map
}

type key struct {
	name  string
	below *places
}

// file puts a rule at the place that its guard is about. It reports false if it does
// not know what the guard asks, or one of its values: then nothing else may decide
// whether the rule is found. What has been filed of it so far does no harm.
func (p *places) file(rule int32, g guard) bool {
	p.all = append(p.all, rule)
	for i, s := range g.path {
		switch last := i == len(g.path)-1; {
		case last && g.element && g.asks == absence:
			fileUnder(&p.lacking, s.key, rule)
		case last && g.element && g.asks == presence:
			fileUnder(&p.elements, s.key, rule)
		default:
			p.maps = append(p.maps, rule)
		}
		p = p.child(s)
		p.all = append(p.all, rule)
	}
	switch g.asks {
	case presence:
		p.there = append(p.there, rule)
	case absence: // it is found where there is nothing
	case oneOf:
		for _, v := range g.values {
			if !p.fileValue(v, rule) {
				return false
			}
		}
	case noneOf, comparison, textRelation:
		if p.tests == nil {
			p.tests = &valueTests{}
		}
		return p.tests.file(rule, g)
	default:
		return false
	}
	return true
}

func (p *places) child(s step) *places {
	if !s.safe {
		for _, k := range p.strict {
			if k.name == s.key {
				return k.below
			}
		}
		below := &places{}
		p.strict = append(p.strict, key{s.key, below})
		return below
	}
	below := p.byKey[s.key]
	if below == nil {
		if p.byKey == nil {
			p.byKey = map[string]*places{}
		}
		below = &places{}
		p.byKey[s.key] = below
		p.keys = append(p.keys, key{s.key, below})
	}
	return below
}

func (p *places) fileValue(v any, rule int32) bool {
	switch v := v.(type) {
	case string:
		fileUnder(&p.texts, v, rule)
	case int64:
		fileUnder(&p.wholes, v, rule)
		p.numbers = append(p.numbers, rule)
	case bool:
		p.bools[bit(v)] = append(p.bools[bit(v)], rule)
	default:
		return false
	}
	return true
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// find adds the rules whose guards are not false of what stands here.
func (p *places) find(v any, into ruleSet) {
	into.add(p.there)
	p.findValue(v, into)
	if p.tests != nil {
		p.tests.find(v, into)
	}
	m, isMap := v.(map[string]any)
	if !isMap {
		p.findElements(v, into)
		return
	}
	if len(p.keys) <= len(m) {
		for i := range p.keys {
			if v, ok := m[p.keys[i].name]; ok {
				p.keys[i].below.find(v, into)
			}
		}
	} else {
		for name, v := range m {
			if below := p.byKey[name]; below != nil {
				below.find(v, into)
			}
		}
	}
	for i := range p.strict {
		if v, ok := m[p.strict[i].name]; ok {
			p.strict[i].below.find(v, into)
		} else {
			into.add(p.strict[i].below.all)
		}
	}
}

func (p *places) findValue(v any, into ruleSet) {
	switch v := v.(type) {
	case string:
		into.add(p.texts[v])
	case int64:
		into.add(p.wholes[v])
	case float64:
		into.add(p.numbers)
	case bool:
		into.add(p.bools[bit(v)])
		return
	}
	into.add(p.bools[0])
	into.add(p.bools[1])
}

// findElements is for guards that go on where no map stands.
func (p *places) findElements(v any, into ruleSet) {
	into.add(p.maps)
	list, isList := v.([]any)
	for _, rules := range p.lacking {
		into.add(rules)
	}
	if !isList {
		for _, rules := range p.elements {
			into.add(rules)
		}
		return
	}
	if p.elements == nil && p.lacking == nil {
		return
	}
	for _, v := range list {
		if text, ok := v.(string); ok {
			into.add(p.elements[text])
			into.drop(p.lacking[text])
		}
	}
}
