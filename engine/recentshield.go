package engine

import (
	"sync/atomic"

	"github.com/rectifier-dev/rectifier/internal/objectdiff"
	"github.com/rectifier-dev/rectifier/rules"
)

// shield is that of the rules that a decision is made by.
func (d *decision) shield() *rules.Shield { return d.recent.shields.of(d.policy.rules) }

// message is what a rule says of its change, without what is secret: for the log,
// Events and the status.
func (d *decision) message(v rules.Verdict) string {
	return d.told(d.shield().Message(v), v.Rule.DefaultMessage())
}

// told is a text if it may be told, or what is told instead: on a Secret, somebody
// may have copied data to where nobody expects it.
func (d *decision) told(text, instead string) string {
	if d.resource.GroupResource() != secretsResource {
		return text
	}
	if values := objectdiff.SecretValues(d.object.Object); values.Within(text) {
		return instead
	}
	return text
}

// shieldCache keeps the shield of the rules in force. It is safe for concurrent
// use.
type shieldCache struct {
	last atomic.Pointer[shieldOfSet]
}

type shieldOfSet struct {
	set    *rules.Set
	shield *rules.Shield
}

func (c *shieldCache) of(set *rules.Set) *rules.Shield {
	if last := c.last.Load(); last != nil && last.set == set {
		return last.shield
	}
	next := &shieldOfSet{set, rules.NewShield(set)}
	c.last.Store(next)
	return next.shield
}
