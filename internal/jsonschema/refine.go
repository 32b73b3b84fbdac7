package jsonschema

// OneOf says that exactly one of some fields is given.
func OneOf(names ...string) []*Schema {
	out := make([]*Schema, len(names))
	for i, name := range names {
		out[i] = &Schema{Required: []string{name}}
	}
	return out
}

// Pattern is a Refine for strings that fit a regular expression.
func Pattern(p string) func(*Schema) { return func(s *Schema) { s.Pattern = p } }

// Enum is a Refine for strings of which there are a few; "" is no default.
func Enum(byDefault string, values ...string) func(*Schema) {
	return func(s *Schema) {
		s.Enum = values
		if byDefault != "" {
			s.Default = byDefault
		}
	}
}

// NotEmpty is a Refine for strings and lists.
func NotEmpty(s *Schema) {
	if s.Type == "array" {
		s.MinItems = 1
	} else {
		s.MinLength = 1
	}
}

// WhenOneOf says what must hold if a field has one of some values.
func WhenOneOf(field string, values []string, then *Schema) *Schema {
	is := &Schema{Required: []string{field}, Properties: map[string]*Schema{field: {Enum: values}}}
	return &Schema{If: is, Then: then}
}
