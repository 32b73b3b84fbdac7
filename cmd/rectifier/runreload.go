package main

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/rules"
)

// ruleSource is where the rules of a controller come from, the built-in ones
// aside.
type ruleSource interface {
	// Read reads all rules.
	Read() ([]rules.Source, error)
	// Watch calls changed with all rules when they are not as they were last
	// read, one call at a time, until ctx ends. An error says that they cannot be
	// read for now; Watch goes on, and calls changed when they can be again. If
	// changed returns an error, it is called again later.
	Watch(ctx context.Context, changed func([]rules.Source, error) error)
}

// loadFrom is load for rules that come from elsewhere than the paths.
func (f *ruleFlags) loadFrom(source ruleSource, s streams) (*rules.Set, []*rules.Problem, error) {
	sources, err := f.withBuiltin(source.Read())
	if err != nil {
		return nil, nil, err
	}
	set, _, problems, err := f.compile(s, sources)
	return set, problems, err
}

// reloader keeps the rules of an engine as their source has them.
type reloader struct {
	flags  *ruleFlags
	engine *engine.Engine
	set    *rules.Set      // in force
	told   map[string]bool // the problems of the last load: they have been logged
	failed string          // why the last load did not come to that; empty: it did
}

// newReloader goes on from the rules that the engine was made with.
func newReloader(flags *ruleFlags, e *engine.Engine, set *rules.Set, problems []*rules.Problem) *reloader {
	return &reloader{flags: flags, engine: e, set: set, told: texts(problems)}
}

// run reloads the rules whenever they change, until ctx ends.
func (r *reloader) run(ctx context.Context, source ruleSource) {
	logger := klog.FromContext(ctx)
	source.Watch(ctx, func(files []rules.Source, err error) error {
		sources, err := r.flags.withBuiltin(files, err)
		if err == nil {
			err = r.reload(logger, sources)
		}
		if err == nil {
			r.failed = ""
			return nil
		}
		if r.failed != err.Error() {
			r.failed = err.Error()
			logger.Error(err, "Rules not reloaded; those that were loaded before stay in force")
		}
		r.engine.KeepRules(err)
		return err
	})
}

// reload puts the rules in force, those aside that cannot be used now.
func (r *reloader) reload(logger klog.Logger, sources []rules.Source) error {
	set, problems := r.flags.choose(rules.Reload(r.set, sources...))
	changes, err := r.engine.SetRules(set, problems)
	if err != nil {
		return err
	}
	r.set = set
	logger.Info("Reloaded the rules", "rules", len(set.All()), "invalid", rules.CountInvalid(problems),
		"added", len(changes.Added), "changed", len(changes.Changed), "removed", len(changes.Removed))
	for _, p := range problems {
		if !r.told[p.Error()] {
			logger.Error(nil, "Rule not loaded", "problem", p.Error())
		}
	}
	r.told = texts(problems)
	if err := r.flags.checkChoice(set, problems); err != nil {
		logger.Error(nil, "A rule that was chosen is not there any more", "reason", err.Error())
	}
	if len(set.All()) == 0 {
		logger.Error(nil, "There is no rule any more: nothing is put right until there is one")
	}
	return nil
}

func texts(problems []*rules.Problem) map[string]bool {
	out := map[string]bool{}
	for _, p := range problems {
		out[p.Error()] = true
	}
	return out
}
