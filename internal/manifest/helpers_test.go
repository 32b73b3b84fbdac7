package manifest

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// mergePatch applies an RFC 7386 patch to a decoded object.
func mergePatch(t testing.TB, object map[string]any, patch []byte) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch(text, patch)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(merged, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func parse(t testing.TB, text string) *File {
	t.Helper()
	f, err := Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return f
}

func output(t testing.TB, f *File) string {
	t.Helper()
	out, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// withoutNulls returns a copy of an object without null entries.
func withoutNulls(t testing.TB, object map[string]any) map[string]any {
	t.Helper()
	v, err := normalize(object)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}
