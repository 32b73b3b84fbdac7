package fieldset

// Project returns the object reduced to the set. Only structure is copied;
// what is needed whole is shared with the object, and so is the object itself
// if the set is Whole: the result is read-only. The object is not modified.
func (s *Set) Project(object map[string]any) map[string]any {
	return orEmpty(s).project(object).(map[string]any)
}

func (s *Set) project(v any) any {
	switch {
	case s == nil:
		return nil
	case s.whole:
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		return s.projectMap(v)
	case []any:
		return s.projectList(v)
	}
	if s.keys {
		return v
	}
	switch v.(type) {
	case string:
		return ""
	case bool:
		return false
	case int64:
		return int64(0)
	case float64:
		return float64(0)
	}
	return v
}

func (s *Set) projectMap(m map[string]any) map[string]any {
	if s.keys {
		out := make(map[string]any, len(m))
		for k, v := range m {
			out[k] = s.Field(k).project(v)
		}
		return out
	}
	n := 0
	for _, name := range s.names {
		if _, ok := m[name]; ok {
			n++
		}
	}
	out := make(map[string]any, n)
	for i, name := range s.names {
		if v, ok := m[name]; ok {
			out[name] = s.fields[i].project(v)
		}
	}
	return out
}

func (s *Set) projectList(l []any) []any {
	switch {
	case s.lists:
		return l
	case !s.keys:
		return []any{}
	}
	out := make([]any, len(l))
	if s.items != nil {
		for i, v := range l {
			out[i] = s.items.project(v)
		}
	}
	return out
}
