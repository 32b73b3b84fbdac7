package importer

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// maxName is the longest name of a rule: a DNS label.
const maxName = 63

// ruleName makes a name of a policy's and, where several bindings make several
// rules, a binding's. It has not been given before.
func (im *importer) ruleName(policy, binding string) string {
	name := label(policy)
	switch b := label(binding); {
	case b == name, strings.HasPrefix(b, name+"-"):
		name = b
	case b != "":
		name += "-" + b
	}
	if name = shorten(strings.Trim(name, "-"), maxName); name == "" {
		name = "policy"
	}
	unique := name
	for n := 2; im.names[unique]; n++ {
		suffix := "-" + strconv.Itoa(n)
		unique = shorten(name, maxName-len(suffix)) + suffix
	}
	im.names[unique] = true
	return unique
}

// label replaces what a DNS label cannot hold, such as the dots of a policy's name.
func label(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}

// shorten cuts a name that is too long; what was cut is in a hash at the end, so
// that names which begin alike stay different.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	h := fnv.New32a()
	h.Write([]byte(s))
	sum := fmt.Sprintf("-%08x", h.Sum32())
	return strings.TrimRight(s[:limit-len(sum)], "-") + sum
}
