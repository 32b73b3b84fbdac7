package patch

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestApplyOps(t *testing.T) {
	for name, tc := range map[string]struct{ doc, patch, want string }{
		"add a key":                        {`{}`, `[{"op":"add","path":"/a","value":1}]`, `{"a":1}`},
		"add over a key":                   {`{"a":1}`, `[{"op":"add","path":"/a","value":{"b":2}}]`, `{"a":{"b":2}}`},
		"add keeps the siblings":           {`{"m":{"keep":"1"}}`, `[{"op":"add","path":"/m/example.io~1team","value":"x"}]`, `{"m":{"example.io/team":"x","keep":"1"}}`},
		"add in front":                     {`{"l":[1,2]}`, `[{"op":"add","path":"/l/0","value":0}]`, `{"l":[0,1,2]}`},
		"add at the end":                   {`{"l":[1,2]}`, `[{"op":"add","path":"/l/2","value":3}]`, `{"l":[1,2,3]}`},
		"append":                           {`{"l":[]}`, `[{"op":"add","path":"/l/-","value":3},{"op":"add","path":"/l/-","value":4}]`, `{"l":[3,4]}`},
		"in a list element":                {`{"l":[{"i":1},{"i":2}]}`, `[{"op":"replace","path":"/l/1/i","value":3}]`, `{"l":[{"i":1},{"i":3}]}`},
		"a number as a key":                {`{"m":{}}`, `[{"op":"add","path":"/m/0","value":"x"},{"op":"add","path":"/m/-","value":"y"},{"op":"add","path":"/m/01","value":"z"}]`, `{"m":{"-":"y","0":"x","01":"z"}}`},
		"replace of an absent key is add":  {`{"metadata":{}}`, `[{"op":"replace","path":"/metadata/x","value":"v"}]`, `{"metadata":{"x":"v"}}`},
		"replace in a list":                {`{"l":[1,2]}`, `[{"op":"replace","path":"/l/1","value":3}]`, `{"l":[1,3]}`},
		"remove a key":                     {`{"a":1,"b":null}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"}]`, `{}`},
		"remove from a list":               {`{"l":[1,2,3]}`, `[{"op":"remove","path":"/l/1"}]`, `{"l":[1,3]}`},
		"move":                             {`{"a":{"x":1},"b":{}}`, `[{"op":"move","from":"/a/x","path":"/b/y"}]`, `{"a":{},"b":{"y":1}}`},
		"move in a list":                   {`{"l":[1,2,3]}`, `[{"op":"move","from":"/l/0","path":"/l/2"}]`, `{"l":[2,3,1]}`},
		"move to itself":                   {`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		"move to a longer name":            {`{"a":1}`, `[{"op":"move","from":"/a","path":"/ab"}]`, `{"ab":1}`},
		"copy":                             {`{"a":{"x":1}}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/y","value":2}]`, `{"a":{"x":1},"b":{"x":1,"y":2}}`},
		"copy into itself":                 {`{"a":{"x":1}}`, `[{"op":"add","path":"/a/y","value":1},{"op":"copy","from":"/a","path":"/a/z"}]`, `{"a":{"x":1,"y":1,"z":{"x":1,"y":1}}}`},
		"test":                             {`{"a":[1,{"b":null}]}`, `[{"op":"test","path":"/a","value":[1.0,{"b":null}]}]`, `{"a":[1,{"b":null}]}`},
		"test for absence":                 {`{"metadata":{}}`, `[{"op":"test","path":"/metadata/x","value":null},{"op":"add","path":"/metadata/x","value":1}]`, `{"metadata":{"x":1}}`},
		"a value used twice stays apart":   {`{}`, `[{"op":"add","path":"/a","value":{}},{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/a/x","value":1},{"op":"add","path":"/b/y","value":1}]`, `{"a":{"x":1},"b":{"y":1}}`},
		"a list is emptied and filled":     {`{"l":[1]}`, `[{"op":"remove","path":"/l/0"},{"op":"add","path":"/l/0","value":2}]`, `{"l":[2]}`},
		"a nested list":                    {`{"l":[[1],[2]]}`, `[{"op":"add","path":"/l/0/-","value":9},{"op":"remove","path":"/l/1/0"}]`, `{"l":[[1,9],[]]}`},
		"a moved list goes on being built": {`{"l":[1]}`, `[{"op":"add","path":"/l/-","value":2},{"op":"move","from":"/l","path":"/k"},{"op":"add","path":"/k/-","value":3}]`, `{"k":[1,2,3]}`},
	} {
		t.Run(name, func(t *testing.T) {
			doc, list := object(t, tc.doc), ops(t, tc.patch)
			check := frozen(t, doc, list)
			got, err := ApplyOps(doc, list)
			if err != nil {
				t.Fatal(err)
			}
			if text(t, got) != tc.want {
				t.Errorf("got  %s\nwant %s", text(t, got), tc.want)
			}
			check()
		})
	}
}

func TestApplyOpsRefuses(t *testing.T) {
	const doc = `{"metadata":{"name":"a","nothing":null},"l":[1,2],"s":"x","o":{"k":1}}`
	for name, tc := range map[string]struct{ op, want string }{
		"a missing parent":             {`{"op":"add","path":"/metadata/annotations/team","value":"x"}`, "missing parent /metadata/annotations"},
		"a missing grandparent":        {`{"op":"add","path":"/a/b/c","value":"x"}`, "missing parent /a"},
		"a null parent":                {`{"op":"add","path":"/metadata/nothing/x","value":"x"}`, "missing parent /metadata/nothing"},
		"a null grandparent":           {`{"op":"replace","path":"/metadata/nothing/x/y","value":"x"}`, "missing parent /metadata/nothing"},
		"a missing destination":        {`{"op":"move","from":"/s","path":"/a/b"}`, "missing parent /a"},
		"a string for a parent":        {`{"op":"add","path":"/s/x","value":1}`, "not a container /s"},
		"a string for a grandparent":   {`{"op":"remove","path":"/s/x/y"}`, "not a container /s"},
		"removing what is not there":   {`{"op":"remove","path":"/metadata/x"}`, "not applicable"},
		"removing below nothing":       {`{"op":"remove","path":"/metadata/annotations/x"}`, "not applicable"},
		"removing below null":          {`{"op":"remove","path":"/metadata/nothing/x"}`, "not applicable"},
		"removing beyond the end":      {`{"op":"remove","path":"/l/2"}`, "not applicable"},
		"moving what is not there":     {`{"op":"move","from":"/x","path":"/y"}`, "not applicable"},
		"copying what is not there":    {`{"op":"copy","from":"/x","path":"/y"}`, "not applicable"},
		"another value":                {`{"op":"test","path":"/s","value":"y"}`, "test failed /s"},
		"a value where none shall be":  {`{"op":"test","path":"/s","value":null}`, "test failed /s"},
		"none where a value shall be":  {`{"op":"test","path":"/x","value":1}`, "test failed /x"},
		"a test below nothing":         {`{"op":"test","path":"/x/y","value":null}`, "test failed /x/y"},
		"a test beyond the end":        {`{"op":"test","path":"/l/2","value":null}`, "test failed /l/2"},
		"an index beyond the end":      {`{"op":"add","path":"/l/3","value":1}`, "index /l/3"},
		"replace at the end":           {`{"op":"replace","path":"/l/2","value":1}`, "index /l/2"},
		"replace of -":                 {`{"op":"replace","path":"/l/-","value":1}`, "index /l/-"},
		"below an index too far":       {`{"op":"add","path":"/l/60000/b","value":1}`, "index /l/60000"},
		"a negative index":             {`{"op":"replace","path":"/l/-1","value":1}`, "index /l/-1"},
		"a leading zero":               {`{"op":"remove","path":"/l/01"}`, "index /l/01"},
		"a sign":                       {`{"op":"add","path":"/l/+1","value":1}`, "index /l/+1"},
		"a word":                       {`{"op":"test","path":"/l/first","value":1}`, "index /l/first"},
		"an index that does not fit":   {`{"op":"add","path":"/l/99999999999999999999","value":1}`, "index /l/99999999999999999999"},
		"removing -":                   {`{"op":"remove","path":"/l/-"}`, "index /l/-"},
		"copying from a list by word":  {`{"op":"copy","from":"/l/x","path":"/y"}`, "index /l/x"},
		"a number below a list member": {`{"op":"add","path":"/l/0/x","value":1}`, "not a container /l/0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := object(t, doc)
			list := ops(t, `[{"op":"add","path":"/o/new","value":1},`+tc.op+`]`)
			check := frozen(t, d, list)
			got, err := ApplyOps(d, list)
			var oe *OpError
			if got != nil || !errors.As(err, &oe) || oe.Index != 1 {
				t.Fatalf("got %v, %v", got, err)
			}
			if class := classify(err); class != tc.want {
				t.Errorf("got %s (%v), want %s", class, err, tc.want)
			}
			check()
		})
	}
}

