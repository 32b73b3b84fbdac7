package patch

import (
	"errors"
	"testing"
)

func TestCheckPath(t *testing.T) { // PAT-10
	for s, want := range map[string]bool{
		"/apiVersion": true, "/kind": true, "/kind/x": true, "/metadata": true,
		"/metadata/name": true, "/metadata/namespace": true, "/metadata/uid": true, "/metadata/resourceVersion": true,
		"/metadata/generation": true, "/metadata/creationTimestamp": true, "/metadata/deletionTimestamp": true,
		"/metadata/managedFields": true, "/metadata/managedFields/0": true, "/metadata/selfLink": true,

		"/metadata/annotations": false, "/metadata/labels/name": false, "/metadata/finalizers/0": false, "/metadata/ownerReferences": false,
		"/spec/template/metadata": false, "/spec/template/metadata/name": false, "/spec/kind": false, "/data/apiVersion": false, "/kinds": false,
	} {
		p, err := ParsePointer(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := CheckPath(p); (got != nil) != want {
			t.Errorf("%s: %v", s, got)
		}
	}
	if CheckPath(nil) == nil {
		t.Error("the whole document is free")
	}
}

func TestCheckOps(t *testing.T) {
	for name, tc := range map[string]struct{ op, member string }{
		"add":                   {`{"op":"add","path":"/kind","value":1}`, "path"},
		"replace of metadata":   {`{"op":"replace","path":"/metadata","value":{}}`, "path"},
		"remove":                {`{"op":"remove","path":"/metadata/uid"}`, "path"},
		"move to":               {`{"op":"move","from":"/spec/x","path":"/metadata/name"}`, "path"},
		"move from":             {`{"op":"move","from":"/metadata/name","path":"/spec/x"}`, "from"},
		"copy to":               {`{"op":"copy","from":"/spec/x","path":"/metadata/name"}`, "path"},
		"copy from is reading":  {`{"op":"copy","from":"/metadata/name","path":"/spec/x"}`, ""},
		"test is reading":       {`{"op":"test","path":"/metadata/name","value":"a"}`, ""},
		"an annotation is free": {`{"op":"add","path":"/metadata/annotations/a","value":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckOps(ops(t, `[{"op":"remove","path":"/spec/y"},`+tc.op+`]`))
			var oe *OpError
			var pe *ProtectedError
			switch {
			case tc.member == "" && err != nil:
				t.Errorf("got %v", err)
			case tc.member != "" && (!errors.As(err, &oe) || !errors.As(err, &pe) || oe.Index != 1 || oe.Member != tc.member):
				t.Errorf("got %v, want a ProtectedError in [1].%s", err, tc.member)
			}
		})
	}
}

func TestCheckMerge(t *testing.T) {
	for merge, want := range map[string]string{
		`{"spec":{"kind":"x"},"metadata":{"labels":{"name":"x"},"annotations":null}}`: "",
		`{}`:                                       "",
		`{"metadata":{}}`:                          "",
		`{"apiVersion":"v1"}`:                      "/apiVersion",
		`{"kind":null}`:                            "/kind",
		`{"metadata":null}`:                        "/metadata",
		`{"metadata":[]}`:                          "/metadata",
		`{"metadata":{"uid":null,"name":"x"}}`:     "/metadata/name",
		`{"metadata":{"resourceVersion":"1"}}`:     "/metadata/resourceVersion",
		`{"metadata":{"deletionTimestamp":"now"}}`: "/metadata/deletionTimestamp",
	} {
		err := CheckMerge(object(t, merge))
		if want == "" && err != nil || want != "" && !protects(want)(err) {
			t.Errorf("%s: got %v, want %s", merge, err, want)
		}
	}
}

func TestCheckMergeSeesComposedPatches(t *testing.T) {
	composed := ComposeMerge(object(t, `{"metadata":{"annotations":null}}`), object(t, `{"metadata":{"annotations":{"a":"1"}}}`))
	if err := CheckMerge(composed); err != nil {
		t.Errorf("got %v", err)
	}
	if err := CheckMerge(map[string]any{"metadata": ensuredMap{"uid": nil}}); !protects("/metadata/uid")(err) {
		t.Errorf("got %v", err)
	}
	if err := CheckMerge(map[string]any{"metadata": wholeMap{}}); !protects("/metadata")(err) {
		t.Errorf("got %v", err)
	}
}

func TestCheckIndexes(t *testing.T) {
	for s, offset := range map[string]int{
		"/spec/containers/-1/image": 17,
		"/spec/containers/01":       17,
		"/a~1b/+1":                  6,
		"/spec/containers/0/x":      -1,
		"/spec/containers/-":        -1,
		"/spec/containers/10/ports": -1,
		"/metadata/annotations/01":  -1,
		"/data/-1":                  -1,
		"/spec/01x":                 -1,
		"/spec/1e5/--":              -1,
	} {
		p, err := ParsePointer(s)
		if err != nil {
			t.Fatal(err)
		}
		var pe *PointerError
		err = CheckIndexes(p)
		if (err != nil) != (offset >= 0) || err != nil && (!errors.As(err, &pe) || pe.Offset != offset) {
			t.Errorf("%s: got %v, want offset %d", s, err, offset)
		}
	}
}

func TestSuspectRawSlash(t *testing.T) { // PAT-03
	for s, want := range map[string]string{
		"/metadata/annotations/example.io/team":                           "/metadata/annotations/example.io~1team",
		"/metadata/labels/app.kubernetes.io/name":                         "/metadata/labels/app.kubernetes.io~1name",
		"/metadata/annotations/a~0b/c":                                    "/metadata/annotations/a~0b~1c",
		"/spec/template/metadata/annotations/example.io/team":             "/spec/template/metadata/annotations/example.io~1team",
		"/spec/selector/matchLabels/example.io/team":                      "/spec/selector/matchLabels/example.io~1team",
		"/spec/template/spec/nodeSelector/kubernetes.io/os":               "/spec/template/spec/nodeSelector/kubernetes.io~1os",
		"/spec/selector/app.kubernetes.io/name":                           "/spec/selector/app.kubernetes.io~1name",
		"/metadata/annotations/example.io/a/b":                            "/metadata/annotations/example.io~1a~1b",
		"/metadata/annotations/example.io~1team":                          "",
		"/metadata/annotations":                                           "",
		"/metadata/labels/x":                                              "",
		"/spec/selector/matchExpressions/0/key":                           "",
		"/spec/nodeSelector/matchLabels/x":                                "",
		"/spec/labels/a/b":                                                "",
		"/spec/versions/0/properties/metadata/properties/annotations/x/y": "",
		"/annotations/a/b":                                                "",
	} {
		p, err := ParsePointer(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := SuspectRawSlash(p); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", s, got, ok, want)
		}
	}
}
