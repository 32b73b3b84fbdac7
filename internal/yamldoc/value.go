package yamldoc

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	tagNull      = "!!null"
	tagBool      = "!!bool"
	tagStr       = "!!str"
	tagInt       = "!!int"
	tagFloat     = "!!float"
	tagTimestamp = "!!timestamp"
	tagBinary    = "!!binary"
	tagMerge     = "!!merge"

	quotedStyles = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
)

// words are the plain scalars with a meaning of their own in YAML 1.1.
var words = map[string]any{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "true": true, "True": true, "TRUE": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "false": false, "False": false, "FALSE": false, "off": false, "Off": false, "OFF": false,
	"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil,
	".nan": math.NaN(), ".NaN": math.NaN(), ".NAN": math.NaN(),
	".inf": math.Inf(1), ".Inf": math.Inf(1), ".INF": math.Inf(1), "+.inf": math.Inf(1), "+.Inf": math.Inf(1), "+.INF": math.Inf(1),
	"-.inf": math.Inf(-1), "-.Inf": math.Inf(-1), "-.INF": math.Inf(-1),
}

var (
	floatPattern   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	decimalPattern = regexp.MustCompile(`^[-+]?[0-9]+$`)
)

// Value converts a node and what is below it; aliases and merge keys are followed. The result holds map[string]any, []any, string, bool, int64,
// float64 and nil, nothing of it shared with the node or within itself. An integer that does not fit into int64 is an error.
// The position of an *Error has no file; use Document.Value where the file matters.
func Value(n *yaml.Node) (any, error) { return converter{}.value(n) }

// Value converts the whole document as the function Value does.
func (d *Document) Value() (any, error) { return converter{doc: d}.value(d.Root) }

// InexactValue is Value, but integers that do not fit into int64 become the nearest float64, as the API machinery decodes them. Only for
// callers that never write such a number back.
func (d *Document) InexactValue() (any, error) {
	return converter{doc: d, inexact: true}.value(d.Root)
}

// IsString reports whether the scalar (aliases followed) is a string under the conversion rules: yes, 012, 3 and null are not, "yes" is.
func IsString(n *yaml.Node) bool {
	n = Resolve(n)
	if n == nil || n.Kind != yaml.ScalarNode {
		return false
	}
	v, err := scalar(n)
	_, ok := v.(string)
	return ok && err == nil
}

// Resolve follows aliases to the node that they stand for. It returns nil for nil.
func Resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Field returns the key and value nodes of a mapping's entry, or nil, nil when m is no mapping or has no such key. Aliases are followed, for m as
// for the value; explicit keys come before merged ones.
func Field(m *yaml.Node, key string) (k, v *yaml.Node) {
	m = Resolve(m)
	if m == nil || m.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if name, err := keyName(m.Content[i]); err == nil && name == key && !isMerge(m.Content[i]) {
			return m.Content[i], Resolve(m.Content[i+1])
		}
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if !isMerge(m.Content[i]) {
			continue
		}
		for _, from := range mergeSources(m.Content[i+1]) {
			if k, v := Field(from, key); k != nil {
				return k, v
			}
		}
	}
	return nil, nil
}

// KeyString returns what a mapping's key node becomes in the converted map: the key y is "true".
func KeyString(k *yaml.Node) (string, error) { return keyName(k) }

// IsMerge reports whether a mapping's key node is the merge key <<.
func IsMerge(k *yaml.Node) bool { return isMerge(k) }

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Tag == tagMerge
}

// mergeSources returns the mappings that a merge key's value names, the first taking precedence.
func mergeSources(v *yaml.Node) []*yaml.Node {
	v = Resolve(v)
	if v.Kind == yaml.SequenceNode {
		return v.Content
	}
	return []*yaml.Node{v}
}

type converter struct {
	doc     *Document
	inexact bool
}

func (c converter) fail(n *yaml.Node, format string, args ...any) error {
	pos := Position{Line: n.Line, Column: n.Column}
	if c.doc != nil {
		pos = c.doc.Pos(n)
	}
	return &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

func (c converter) value(n *yaml.Node) (any, error) {
	switch n = Resolve(n); n.Kind {
	case yaml.DocumentNode:
		return c.value(n.Content[0])
	case yaml.MappingNode:
		return c.mapping(n)
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, e := range n.Content {
			v, err := c.value(e)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}
	v, err := scalar(n)
	if err != nil {
		return nil, c.fail(n, "%v", err)
	}
	return c.number(n, v)
}

func (c converter) mapping(n *yaml.Node) (any, error) {
	out := make(map[string]any, len(n.Content)/2)
	merges := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			merges = true
			continue
		}
		key, err := keyName(n.Content[i])
		if err != nil {
			return nil, c.fail(n.Content[i], "%v", err)
		}
		if out[key], err = c.value(n.Content[i+1]); err != nil {
			return nil, err
		}
	}
	if !merges {
		return out, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			continue
		}
		if err := c.merge(out, n.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c converter) merge(out map[string]any, from *yaml.Node) error {
	for _, s := range mergeSources(from) {
		v, err := c.value(s)
		if err != nil {
			return err
		}
		m, ok := v.(map[string]any)
		if !ok {
			return c.fail(from, "a merge key needs a mapping or a list of mappings")
		}
		for k, v := range m {
			if _, set := out[k]; !set {
				out[k] = v
			}
		}
	}
	return nil
}

// number gives numbers the type that they have after a trip through JSON text and the decoder of the API machinery.
func (c converter) number(n *yaml.Node, v any) (any, error) {
	switch v := v.(type) {
	case uint64:
		if !c.inexact {
			return nil, c.fail(n, "integer %s does not fit into 64 bits", n.Value)
		}
		return float64(v), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, c.fail(n, "%s is not a number that JSON can hold", n.Value)
		}
		if !c.inexact && !exactInteger(n.Value) {
			return nil, c.fail(n, "integer %s does not fit into 64 bits", n.Value)
		}
		if abs := math.Abs(v); v == math.Trunc(v) && abs < 1e21 {
			if i, err := strconv.ParseInt(strconv.FormatFloat(v, 'f', -1, 64), 10, 64); err == nil {
				return i, nil
			}
		}
	}
	return v, nil
}