func classify(err error) string {
	var (
		missing *MissingParentError
		scalar  *NotContainerError
		index   *IndexError
		failed  *TestFailedError
	)
	switch {
	case errors.Is(err, ErrNotApplicable):
		return "not applicable"
	case errors.As(err, &missing):
		return "missing parent " + missing.Path.String()
	case errors.As(err, &scalar):
		return "not a container " + scalar.Path.String()
	case errors.As(err, &index):
		return "index " + index.Path.String()
	case errors.As(err, &failed):
		return "test failed " + failed.Path.String()
	}
	return fmt.Sprint(err)
}

func TestMissingParentSuggestsMerge(t *testing.T) { // PAT-01
	_, err := ApplyOps(object(t, `{"metadata":{"name":"a"}}`), ops(t, `[{"op":"add","path":"/metadata/annotations/team","value":"x"}]`))
	want := "JSON patch [0].path: /metadata/annotations does not exist, and a JSON patch cannot create it on the way: use a merge patch"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestApplyOpsRefusesInvalidOps(t *testing.T) {
	for _, op := range []Op{{}, {Op: "add", HasValue: true}, {Op: "add", Path: Pointer{"a"}}, {Op: "copy", Path: Pointer{"a"}}} {
		if got, err := ApplyOps(map[string]any{"a": int64(1)}, []Op{op}); err == nil {
			t.Errorf("%+v gave %v", op, got)
		}
	}
}

func TestApplyOpsReturnsTheSameObjectIfNothingIsWritten(t *testing.T) {
	doc := object(t, `{"a":{"b":1}}`)
	got, err := ApplyOps(doc, ops(t, `[{"op":"test","path":"/a/b","value":1}]`))
	if err != nil || !sameMap(doc, got) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestApplyOpsSharesWhatIsUntouched(t *testing.T) {
	doc := object(t, `{"spec":{"containers":[{"name":"a","env":[1]},{"name":"b"}],"volumes":[1]}}`)
	got, err := ApplyOps(doc, ops(t, `[{"op":"replace","path":"/spec/containers/1/name","value":"c"}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Pointer{{"spec", "containers", "0"}, {"spec", "volumes"}} {
		a, _ := lookup(doc, p)
		b, _ := lookup(got, p)
		if !identical(a, b) {
			t.Errorf("%s was copied", p)
		}
	}
}

// A patch that doubles a value again and again must fail soon, not eat the memory.
func TestCopiesAreCapped(t *testing.T) { // SEC-07
	doc := map[string]any{"a": map[string]any{"x": strings.Repeat("x", 1000)}}
	var list []Op
	for i := range 60 {
		list = append(list, Op{Op: "copy", From: Pointer{"a"}, Path: Pointer{"a", fmt.Sprint(i)}})
	}
	if _, err := ApplyOps(doc, list); !errors.Is(err, ErrTooLarge) {
		t.Errorf("60 doublings: %v", err)
	}
	if _, err := ApplyOps(doc, list[:5]); err != nil {
		t.Errorf("5 doublings: %v", err)
	}
}

func TestOperationsAreCapped(t *testing.T) {
	list := make([]Op, MaxOps+1)
	for i := range list {
		list[i] = Op{Op: "add", Path: Pointer{"l", "-"}, Value: int64(i), HasValue: true}
	}
	if _, err := ApplyOps(map[string]any{"l": []any{}}, list); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d operations: %v", len(list), err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := ApplyOps(map[string]any{"l": []any{}}, list[:MaxOps])
	runtime.ReadMemStats(&after)
	if err != nil || len(got["l"].([]any)) != MaxOps {
		t.Errorf("%d operations: %v", MaxOps, err)
	}
	// Copied for each operation, the list would come to 800 MB.
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 50 {
		t.Errorf("%d appends allocated %d MiB: the list is copied each time", MaxOps, used)
	}
}

// Later patches must not show in what earlier ones returned, though all share memory.
func TestAChainOfPatchesLeavesEveryStageAsItWas(t *testing.T) {
	g := newGenerator(5)
	for range rounds / 10 {
		stage := g.object(3)
		stages := []any{stage}
		snapshots := []any{clone(stage)}
		for range 6 {
			if g.IntN(2) == 0 {
				stage = ApplyMerge(stage, g.merge(3))
			} else if next, err := ApplyOps(stage, g.ops(stage)); err == nil {
				stage = next
			}
			stages = append(stages, stage)
			snapshots = append(snapshots, clone(stage))
		}
		for i := range stages {
			if text(t, stages[i]) != text(t, snapshots[i]) {
				t.Fatalf("stage %d became %s, was %s", i, text(t, stages[i]), text(t, snapshots[i]))
			}
		}
	}
}
