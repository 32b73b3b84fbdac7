package rules

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// World is what inventions find when they look something up.
type World = inventedWorld

// Invention makes up inputs for rules, of what they read, write and compare with.
type Invention struct{ *inventor }

// NewInvention makes one whose choices depend on the seed.
func NewInvention(rs []*Rule, seed uint64) Invention {
	g := newInventor(rs)
	g.Rand = rand.New(rand.NewPCG(seed, 1))
	return Invention{g}
}

// Input makes up an object, and what is around it.
func (i Invention) Input(t Trial) Input { return i.input(t) }

// Around makes up what is around an object.
func (i Invention) Around(in Input) (namespace map[string]any, found World) {
	return i.namespace(), i.world(in)
}

// Together is a set of rules from different files. Their names get a number, so that
// no two are the same.
func Together(rs ...*Rule) *Set {
	out := make([]*Rule, len(rs))
	for i, r := range rs {
		renamed := *r
		renamed.Name = fmt.Sprintf("%s-%d", r.Name, i)
		out[i] = &renamed
	}
	return newSet(out)
}

// About returns the rule as one about another resource.
func (r *Rule) About(resource schema.GroupVersionResource) *Rule {
	return r.AboutAll([]schema.GroupVersionResource{resource})
}

// AboutAll returns the rule as one about other resources.
func (r *Rule) AboutAll(resources []schema.GroupVersionResource) *Rule {
	other := *r
	other.Resources = resources
	return &other
}