// exactInteger reports whether a literal that was read as float64 is not an integer that lost digits by that.
func exactInteger(literal string) bool {
	literal = strings.ReplaceAll(literal, "_", "")
	if !decimalPattern.MatchString(literal) {
		return true
	}
	i, ok := new(big.Int).SetString(strings.TrimPrefix(literal, "+"), 10)
	return !ok || i.IsInt64()
}

// keyName returns the map key that a key node stands for.
func keyName(k *yaml.Node) (string, error) {
	k = Resolve(k)
	if k == nil || k.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("a key must be a string, not a list or a mapping")
	}
	v, err := scalar(k)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return floatKey(v), nil
	case nil:
		return "", fmt.Errorf("a key must be a string, not null")
	}
	return "", fmt.Errorf("the key %s must be quoted: it is a number beyond 64 bits", k.Value)
}

// floatKey writes a number as sigs.k8s.io/yaml does for keys: with 32 bits.
func floatKey(f float64) string {
	switch s := strconv.FormatFloat(f, 'g', -1, 32); s {
	case "NaN":
		return ".nan"
	case "+Inf":
		return ".inf"
	case "-Inf":
		return "-.inf"
	default:
		return s
	}
}

// scalar returns string, bool, int64, uint64 (only beyond int64), float64 or nil.
func scalar(n *yaml.Node) (any, error) {
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style&quotedStyles != 0 {
			return n.Value, nil
		}
		return plain(n.Value), nil
	}
	tag := n.ShortTag()
	switch tag {
	case tagBinary:
		b, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			return nil, fmt.Errorf("!!binary needs base64 text")
		}
		return string([]rune(string(b))), nil // invalid UTF-8 becomes U+FFFD, as in JSON
	case tagTimestamp:
		if !isTimestamp(n.Value) {
			return nil, fmt.Errorf("%s is no timestamp", strconv.Quote(n.Value))
		}
		return n.Value, nil
	case tagNull, tagBool, tagInt, tagFloat:
	default:
		return n.Value, nil
	}
	v := plain(n.Value)
	ok := false
	switch x := v.(type) {
	case nil:
		ok = tag == tagNull
	case bool:
		ok = tag == tagBool
	case uint64:
		ok = tag == tagInt
	case float64:
		ok = tag == tagFloat
	case int64:
		ok = tag == tagInt
		if tag == tagFloat {
			return float64(x), nil
		}
	}
	if !ok {
		return nil, fmt.Errorf("%s is not what its tag %s says", strconv.Quote(n.Value), tag)
	}
	return v, nil
}

// plain resolves an unquoted scalar by the rules of go-yaml v2, which sigs.k8s.io/yaml uses.
func plain(s string) any {
	if s == "" {
		return nil
	}
	switch c := s[0]; {
	case strings.IndexByte("yYnNtTfFoO~", c) >= 0:
		if v, ok := words[s]; ok {
			return v
		}
	case c == '.':
		if v, ok := words[s]; ok {
			return v
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	case c == '+' || c == '-' || c >= '0' && c <= '9':
		if v, ok := words[s]; ok {
			return v
		}
		if strings.Trim(s, "0123456789abcdefABCDEFxXoO_.+-") == "" { // the rest, like 100m, is no number: spare the attempts
			if v, ok := plainNumber(strings.ReplaceAll(s, "_", "")); ok {
				return v
			}
		}
	}
	return s
}

func plainNumber(s string) (any, bool) {
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return i, true
	}
	if u, err := strconv.ParseUint(s, 0, 64); err == nil {
		return u, true
	}
	if floatPattern.MatchString(s) {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f, true
		}
	}
	// What is left of the reference's binary numbers once ParseInt has had its turn: 0b+1, 0b-1, -0b-1.
	if rest, ok := strings.CutPrefix(s, "0b"); ok {
		if i, err := strconv.ParseInt(rest, 2, 64); err == nil {
			return i, true
		}
	} else if rest, ok := strings.CutPrefix(s, "-0b"); ok {
		if i, err := strconv.ParseInt("-"+rest, 2, 64); err == nil {
			return i, true
		}
	}
	return nil, false
}

func isTimestamp(s string) bool {
	if len(s) < 5 || s[4] != '-' || strings.IndexFunc(s[:4], func(r rune) bool { return r < '0' || r > '9' }) >= 0 {
		return false
	}
	for _, layout := range []string{"2006-1-2T15:4:5.999999999Z07:00", "2006-1-2t15:4:5.999999999Z07:00", "2006-1-2 15:4:5.999999999", "2006-1-2"} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}
