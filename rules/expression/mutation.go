package expression

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"
)

// The types that patch expressions of a MutatingAdmissionPolicy construct.
const (
	objectTypeName    = "Object"
	jsonPatchTypeName = "JSONPatch"
)

// WithPatchTypes returns an environment in which `Object{…}`,
// `Object.spec{…}` and so on, and `JSONPatch{…}` can be constructed, as in the
// mutations of a MutatingAdmissionPolicy. Value.Native makes of them what is
// written: null stays null, optional.none() drops its field, an operation has
// the members that were set.
//
// k8s.io/apiserver/pkg/cel/mutation has the same types, but its values can not
// be converted: their fields are private, and Value() turns null into 0 and
// keeps maps within lists as CEL's.
func (e *Env) WithPatchTypes() (*Env, error) {
	env, err := e.cel.Extend(common.ResolverEnvOption(patchTypes{}))
	if err != nil {
		return nil, fmt.Errorf("add the types of patches: %w", err)
	}
	return &Env{cel: env, names: e.names}, nil
}

// patchTypes implements common.TypeResolver.
type patchTypes struct{}

func (patchTypes) Resolve(name string) (common.ResolvedType, bool) {
	if name == jsonPatchTypeName || name == objectTypeName || strings.HasPrefix(name, objectTypeName+".") {
		return patchType{types.NewObjectType(name)}, true
	}
	return nil, false
}

// patchType is Object, Object.some.field, or JSONPatch.
type patchType struct{ t *types.Type }

// Type implements common.ResolvedType.
func (t patchType) Type() *types.Type { return t.t }

// TypeName implements ref.Type.
func (t patchType) TypeName() string { return t.t.TypeName() }

// HasTrait implements ref.Type.
func (t patchType) HasTrait(trait int) bool { return t.t.HasTrait(trait) }

// jsonPatchFields are the members of an operation and their types.
var jsonPatchFields = map[string]*types.Type{
	"op": types.StringType, "path": types.StringType, "from": types.StringType, "value": types.DynType,
}

func (t patchType) isJSONPatch() bool { return t.TypeName() == jsonPatchTypeName }

// Field implements common.ResolvedType: an object has any field.
func (t patchType) Field(name string) (*types.FieldType, bool) {
	fieldType, ok := types.DynType, true
	if t.isJSONPatch() {
		fieldType, ok = jsonPatchFields[name]
	}
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type: fieldType,
		IsSet: func(target any) bool {
			v, ok := target.(*patchValue)
			return ok && v.fields[name] != nil
		},
		GetFrom: func(target any) (any, error) {
			v, ok := target.(*patchValue)
			if !ok {
				return nil, fmt.Errorf("no field %q in a %T", name, target)
			}
			return v.get(name), nil
		},
	}, true
}

// FieldNames implements common.ResolvedType.
func (t patchType) FieldNames() ([]string, bool) {
	if !t.isJSONPatch() {
		return nil, true // not known
	}
	return []string{"from", "op", "path", "value"}, true
}

// Val implements common.ResolvedType.
func (t patchType) Val(fields map[string]ref.Val) ref.Val {
	if t.isJSONPatch() {
		for name, v := range fields {
			// What is dynamic passed the checker.
			if jsonPatchFields[name] == types.StringType && v.Type() != types.StringType {
				return types.NewErr("the %s of a JSONPatch is %s, not a string", name, typeName(v))
			}
		}
	}
	return &patchValue{t: t, fields: fields}
}

// patchValue is a value of a patchType. It is immutable.
type patchValue struct {
	t      patchType
	fields map[string]ref.Val // those that were set
}

var (
	_ ref.Val            = (*patchValue)(nil)
	_ traits.Indexer     = (*patchValue)(nil)
	_ traits.FieldTester = (*patchValue)(nil)
	_ traits.Zeroer      = (*patchValue)(nil)
)

// get returns a field; one that is not set is null, as upstream.
func (v *patchValue) get(name string) ref.Val {
	if f := v.fields[name]; f != nil {
		return f
	}
	return types.NullValue
}

