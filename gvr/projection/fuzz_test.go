package projection

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rectifier-dev/rectifier/internal/deployments"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// unusualObjects are seeds: forms that a server seldom or never writes.
func unusualObjects() []string {
	object := func(rest string) string {
		return `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"}` + rest + `}`
	}
	return []string{
		string(deployments.JSON(1, deployments.Small)),
		object(``), object(`,"a":{"a":1,"a":{"b":2}}`), object(`,"a":1e999`), object(`,"a":1E2,"b":-0,"c":-0.0,"d":9223372036854775808,"e":-9223372036854775808,"f":9223372036854775807`),
		object(`,"a":[1,"x",null,true,[[]],{"a":[{}]}],"b":[]`), object(`,"":{"":""}`), object(",\"a\":\"\xff\xc0\\u00e9\xe2\x82\"" + `,"b":"\ud800","c":"\ud83d\ude00","d":"\ud83d\ud83d\ude00x","e":"\u0000\"\\\/\b\f\n\r\t"`),
		object(",\"\\u0061\":1,\"\xff\":{\"a\":1},\"é\":2"), object(` , "a" : { "b" : [ 1 , 2 ] , "c" : "x y" } ` + "\n\t\r"), object(`,"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600)),
		object(`,"metadata":{"name":"c"}`), object(`,"kind":"Other"`), object(`,"KIND":"Status"`), object(`,"Kind":1`), object(`,"apiVersion":null`), object(`,"a":"tab	in it"`), object(`,"a":tru`), object(`,"a":01`), object(`,"a":1.`), object(`,"a":1,`), object(`}`),
		`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","message":"m","reason":"Expired","code":410}`,
		`{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"name":"x","resourceVersion":"1"},"rows":[]}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"5","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}`,
		`{"apiVersion":"a/b/c","kind":"Pod","metadata":{"name":"x"}}`, `{"kind":"Pod","metadata":{"name":"x"}}`, `{"apiVersion":"v1","kind":"P","metadata":{"name":5,"uid":null,"namespace":""}}`,
		`{"apiVersion":"v1","kind":"P","metadata":{"name":"x","managedFields":[{"manager":"m"}],"labels":null,"annotations":{"a":"b"}}}`, `{"apiVersion":"v1","kind":"P","metadata":[]}`, `[]`, `null`, ``, `5`, `{}`,
		`{"apiVersion":"v1","kind":"ThingList","metadata":{"resourceVersion":"1","continue":"c","remainingItemCount":3},"items":[{"metadata":{"name":"a"}},` + object(``) + `,{"a":1}]}`,
		`{"items":[{"metadata":{"name":"a"}}],"kind":"L","apiVersion":"v1"}`, `{"kind":"L","apiVersion":"v1","items":null}`, `{"kind":"L","apiVersion":"v1","items":[null]}`, `{"kind":"L","apiVersion":"v1","items":[],"items":[{}]}`,
	}
}

// fieldNames are the names in fuzzed sets, where the objects have them.
var fieldNames = []string{"a", "b", "", "metadata", "labels", "annotations", "spec", "replicas", "managedFields", "é", "�", "name", "c", "template", fieldset.Elem, fieldset.Elem}

// fuzzedFields makes fields of bytes: the upper half of each says what to do, the lower
// half with which name.
func fuzzedFields(data []byte) Fields {
	root := fieldset.NewBuilder()
	at := root
	fields := Fields{}
	for _, c := range data {
		name := fieldNames[c&0xf]
		switch c >> 4 {
		case 0:
			at.Whole()
		case 1:
			at.Keys()
		case 2:
			at.Lists()
		case 3, 4:
			at = at.Items()
		case 5, 6:
			at = at.Values()
		case 7:
			fields.ManagedFields = true
		case 8, 9, 10:
			at = root
		default:
			at = at.Field(name)
		}
	}
	fields.Set = root.Set()
	return fields
}

