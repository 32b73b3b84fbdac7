package projection

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rectifier-dev/rectifier/internal/deployments"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// extraField is a field that no Go type has: number 1000, of one byte.
var extraField = []byte{0xc2, 0x3e, 1, 'x'}

// rewritten returns a Deployment in protobuf with other content in the message at a path
// of field numbers; none is the object itself.
func rewritten(t *testing.T, modify func([]byte) []byte, path ...uint64) []byte {
	t.Helper()
	e, err := readEnvelope(encode(t, runtime.ContentTypeProtobuf, deploymentsVersion, deployments.Make(7, deployments.Small)))
	if err != nil {
		t.Fatal(err)
	}
	var rewrite func(b []byte, path []uint64) []byte
	rewrite = func(b []byte, path []uint64) (out []byte) {
		if len(path) == 0 {
			return modify(b)
		}
		for i := 0; i < len(b); {
			number, wire, next := wireTag(b, i)
			content, _, end := wireContent(b, next, wire)
			if number == path[0] {
				content = rewrite(content, path[1:])
				out = append(out, b[i:next]...)
				for n := len(content); ; n >>= 7 {
					if n < 0x80 {
						out = append(out, byte(n))
						break
					}
					out = append(out, byte(n)|0x80)
				}
				out = append(out, content...)
			} else {
				out = append(out, b[i:end]...)
			}
			i = end
		}
		return out
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: string(e.apiVersion), Kind: string(e.kind)}, Raw: rewrite(e.raw, path)}
	b, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), b...)
}

// Numbers of fields: spec of a Deployment, template in it, spec in that, containers.
const specField, templateField, podSpecField, containersField = 2, 3, 2, 2

// A newer server has fields that the Go types lack. Where one of them may be wanted, the
// object is refused; where none can be, it does not matter.
func TestFieldsOfANewerServer(t *testing.T) {
	add := func(b []byte) []byte { return append(b[:len(b):len(b)], extraField...) }
	podSpec := []uint64{specField, templateField, podSpecField}
	for name, tt := range map[string]struct {
		path   []uint64
		fields Fields
		refuse bool
	}{
		"of the object, which is wanted whole": {nil, Whole(), true},
		"of the object":                        {nil, builtin(), false},
		"of the spec":                          {[]uint64{specField}, builtin(), false},
		"of the spec, whose keys are wanted":   {[]uint64{specField}, fieldsOf(fieldset.Keys("spec")), true},
		"below what is wanted":                 {podSpec, fieldsOf(fieldset.Of("spec", "template")), true},
		"beside what is wanted":                {podSpec, fieldsOf(fieldset.Of("spec", "template", "metadata")), false},
		"in a list that is wanted":             {append(podSpec, containersField), fieldsOf(fieldset.Of("spec", "template", "spec", "containers")), true},
		"in an element of which one is wanted": {append(podSpec, containersField), fieldsOf(fieldset.Of("spec", "template", "spec", "containers", fieldset.Elem, "image")), false},
		"a name that only the server can know": {podSpec, fieldsOf(fieldset.Of("spec", "template", "spec", "future")), true},
		"the same, elsewhere":                  {podSpec, fieldsOf(fieldset.Of("spec", "future")), false},
		"of the metadata, wanted whole":        {[]uint64{1}, fieldsOf(fieldset.Of("metadata")), true},
		"of the metadata":                      {[]uint64{1}, builtin(), false},
		"that there is a spec":                 {[]uint64{specField}, fieldsOf(fieldset.Presence("spec")), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(tt.fields)
			var refused error
			s, err := p.BuiltinSerializer(deploymentKind, func(err error) { refused = err })
			if err != nil {
				t.Fatal(err)
			}
			d, err := runtime.NewClientNegotiator(s, deploymentsVersion).Decoder(runtime.ContentTypeProtobuf, nil)
			if err != nil {
				t.Fatal(err)
			}
			o, _, err := d.Decode(rewritten(t, add, tt.path...), nil, nil)
			if errors.Is(err, errUnknown) != tt.refuse || errors.Is(refused, errUnknown) != tt.refuse || (o == nil) != tt.refuse {
				t.Errorf("%v, refused: %v", err, refused)
			}
			if err != nil {
				return
			}
			want := project(decodeWhole(t, deployments.JSON(7, deployments.Small)), tt.fields)
			if diff := compare(want, projected(t, p, o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is never left out, and yet is not there, an older server does not have in JSON
// either.
func TestFieldsThatAnOlderServerLacks(t *testing.T) {
	none := func([]byte) []byte { return nil }
	p := New(fieldsOf(fieldset.Of("spec", "template", "metadata"), fieldset.Of("spec", "template", "spec", "containers"), fieldset.Of("spec", "strategy")))
	got, _, err := wireDecoderOf(t, p, deploymentKind).Decode(rewritten(t, none, specField, templateField), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := project(decodeWhole(t, deployments.JSON(7, deployments.Small)), p.fields)
	want["spec"].(map[string]any)["template"] = map[string]any{}
	if diff := cmp.Diff(want, projected(t, p, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, _, err = wireDecoderOf(t, p, deploymentKind).Decode(rewritten(t, none, specField, templateField, podSpecField), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A list that is nil is not there in any case; JSON has null.
	if diff := cmp.Diff(map[string]any{"containers": nil}, projected(t, p, got).(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An encoding that no server writes is refused: what comes twice, above all, which the
// Go types merge.
func TestUnusualProtobuf(t *testing.T) {
	add := func(field ...byte) func([]byte) []byte {
		return func(b []byte) []byte { return append(b[:len(b):len(b)], field...) }
	}
	for name, data := range map[string][]byte{
		"metadata twice":     rewritten(t, add(0x0a, 0)),
		"spec twice":         rewritten(t, add(0x12, 0)),
		"a number twice":     rewritten(t, add(0x08, 1), specField),
		"a list once more":   rewritten(t, add(0x12, 0), specField, templateField, podSpecField),
		"a wrong wire type":  rewritten(t, func([]byte) []byte { return []byte{0x0d, 0, 0, 0, 0} }, specField),
		"a group":            rewritten(t, add(0x0b, 0x0c)),
		"number zero":        rewritten(t, add(0x02, 0)),
		"a length too large": rewritten(t, add(0x12, 0x7f)),
		"a name twice":       rewritten(t, add(0x0a, 1, 'x'), 1),
		"no prefix":          []byte("{}"),
		"nothing":            nil,
		"only the prefix":    []byte("k8s\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			if o, _, err := wireDecoderOf(t, New(everything()), deploymentKind).Decode(data, nil, nil); err == nil {
				t.Errorf("%v", o)
			}
		})
	}
}