// Get implements traits.Indexer.
func (v *patchValue) Get(index ref.Val) ref.Val {
	name, ok := index.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(index)
	}
	return v.get(string(name))
}

// IsSet implements traits.FieldTester.
func (v *patchValue) IsSet(field ref.Val) ref.Val {
	name, ok := field.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(field)
	}
	return types.Bool(v.fields[string(name)] != nil)
}

// IsZeroValue implements traits.Zeroer: optional.ofNonZeroValue(Object{}) is
// absent.
func (v *patchValue) IsZeroValue() bool { return len(v.fields) == 0 }

// Type implements ref.Val.
func (v *patchValue) Type() ref.Type { return v.t.t }

// Value implements ref.Val.
func (v *patchValue) Value() any { return v }

// ConvertToType implements ref.Val.
func (v *patchValue) ConvertToType(t ref.Type) ref.Val {
	switch {
	case t.TypeName() == v.t.TypeName():
		return v
	case t == types.TypeType:
		return types.NewTypeTypeWithParam(v.t.t)
	}
	return types.NewErr("a %s cannot be converted to %s", v.t.TypeName(), t.TypeName())
}

// ConvertToNative implements ref.Val. Nothing here needs it: see native.
func (v *patchValue) ConvertToNative(t reflect.Type) (any, error) {
	if t == reflect.TypeFor[map[string]any]() {
		return (&converter{left: MaxValues}).nativeFields(v)
	}
	return nil, fmt.Errorf("a %s cannot be converted to %v", v.t.TypeName(), t)
}

// Equal implements ref.Val.
func (v *patchValue) Equal(other ref.Val) ref.Val {
	w, ok := other.(*patchValue)
	if !ok || v.t.TypeName() != w.t.TypeName() || len(v.fields) != len(w.fields) {
		return types.False
	}
	for name, f := range v.fields {
		g := w.fields[name]
		if g == nil || types.Equal(f, g) != types.True {
			return types.False
		}
	}
	return types.True
}

func (c *converter) nativeFields(v *patchValue) (any, error) {
	out := make(map[string]any, len(v.fields))
	for name, f := range v.fields {
		val, err := c.native(f)
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		out[name] = val
	}
	return out, nil
}

// checkPatch refuses Object.spec{…} within metadata and the like in the result
// of an expression, as upstream does at run time: in an Object, or in the
// values of a list of operations, which may begin anywhere in the object.
func checkPatch(v ref.Val) error {
	switch v := v.(type) {
	case *types.Optional:
		if v.HasValue() {
			return checkPatch(v.GetValue())
		}
	case *patchValue:
		if !v.t.isJSONPatch() {
			return errors.Join(misplaced(v, v.t.TypeName())...)
		}
		if value, ok := v.fields["value"].(*patchValue); ok {
			return checkPatch(value)
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if op, ok := it.Next().(*patchValue); ok && op.t.isJSONPatch() {
				if err := checkPatch(op); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// misplaced looks where upstream does, so that it refuses no more: into
// objects, and into lists and maps that are literals or made by macros. Their
// elements have the type name of the list or map itself.
func misplaced(v ref.Val, at string) []error {
	var errs []error
	if p, ok := v.(*patchValue); ok {
		if p.t.TypeName() != at {
			errs = append(errs, fmt.Errorf("unexpected type name %q, expected %q, which matches the field name path from the root Object type", p.t.TypeName(), at))
		}
		for _, name := range slices.Sorted(maps.Keys(p.fields)) {
			errs = append(errs, misplaced(p.fields[name], at+"."+name)...)
		}
		return errs
	}
	switch value := v.Value().(type) {
	case []ref.Val:
		for _, item := range value {
			errs = append(errs, misplaced(item, at)...)
		}
	case map[ref.Val]ref.Val:
		for _, item := range value {
			errs = append(errs, misplaced(item, at)...)
		}
	}
	return errs
}
