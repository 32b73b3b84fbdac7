package objectdiff

import (
	"encoding/base64"
	"slices"
	"strings"
)

const (
	// minPart is from how many bytes on a value is also looked for within others.
	// What is shorter is found in them by accident.
	minPart = 6
	// maxSearch bounds the search for one text, in bytes to be compared. What would
	// take more counts as found.
	maxSearch = 1 << 26
)

// Values are texts that are secret wherever they stand. The zero value has none.
type Values struct {
	texts map[string]bool
	parts []string // those of texts that are looked for within others
}

// SecretValues are the data of a Secret: as they are written, and decoded.
func SecretValues(secret map[string]any) Values {
	var v Values
	v.addSecret(secret)
	return v
}

func (v *Values) addSecret(secret map[string]any) {
	v.Add(secret["stringData"])
	v.Add(secret["data"])
	data, _ := secret["data"].(map[string]any)
	for _, encoded := range data {
		text, _ := encoded.(string)
		if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
			v.Add(string(raw))
		}
	}
}

// Add adds all strings in a value.
func (v *Values) Add(value any) {
	switch value := value.(type) {
	case string:
		v.add(strings.TrimSpace(value))
	case map[string]any:
		for _, item := range value {
			v.Add(item)
		}
	case []any:
		for _, item := range value {
			v.Add(item)
		}
	}
}

func (v *Values) add(text string) {
	if text == "" || v.texts[text] {
		return
	}
	if v.texts == nil {
		v.texts = map[string]bool{}
	}
	v.texts[text] = true
	if len(text) >= minPart {
		v.parts = append(v.parts, text)
	}
}

// Within reports whether one of them is in a value: as a string in it, or, if it is
// not short, as a part of one.
func (v *Values) Within(value any) bool {
	if len(v.texts) == 0 {
		return false
	}
	switch value := value.(type) {
	case string:
		return v.texts[strings.TrimSpace(value)] || len(v.parts)*len(value) > maxSearch ||
			slices.ContainsFunc(v.parts, func(part string) bool { return strings.Contains(value, part) })
	case map[string]any:
		for _, item := range value {
			if v.Within(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, v.Within)
	}
	return false
}
