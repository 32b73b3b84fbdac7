package expression

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxComparisons is how many pairs of values one call compares.
const maxComparisons = 10_000_000

var (
	errTooManyComparisons = fmt.Errorf("the lists are too long: %d comparisons are allowed", maxComparisons)
	errPrecision          = errors.New("a precision of format has at most 3 digits")
)

// guards check the arguments of functions whose result may be much larger, or
// that take more than linear time. Arguments have the types of an overload.
var guards = map[string]func(args []ref.Val) error{
	"distinct":        comparesAll,
	"flatten":         func(args []ref.Val) error { return fits(args[0], &weight{values: MaxValues}) },
	"format":          formats,
	"join":            joins,
	"replace":         replaces,
	"sets.contains":   comparesAll,
	"sets.equivalent": comparesAll,
	"sets.intersects": comparesAll,
	"split":           splits,
}

// guarded redefines what these functions do: first the guard, then the same.
func guarded(env *cel.Env) ([]cel.EnvOption, error) {
	var out []cel.EnvOption
	for name, guard := range guards {
		fn := env.Functions()[name]
		bindings, err := fn.Bindings()
		if err != nil {
			return nil, fmt.Errorf("guard %s: %w", name, err)
		}
		bound := map[string]*functions.Overload{}
		for _, b := range bindings {
			bound[b.Operator] = b
		}
		var overloads []cel.FunctionOpt
		for _, o := range fn.OverloadDecls() {
			declare := cel.Overload
			if o.IsMemberFunction() {
				declare = cel.MemberOverload
			}
			b := bound[o.ID()]
			if b == nil {
				return nil, fmt.Errorf("guard %s: overload %s has no implementation", name, o.ID())
			}
			overloads = append(overloads, declare(o.ID(), o.ArgTypes(), o.ResultType(), cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				if err := guard(args); err != nil {
					return types.WrapErr(err)
				}
				return call(b, args)
			})))
		}
		out = append(out, cel.Function(name, overloads...))
	}
	return out, nil
}

// call calls an implementation, which has one of three forms.
func call(o *functions.Overload, args []ref.Val) ref.Val {
	switch {
	case o.Unary != nil && len(args) == 1:
		return o.Unary(args[0])
	case o.Binary != nil && len(args) == 2:
		return o.Binary(args[0], args[1])
	}
	return o.Function(args...)
}

func atMostValues(n int) error {
	if n > MaxValues {
		return ErrTooLarge
	}
	return nil
}

func atMostText(n int) error {
	if n > MaxText {
		return ErrTooMuchText
	}
	return nil
}

// fits weighs a value.
func fits(v ref.Val, w *weight) error {
	if !w.take(v) {
		return ErrTooLarge
	}
	return nil
}

func replaces(args []ref.Val) error {
	s, old, replacement := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	n := utf8.RuneCountInString(s) + 1
	if old != "" {
		n = strings.Count(s, old)
	}
	if len(args) == 4 {
		if limit := args[3].(types.Int); limit >= 0 {
			n = int(min(types.Int(n), limit))
		}
	}
	return atMostText(len(s) + n*(len(replacement)-len(old)))
}

func splits(args []ref.Val) error {
	s, separator := string(args[0].(types.String)), string(args[1].(types.String))
	if separator == "" {
		return atMostValues(utf8.RuneCountInString(s))
	}
	return atMostValues(strings.Count(s, separator) + 1)
}

func joins(args []ref.Val) error {
	w := weight{values: MaxValues}
	if err := fits(args[0], &w); err != nil {
		return err
	}
	size := w.text
	if len(args) == 2 {
		size += int(args[0].(traits.Lister).Size().(types.Int)) * len(args[1].(types.String))
	}
	return atMostText(size)
}

// precise is a clause of format with a precision that fills a page.
var precise = regexp.MustCompile(`%\.[0-9]{4}`)

func formats(args []ref.Val) error {
	text := string(args[0].(types.String))
	w := weight{values: MaxValues}
	switch err := fits(args[1], &w); {
	case err != nil:
		return err
	case precise.MatchString(text):
		return errPrecision
	}
	return atMostText(len(text) + w.text)
}

// comparesAll is for what compares each element with each other.
func comparesAll(args []ref.Val) error {
	pairs := 1
	for _, list := range []ref.Val{args[0], args[len(args)-1]} {
		w := weight{values: MaxValues}
		if err := fits(list, &w); err != nil {
			return err
		}
		pairs *= MaxValues - w.values
	}
	if pairs > maxComparisons {
		return errTooManyComparisons
	}
	return nil
}
