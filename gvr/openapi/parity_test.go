package openapi

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	upstream "k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

// upstreamConverter is what the API server's admission merges with, on the embedded schemas.
func upstreamConverter(t testing.TB, doc *document) managedfields.TypeConverter {
	t.Helper()
	definitions, err := decodeDefinitions(doc.definitions)
	if err != nil {
		t.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}

// upstreamMerge merges as MutatingAdmissionPolicy does.
func upstreamMerge(converter managedfields.TypeConverter, typ *Type, object, config map[string]any) (map[string]any, error) {
	patch := &unstructured.Unstructured{Object: clone(config).(map[string]any)}
	patch.SetGroupVersionKind(typ.GVK())
	out, err := upstream.ApplyStructuredMergeDiff(converter, &unstructured.Unstructured{Object: clone(object).(map[string]any)}, patch)
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured).Object, nil
}

func TestMergeEqualsUpstreamForAllKinds(t *testing.T) {
	doc, err := builtinDocument()
	if err != nil {
		t.Fatal(err)
	}
	converter := upstreamConverter(t, doc)
	rounds := 120
	if testing.Short() {
		rounds = 12
	}
	merged, refused, changed, stricter := 0, 0, 0, 0
	for _, gvk := range builtinKinds(t) {
		typ := mustBuiltin(t, gvk)
		for seed := range rounds {
			switch compareWithUpstream(t, converter, typ, uint64(seed)) {
			case outcomeChanged:
				changed++
			case outcomeSame:
				merged++
			case outcomeRefused:
				refused++
			case outcomeStricter:
				stricter++
			}
			if t.Failed() {
				t.Fatalf("%s, seed %d", gvk, seed)
			}
		}
	}
	t.Logf("alike: %d changed the object, %d did not, %d refused; refused here alone: %d", changed, merged, refused, stricter)
	if changed < 5000*rounds/120 || merged < 10*rounds/120 || refused < 1000*rounds/120 || stricter < 10*rounds/120 {
		t.Errorf("the generator does not reach all outcomes often enough")
	}
}

type outcome int

const (
	outcomeRefused outcome = iota
	outcomeSame
	outcomeChanged
	outcomeStricter // refused here alone
)

// upstreamOverlooks reports whether err is only about what upstream forbids too, but does not look for: an atomic list or map at
// or below a member of a map that is no field of a struct, such as spec.extra["k"] of a SubjectAccessReview. Upstream's
// findAtomics goes into fields alone. Such a list would be replaced whole, which is what the check is there to prevent: here it
// is refused.
func upstreamOverlooks(typ *Type, config map[string]any, err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range joined.Unwrap() {
		if !errors.Is(e, ErrAtomic) {
			return false
		}
	}
	return atomicBelowMember(typ.schema, typ.root, config, false)
}

func atomicBelowMember(s *smd.Schema, ref smd.TypeRef, v any, belowMember bool) bool {
	atom, _ := s.Resolve(ref)
	switch v := v.(type) {
	case map[string]any:
		if atom.Map == nil {
			return false
		}
		if belowMember && atom.Map.ElementRelationship == smd.Atomic {
			return true
		}
		for key, member := range v {
			_, isField := atom.Map.FindField(key)
			if below, ok := fieldType(atom.Map, key); ok && atomicBelowMember(s, below, member, belowMember || !isField) {
				return true
			}
		}
	case []any:
		if atom.List == nil {
			return false
		}
		if belowMember && !isDeduced(ref) && atom.List.ElementRelationship == smd.Atomic {
			return true
		}
		for _, item := range v {
			if atomicBelowMember(s, atom.List.ElementType, item, belowMember) {
				return true
			}
		}
	}
	return false
}

// compareWithUpstream merges one random configuration into one random object, both ways.
func compareWithUpstream(t *testing.T, converter managedfields.TypeConverter, typ *Type, seed uint64) outcome {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	live := &generator{Rand: random, schema: typ.schema}
	partial := &generator{Rand: random, schema: typ.schema, partial: true}
	switch seed % 5 {
	case 2:
		partial.members = true
	case 3:
		partial.atomics = true
	case 4:
		partial.wrong = 2
	}
	object, config := live.object(typ), partial.object(typ)
	objectBefore, configBefore := clone(object), clone(config)

	want, wantErr := upstreamMerge(converter, typ, object, config)
	got, gotErr := typ.Merge(object, config)
	if !reflect.DeepEqual(object, objectBefore) || !reflect.DeepEqual(config, configBefore) {
		t.Errorf("an argument was modified")
	}
	if wantErr == nil && upstreamOverlooks(typ, config, gotErr) {
		return outcomeStricter
	}
	if (wantErr == nil) != (gotErr == nil) {
		t.Errorf("upstream: %v\nhere: %v\nconfig: %v", wantErr, gotErr, config)
		return outcomeRefused
	}
	if wantErr != nil {
		// Upstream looks for wrong types first; here, what is in an atomic value is not looked at.
		if strings.Contains(wantErr.Error(), "may not mutate atomic") && !errors.Is(gotErr, ErrAtomic) {
			t.Errorf("upstream: %v\nhere: %v", wantErr, gotErr)
		}
		return outcomeRefused
	}
	if !jsonvalue.Equal(got, want) {
		t.Errorf("merged as upstream but for %v\nobject: %v\nconfig: %v", Changes(want, got), object, config)
	}
	again, err := typ.Merge(got, config)
	if err != nil || !jsonvalue.Equal(again, got) {
		// With elements of the same key in a list, upstream merges again and again differently.
		if wantAgain, wantErr := upstreamMerge(converter, typ, want, config); (wantErr == nil) != (err == nil) || !jsonvalue.Equal(wantAgain, again) {
			t.Errorf("merged twice: %v, %v", err, Changes(got, again))
		}
	}
	if len(Changes(object, got)) == 0 {
		return outcomeSame
	}
	return outcomeChanged
}

func FuzzMergeEqualsUpstream(f *testing.F) {
	doc, err := builtinDocument()
	if err != nil {
		f.Fatal(err)
	}
	converter, kinds := upstreamConverter(f, doc), builtinKinds(f)
	f.Add(uint64(1), uint16(1))
	f.Fuzz(func(t *testing.T, seed uint64, kind uint16) {
		compareWithUpstream(t, converter, mustBuiltin(t, kinds[int(kind)%len(kinds)]), seed)
	})
}
