package expression

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

// language is what every expression may use: the list of Kubernetes 1.37
// (k8s.io/apiserver/pkg/cel/environment, base.go) without the authorizer.
//
// HomogeneousAggregateLiterals and its validator are left out: computed
// patches need literals such as {'op': 'replace', 'value': 3}. Run-time cost
// tracking is left out too, since it makes an evaluation 4.3 times dearer;
// cost is bounded by shape instead, and by what is made (limits.go).
func language() []cel.EnvOption {
	return []cel.EnvOption{
		cel.EagerlyValidateDeclarations(true),
		cel.EnableMacroCallTracking(), // for Syntax: what stands there as it was written
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		// Besides optional values, this is what makes int(object.x) find its
		// overload at run time when the argument is dynamic.
		cel.OptionalTypes(),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(),
			cel.ValidateTimestampLiterals(),
			cel.ValidateRegexLiterals(),
		),
		library.URLs(),
		library.Regex(),
		library.Lists(library.ListsVersion(1)),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(library.SemverVersion(1)),
		library.JSONPatch(),
		ext.Strings(ext.StringsVersion(2)),
		ext.Sets(),
		ext.TwoVarComprehensions(),
		ext.Lists(ext.ListsVersion(3)),
	}
}

// base builds the environment once per process: it costs about half a
// millisecond and is immutable.
var base = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewEnv(language()...)
	if err != nil {
		panic(broken(err))
	}
	guards, err := guarded(env)
	if err == nil {
		env, err = env.Extend(guards...)
	}
	if err != nil {
		panic(broken(err))
	}
	return env
})

// broken is for what cannot happen: the list above is constant, so that only a
// change of it or of the libraries can get here, and any test does.
func broken(err error) string { return fmt.Sprintf("build the CEL environment: %v", err) }