func FuzzDecode(f *testing.F) {
	for i, object := range unusualObjects() {
		f.Add([]byte(object), []byte{})
		f.Add([]byte(object), []byte{0})
		f.Add([]byte(object), []byte{0, 0x70})
		f.Add([]byte(object), []byte{byte(i), 0xb3, 0xb4, 0x10, 0x80, 0xb0, 0x50, 0x31, 0x80, 0xb1, 0x20, 0x80, 0xb9, 0x80, 0x10})
	}
	f.Add([]byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"replicas":3},"status":{"replicas":2}}`), []byte{})
	f.Fuzz(func(t *testing.T, data, set []byte) {
		p := New(fuzzedFields(set))
		for _, into := range []func() runtime.Object{
			func() runtime.Object { return nil },
			func() runtime.Object { return &unstructured.Unstructured{} },
			func() runtime.Object { return &unstructured.UnstructuredList{} },
		} {
			input := bytes.Clone(data)
			want, wantKind, wantErr := decoder(t, standardSerializer).Decode(data, nil, into())
			got, gotKind, gotErr := decoder(t, p.Serializer()).Decode(input, nil, into())
			answer, answerKind, answerErr := decoder(t, p.AnswerSerializer()).Decode(input, nil, into())
			clear(input) // nothing may share memory with it
			if wantErr != nil {
				// What is skipped is not checked. What is kept can be parsed nevertheless.
				if all := p.plan.whole && p.fields.ManagedFields; all && gotErr == nil && !restored(data) {
					t.Fatalf("no error, but %v", wantErr)
				}
				if gotErr == nil {
					projected(t, p, got)
				}
				continue
			}
			if gotErr != nil || answerErr != nil {
				t.Fatalf("%v, %v", gotErr, answerErr)
			}
			if diff := cmp.Diff([]any{wantKind, wantKind}, []any{gotKind, answerKind}); diff != "" {
				t.Fatalf("kinds (-want +got):\n%s", diff)
			}
			if diff := compare(projectAll(t, p, want), projected(t, p, got)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", p.fields.Set, diff)
			}
			if u, ok := answer.(*unstructured.Unstructured); ok && into() != nil {
				fields := p.fields
				if *wantKind == scaleKind {
					fields = scales.fields
				}
				// A whole answer is as good as a projected one.
				if diff := compare(project(want.(*unstructured.Unstructured), fields), project(u, fields)); diff != "" {
					t.Fatalf("answer, %s (-want +got):\n%s", fields.Set, diff)
				}
			}
		}
	})
}

// restored reports whether data is what follows "object": in an event with more than
// an object: that is taken for one where an event is expected.
func restored(data []byte) bool { return restOfEvent(data) != nil }

// compare is cmp.Diff, but fast where there is no difference.
func compare(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// projected returns what is kept of what was decoded: maps for an object, a list of
// them for a list, or else the object.
func projected(t *testing.T, p *Projector, decoded runtime.Object) any {
	one := func(u *unstructured.Unstructured) any {
		o, err := p.Transform(u)
		if err != nil {
			t.Fatal(err)
		}
		if text := o.(*Object).text(); !json.Valid([]byte(text)) {
			t.Fatalf("its text is no JSON: %q", text)
		}
		object := o.(*Object).Unstructured()
		// What is projected of maps is the same as what is scanned.
		again, err := p.Transform(object.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if diff := compare(object.Object, again.(*Object).Unstructured().Object); diff != "" {
			t.Fatalf("of the object as maps (-want +got):\n%s", diff)
		}
		return object.Object
	}
	switch decoded := decoded.(type) {
	case *unstructured.Unstructured:
		return one(decoded)
	case *unstructured.UnstructuredList:
		all := []any{decoded.Object}
		for i := range decoded.Items {
			all = append(all, one(&decoded.Items[i]))
		}
		return all
	}
	return decoded
}

// projectAll is projected for what client-go has decoded, by the law.
func projectAll(t *testing.T, p *Projector, decoded runtime.Object) any {
	switch decoded := decoded.(type) {
	case *unstructured.Unstructured:
		return project(decoded, p.fields)
	case *unstructured.UnstructuredList:
		all := []any{decoded.Object}
		for i := range decoded.Items {
			all = append(all, project(&decoded.Items[i], p.fields))
		}
		return all
	}
	return decoded
}

// pieces is a reader that returns pieces of given sizes, again and again.
type pieces struct {
	data, sizes []byte
	next        int
}

func (p *pieces) Read(out []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	size := len(p.data)
	if len(p.sizes) > 0 {
		size = int(p.sizes[p.next%len(p.sizes)])*16 + 1
		p.next++
	}
	n := copy(out, p.data[:min(size, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}

// FuzzStream holds that a stream of events is understood as client-go does, however it
// is divided. A stream with more than one event on a line, or one on several, that yet
// looks like the server's may end with an error instead.
func FuzzStream(f *testing.F) {
	objects := unusualObjects()
	for i, object := range objects {
		other := objects[(i+7)%len(objects)]
		f.Add([]byte(string(eventOf("ADDED", []byte(object)))+string(eventOf("ERROR", []byte(other)))), []byte{byte(i), 3, 200})
		f.Add([]byte(`{"object":`+object+`,"type":"DELETED"}`), []byte{0})
		f.Add([]byte(`{"type":"BOOKMARK","object":`+object+`,"more":[]}`+"\n\n"+string(eventOf("BOOKMARK", []byte(object)))), []byte{1})
		f.Add([]byte("{\n\"type\":\"ADDED\",\n\"object\":"+object+"}\r\n"+string(eventOf("DELETED", []byte(object)))), []byte{7})
	}
	f.Fuzz(func(t *testing.T, stream, sizes []byte) {
		p := New(everything())
		standard := watchDecoder(t, standardSerializer, &pieces{data: stream, sizes: sizes})
		ours := watchDecoder(t, p.Serializer(), &pieces{data: stream, sizes: sizes})
		for range len(stream) + 1 {
			wantType, want, wantErr := standard.Decode()
			gotType, got, gotErr := ours.Decode()
			if gotErr != nil && (wantErr != nil || unusualLayout(stream)) {
				return
			}
			if wantErr != nil || gotErr != nil {
				t.Fatalf("client-go: %v %v, ours: %v %v", wantErr, want, gotErr, got)
			}
			if wantType != gotType {
				t.Fatalf("%s instead of %s", gotType, wantType)
			}
			if diff := compare(projectAll(t, p, want), projected(t, p, got)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

// unusualLayout reports whether a line of a stream begins and ends as an event of the
// server does, and yet is none: it is no JSON value, has a type twice, or apiVersion
// or kind.
func unusualLayout(stream []byte) bool {
	for line := range bytes.Lines(stream) {
		if !looksLikeEvent(line) {
			continue
		}
		if !json.Valid(line) {
			return true
		}
		types := 0
		for _, key := range topLevelKeys(line) {
			if looksLikeType([]byte(key)) {
				return true
			}
			if key == "type" {
				types++
			}
		}
		if types != 1 {
			return true
		}
	}
	return false
}

// topLevelKeys returns the keys of a JSON object in their order.
func topLevelKeys(object []byte) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return keys
		}
		keys = append(keys, key.(string))
	}
	return keys
}
