package lint

import (
	"slices"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

var auditChain = &Check{
	ID: "audit-chain", Severity: Warning, Summary: "An enforced rule reads what only a rule in Audit mode writes",
	Run: runAuditChain,
}

func runAuditChain(p *Pass) {
	if p.Rule.Mode != rules.Enforce {
		return
	}
	for _, other := range p.All {
		if other.Rule.Mode != rules.Audit || len(shared(p.Rule, other.Rule)) == 0 {
			continue
		}
		if w := waited(p, other.Rule); w != nil && !p.apart(other) {
			p.Reportf(p.reader(w), "it depends on %s, which is in Audit mode: %s stays as it is, and this rule does not see what the other would write", position(other, w), w.Field())
		}
	}
}

// waited returns what this rule reads, and another one alone would write.
func waited(p *Pass, other *rules.Rule) *rules.Write {
	for _, w := range other.Writes() {
		if len(w.Path) == 0 || !p.reads(w) {
			continue
		}
		written := slices.ContainsFunc(p.All, func(d *rules.Definition) bool {
			return d.Rule.Mode == rules.Enforce && len(shared(p.Rule, d.Rule)) > 0 &&
				slices.ContainsFunc(d.Rule.Writes(), func(v *rules.Write) bool { return w.Overlaps(v) })
		})
		if !written {
			return w
		}
	}
	return nil
}

// reads reports whether this rule reads what a write changes.
func (p *Pass) reads(w *rules.Write) bool {
	if w.Feeds(p.Rule.ConditionReads()) {
		return true
	}
	for i := range p.Rule.Patches() {
		if reads, _ := p.Rule.PatchReads(i); w.Feeds(reads) {
			return true
		}
	}
	return false
}

// reader is where this rule reads what a write changes.
func (p *Pass) reader(w *rules.Write) yamldoc.Position {
	for _, e := range p.Expressions {
		var found *expression.Node
		e.Program.Syntax().Walk(func(n *expression.Node) bool {
			root, path := n.Path()
			if found == nil && root.Kind == expression.Ident && root.Name == "object" && len(path) > 0 {
				common := min(len(path), len(w.Path))
				if slices.Equal(path[:common], w.Path[:common]) {
					found = n
				}
			}
			return true
		})
		if found != nil && e.Part != rules.PartEvent {
			return e.Pos(found.Start)
		}
	}
	if match := p.Field("spec", "match"); match != nil {
		return p.Doc.Pos(match)
	}
	return p.Rule.Pos
}
