package statuspage

import "github.com/rectifier-dev/rectifier/engine"

// Of longer lists no more than this is shown: the JSON is to stay readable for
// programs, and the page for people.
const (
	maxRules       = 2000
	maxResources   = 2000
	maxContentions = 1000
	maxInvalid     = 500
	maxProblems    = 500

	pageRows     = 100 // of rules and resources on the page
	pageShort    = 50  // of contentions and problems
	pageActivity = 30
)

// limited is a status as it is sent.
type limited struct {
	engine.Status
	// Omitted says how many of a list are left out, by its name; lists that are
	// complete are not in it.
	Omitted map[string]int `json:"omitted"`
}

func limit(s engine.Status) limited {
	out := limited{s, map[string]int{}}
	out.Rules = cutTo(s.Rules, maxRules, "rules", out.Omitted)
	out.Resources = cutTo(s.Resources, maxResources, "resources", out.Omitted)
	out.Contentions = cutTo(s.Contentions, maxContentions, "contentions", out.Omitted)
	out.InvalidRules = cutTo(s.InvalidRules, maxInvalid, "invalidRules", out.Omitted)
	return out
}

func cutTo[T any](list []T, n int, name string, omitted map[string]int) []T {
	if len(list) <= n {
		return list
	}
	omitted[name] = len(list) - n
	return list[:n]
}
