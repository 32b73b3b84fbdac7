package projection

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/internal/deployments"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

const thing = `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a","namespace":"b","uid":"` + thingUID + `","resourceVersion":"7","labels":{"x":"y"},"managedFields":[{}]},"spec":{"size":3,"list":[{"a":1,"b":2},{"a":3}],"text":"some","on":true,"share":0.5,"none":null}}`

const thingUID = "6f1f3f0e-1b5b-4ac6-9d50-2a5f2f0c8b11"

// fieldsOf is the union of sets.
func fieldsOf(sets ...*fieldset.Set) Fields { return Fields{Set: fieldset.Empty().Union(sets...)} }

// The text that is kept, of an object and of the same object as a whole one.
func TestKeptText(t *testing.T) {
	of, presence, keys := fieldset.Of, fieldset.Presence, fieldset.Keys
	for name, tt := range map[string]struct {
		fields Fields
		object string // thing if empty
		want   string
	}{
		"identity":            {fields: Fields{}, want: `{}`},
		"identity is asked":   {fields: fieldsOf(of("metadata", "name"), of("kind"), keys("metadata", "uid")), want: `{}`},
		"a field":             {fields: fieldsOf(of("spec", "size")), want: `{"spec":{"size":3}}`},
		"absent":              {fields: fieldsOf(of("spec", "other"), of("status")), want: `{"spec":{}}`},
		"elements":            {fields: fieldsOf(of("spec", "list", fieldset.Elem, "a")), want: `{"spec":{"list":[{"a":1},{"a":3}]}}`},
		"length":              {fields: fieldsOf(keys("spec", "list")), want: `{"spec":{"list":[null,null]}}`},
		"whole if list":       {fields: fieldsOf(fieldset.WholeIfList("spec", "list"), fieldset.WholeIfList("spec", "size")), want: `{"spec":{"list":[{"a":1,"b":2},{"a":3}],"size":0}}`},
		"presence of scalars": {fields: fieldsOf(presence("spec", "size"), presence("spec", "text"), presence("spec", "on"), presence("spec", "share"), presence("spec", "none")), want: `{"spec":{"none":null,"on":false,"share":0.0,"size":0,"text":""}}`},
		"presence of others":  {fields: fieldsOf(presence("spec"), presence("metadata", "labels"), presence("metadata", "other")), want: `{"metadata":{"labels":{}},"spec":{}}`},
		"presence of a list":  {fields: fieldsOf(presence("spec", "list")), want: `{"spec":{"list":[]}}`},
		"keys":                {fields: fieldsOf(keys("spec"), of("spec", "on")), want: `{"spec":{"list":null,"none":null,"on":true,"share":null,"size":null,"text":null}}`},
		"keys of the root":    {fields: fieldsOf(keys()), want: `{"spec":null}`},
		"managed fields":      {fields: Fields{Set: of("metadata", "managedFields"), ManagedFields: true}, want: `{"metadata":{"managedFields":[{}]}}`},
		"no managed fields":   {fields: fieldsOf(of("metadata", "managedFields")), want: `{}`},
		"deletion": {fields: Fields{}, want: `{"metadata":{"deletionTimestamp":"x"}}`,
			object: `{"apiVersion":"v1","kind":"T","metadata":{"name":"a","deletionTimestamp":"x"}}`},
		"white space": {fields: Whole(), want: `{"a":[1,{"b":" c "}],"d":{},"e":[]}`,
			object: "{\"apiVersion\" : \"v1\",\n\"kind\":\"T\",\"metadata\":{\"name\":\"a\" }, \"a\" : [ 1 ,\t{ \"b\" : \" c \" } ] , \"d\" : { } , \"e\":[ ]\r\n}\n"},
		"escaped key": {fields: fieldsOf(of("spec", "\u00e9\n"), of("spec", "ü")), want: `{"spec":{"é\n":1,"ü":2}}`,
			object: `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"é\n":1,"ü":2,"` + `\u0000":3}}`},
		"large integer is a float": {fields: fieldsOf(presence("a"), presence("b"), presence("c"), presence("d")), want: `{"a":0.0,"b":0,"c":0.0,"d":0}`,
			object: `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"a":9223372036854775808,"b":9223372036854775807,"c":1e3,"d":-0}`},
	} {
		t.Run(name, func(t *testing.T) {
			data := tt.object
			if data == "" {
				data = thing
			}
			p := New(tt.fields)
			if o := (objectDecoder{projector: p}).object([]byte(data)); o == nil {
				t.Error("unusual")
			} else if diff := cmp.Diff(parse(tt.want), parse(o.text())); diff != "" {
				t.Errorf("scanned %s (-want +got):\n%s", o.text(), diff)
			} else if len(o.text()) != len(tt.want) {
				t.Errorf("scanned %s, want %s", o.text(), tt.want)
			}
			o, err := Of(decodeWhole(t, []byte(data)), tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			if o.text() != tt.want {
				t.Errorf("reduced %s, want %s", o.text(), tt.want)
			}
		})
	}
}

// Whatever the scanner does not take is decoded as client-go does, or fails as there.
func TestUnusualObjects(t *testing.T) {
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	for name, data := range map[string]string{
		"no name":                 `{"apiVersion":"v1","kind":"T","metadata":{"uid":"u"},"spec":{"size":1}}`,
		"no metadata":             `{"apiVersion":"v1","kind":"T","spec":{"size":1}}`,
		"metadata is a list":      `{"apiVersion":"v1","kind":"T","metadata":[],"spec":{"size":1}}`,
		"name is a number":        `{"apiVersion":"v1","kind":"T","metadata":{"name":5},"spec":{"size":1}}`,
		"uid is null":             `{"apiVersion":"v1","kind":"T","metadata":{"name":"a","uid":null}}`,
		"namespace is empty":      `{"apiVersion":"v1","kind":"T","metadata":{"name":"a","namespace":""}}`,
		"name with escape":        `{"apiVersion":"v1","kind":"T","metadata":{"name":"\u0061"},"spec":{"size":1}}`,
		"name is not ASCII":       `{"apiVersion":"v1","kind":"T","metadata":{"name":"é"}}`,
		"name twice":              `{"apiVersion":"v1","kind":"T","metadata":{"name":"a","name":"b"}}`,
		"metadata twice":          `{"apiVersion":"v1","kind":"T","metadata":{"name":"a","labels":{}},"metadata":{"name":"b"}}`,
		"other metadata":          `{"apiVersion":"v1","kind":"T","metadata":{"name":"a","labels":{}},"metadata":{"labels":{"x":"y"}}}`,
		"kind twice":              `{"apiVersion":"v1","kind":"T","kind":"U","metadata":{"name":"a"}}`,
		"kind of another case":    `{"apiVersion":"v1","kind":"T","KIND":"U","metadata":{"name":"a"}}`,
		"kind of a type":          `{"apiVersion":"v1","kind":"DeleteOptions","metadata":{"name":"a"}}`,
		"table":                   `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"name":"a"},"rows":[]}`,
		"escaped key of the root": `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"sp\u0065c":{"size":1}}`,
		"too deep":                `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size":` + deep + `}}`,
		"too large a number":      `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size":1e999}}`,
		"no kind":                 `{"apiVersion":"v1","metadata":{"name":"a"}}`,
		"no apiVersion":           `{"kind":"T","metadata":{"name":"a"}}`,
		"malformed apiVersion":    `{"apiVersion":"a/b/c","kind":"T","metadata":{"name":"a"}}`,
		"no version":              `{"apiVersion":"a/","kind":"T","metadata":{"name":"a"}}`,
		"malformed string":        `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size":"\x"}}`,
		"malformed number":        `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size":01}}`,
		"cut off":                 `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size":1}`,
		"too long":                `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size":1}}}`,
		"comma at the end":        `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size":1,}}`,
		"no colon":                `{"apiVersion":"v1","kind":"T","metadata":{"name":"a"},"spec":{"size" 1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := New(fieldsOf(fieldset.Of("spec", "size")))
			if o := (objectDecoder{projector: p}).object([]byte(data)); o != nil {
				t.Errorf("scanned: %s", o.data)
			}
			want, wantKind, wantErr := decoder(t, standardSerializer).Decode([]byte(data), nil, nil)
			got, gotKind, gotErr := decoder(t, p.Serializer()).Decode([]byte(data), nil, nil)
			if diff := compare([]any{want, wantKind, message(wantErr)}, []any{got, gotKind, message(gotErr)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			whole, ok := want.(*unstructured.Unstructured)
			if !ok {
				return
			}
			o, err := p.Transform(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := compare(project(whole, p.Fields()), o.(*Object).Unstructured().Object); diff != "" {
				t.Errorf("reduced (-want +got):\n%s", diff)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEvents(t *testing.T) {
	const bookmark = `{"kind":"Thing","apiVersion":"v1","metadata":{"resourceVersion":"9","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}`
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`
	stream := string(eventOf("ADDED", []byte(thing))) + "\n" + // an empty line
		string(eventOf("BOOKMARK", []byte(bookmark))) +
		`{"type":"MODIFIED","object":` + thing + `,"more":{"a":1}}` + "\r\n" +
		string(eventOf("DELETED", []byte(thing))) +
		string(eventOf("ERROR", []byte(status))) +
		"{\n  \"object\": " + thing + ",\n  \"type\": \"ADDED\"\n}\n" + // from here on, another framer
		strings.TrimSuffix(string(eventOf("ADDED", []byte(thing))), "\n")
	want := []watch.EventType{watch.Added, watch.Bookmark, watch.Modified, watch.Deleted, watch.Error, watch.Added, watch.Added}

	p := New(fieldsOf(fieldset.Of("spec", "size")))
	for _, sizes := range [][]byte{nil, {0}, {1}, {9, 0, 200}} {
		d := watchDecoder(t, p.Serializer(), &pieces{data: []byte(stream), sizes: sizes})
		for i, wantType := range want {
			gotType, object, err := d.Decode()
			if err != nil || gotType != wantType {
				t.Fatalf("event %d: %q, %v", i, gotType, err)
			}
			switch gotType {
			case watch.Error:
				if got, ok := object.(*metav1.Status); !ok || got.Code != 410 || got.Reason != metav1.StatusReasonExpired {
					t.Errorf("status: %#v", object)
				}
			case watch.Bookmark:
				if u := object.(*unstructured.Unstructured); u.GetResourceVersion() != "9" || u.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
					t.Errorf("bookmark: %v", u)
				}
			default:
				checkEnvelope(t, p, object)
			}
		}
		if _, _, err := d.Decode(); err == nil || err.Error() != "EOF" {
			t.Errorf("at the end: %v", err)
		}
	}
}

// checkEnvelope holds what a reflector wants of thing, and what it is then.
func checkEnvelope(t *testing.T, p *Projector, object runtime.Object) {
	t.Helper()
	u := object.(*unstructured.Unstructured)
	got := []string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), u.GetResourceVersion()}
	if diff := cmp.Diff([]string{"v1", "Thing", "b", "a", "7"}, got); diff != "" {
		t.Errorf("envelope (-want +got):\n%s", diff)
	}
	o, err := p.Transform(u)
	if err != nil {
		t.Fatal(err)
	}
	want := project(decodeWhole(t, []byte(thing)), p.Fields())
	if diff := cmp.Diff(want, o.(*Object).Unstructured().Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestCutOffStream(t *testing.T) {
	event := eventOf("ADDED", []byte(thing))
	for _, end := range []int{1, 20, len(event) / 2, len(event) - 2} {
		d := watchDecoder(t, New(Whole()).Serializer(), bytes.NewReader(append(bytes.Clone(event), event[:end]...)))
		if _, _, err := d.Decode(); err != nil {
			t.Fatal(err)
		}
		if _, o, err := d.Decode(); err == nil || err.Error() != "unexpected EOF" {
			t.Errorf("cut off at %d: %v, %v", end, o, err)
		}
	}
}

func TestLists(t *testing.T) {
	typeless := strings.Replace(thing, `"apiVersion":"v1","kind":"Thing",`, "", 1)
	const nameless = `{"spec":{"size":4}}`
	for name, data := range map[string]string{
		"typed":           `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":12},"items":[` + typeless + `,` + typeless + `]}`,
		"custom":          `{"apiVersion":"v1","items":[` + thing + `],"kind":"ThingList","metadata":{"resourceVersion":"9"}}`,
		"kind comes late": `{"apiVersion":"v1","items":[` + typeless + `],"kind":"ThingList"}`,
		"unusual item":    `{"kind":"ThingList","apiVersion":"v1","items":[` + typeless + `,` + nameless + `,` + thing + `]}`,
		"empty":           `{"kind":"ThingList","apiVersion":"v1","metadata":{},"items":[]}`,
		"null":            `{"kind":"ThingList","apiVersion":"v1","items":null}`,
		"items twice":     `{"kind":"ThingList","apiVersion":"v1","items":[],"items":[` + thing + `]}`,
		"null item":       `{"kind":"ThingList","apiVersion":"v1","items":[null]}`,
		"white space":     "{ \"kind\" : \"ThingList\" , \"apiVersion\":\"v1\",\"items\" : [ " + thing + " , " + typeless + " ] }\n",
		"kind twice":      `{"kind":"ThingList","kind":"OtherList","apiVersion":"v1","items":[` + typeless + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := New(fieldsOf(fieldset.Of("spec", "size")))
			var want, got unstructured.UnstructuredList
			if _, _, err := decoder(t, standardSerializer).Decode([]byte(data), nil, &want); err != nil {
				t.Fatal(err)
			}
			if _, _, err := decoder(t, p.Serializer()).Decode([]byte(data), nil, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(projectAll(t, p, &want), projected(t, p, &got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.GetResourceVersion() != want.GetResourceVersion() || got.GetContinue() != want.GetContinue() ||
				!cmp.Equal(got.GetRemainingItemCount(), want.GetRemainingItemCount()) {
				t.Errorf("metadata of the list: %v instead of %v", got.Object, want.Object)
			}
			if name == "typed" || name == "custom" || name == "white space" || name == "unusual item" {
				if _, ok := got.Items[0].Object[envelopeKey]; !ok {
					t.Error("the first item was not scanned")
				}
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	p := New(fieldsOf(fieldset.Of("spec", "size")))
	answer := func(data string) map[string]any {
		t.Helper()
		var u unstructured.Unstructured
		if _, _, err := decoder(t, p.AnswerSerializer()).Decode([]byte(data), nil, &u); err != nil {
			t.Fatal(err)
		}
		return u.Object
	}
	if diff := cmp.Diff(project(decodeWhole(t, []byte(thing)), p.Fields()), answer(thing)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	scale := map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": int64(3)},
		"metadata": map[string]any{"name": "a", "resourceVersion": "7", "managedFields": []any{map[string]any{"time": "2026-10-01T10:11:12Z"}}},
	}
	if diff := cmp.Diff(scale, answer(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","resourceVersion":"7",`+
		`"managedFields":[{"manager":"m","time":"2026-10-01T10:11:12Z"}]},"spec":{"replicas":3},"status":{"replicas":2}}`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, data := range []string{
		`{"apiVersion":"extensions/v1beta1","kind":"Scale","metadata":{"name":"a","resourceVersion":"7"},"spec":{"replicas":3},"status":{"replicas":2}}`,
		`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Success","details":{"name":"a"}}`,
	} {
		var want unstructured.Unstructured
		if _, _, err := decoder(t, standardSerializer).Decode([]byte(data), nil, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Object, answer(data)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestEncoding(t *testing.T) {
	want, err := runtime.NewClientNegotiator(standardSerializer, deploymentsVersion).Encoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []runtime.Object{decodeWhole(t, []byte(thing)), &metav1.DeleteOptions{GracePeriodSeconds: new(int64(3))}} {
		for _, s := range []runtime.NegotiatedSerializer{New(builtin()).Serializer(), New(builtin()).AnswerSerializer()} {
			got, err := runtime.NewClientNegotiator(s, deploymentsVersion).Encoder(runtime.ContentTypeJSON, nil)
			if err != nil {
				t.Fatal(err)
			}
			var wanted, encoded bytes.Buffer
			if err := want.Encode(object, &wanted); err != nil {
				t.Fatal(err)
			}
			if err := got.Encode(object, &encoded); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wanted.String(), encoded.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestTransformIsIdempotent(t *testing.T) {
	p := New(builtin())
	decoded, _, err := decoder(t, p.Serializer()).Decode(deployments.JSON(1, deployments.Small), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []any{decoded, decodeWhole(t, deployments.JSON(1, deployments.Small))} {
		once, err := p.Transform(first)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := p.Transform(once); err != nil || twice != once {
			t.Errorf("%v instead of %v, %v", twice, once, err)
		}
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "a/b"}
	if got, err := p.Transform(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := p.Transform(&metav1.Status{}); err == nil {
		t.Errorf("%v", got)
	}
}

func TestSame(t *testing.T) {
	p := New(fieldsOf(fieldset.Of("spec", "size"), fieldset.Presence("spec", "list")))
	o := decode(t, p, []byte(thing))
	for name, tt := range map[string]struct {
		old, new string
		want     bool
	}{
		"nothing":          {"", "", true},
		"resourceVersion":  {`"resourceVersion":"7"`, `"resourceVersion":"12345"`, true},
		"not kept":         {`"text":"some"`, `"text":"other"`, true},
		"only presence":    {`[{"a":1,"b":2},{"a":3}]`, `[]`, true},
		"kept":             {`"size":3`, `"size":4`, false},
		"kind":             {`"list":[{"a":1,"b":2},{"a":3}]`, `"list":"x"`, false},
		"uid":              {thingUID, strings.Replace(thingUID, "6", "7", 1), false},
		"uid is no UUID":   {thingUID, "some", false},
		"being deleted":    {`"labels":`, `"deletionTimestamp":"x","labels":`, false},
		"another version":  {`"v1"`, `"v2"`, false},
		"upper-case UUID":  {thingUID, strings.ToUpper(thingUID), false},
		"white space only": {`"size":3`, `"size" : 3 `, true},
	} {
		if got := o.Same(decode(t, p, []byte(strings.Replace(thing, tt.old, tt.new, 1)))); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, uid := range []string{thingUID, "", "some", strings.ToUpper(thingUID), thingUID[:35] + "g", "00000000-0000-0000-0000-000000000000", strings.Replace(thingUID, "-", "0", 1)} {
		data := strings.Replace(thing, thingUID, uid, 1)
		if uid == "" {
			data = strings.Replace(thing, `"uid":"`+thingUID+`",`, "", 1)
		}
		o := decode(t, New(Fields{}), []byte(data))
		got := []string{o.Namespace(), o.Name(), string(o.UID()), o.ResourceVersion()}
		if diff := cmp.Diff([]string{"b", "a", uid, "7"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		m := o.GetObjectMeta()
		if diff := cmp.Diff(got, []string{m.GetNamespace(), m.GetName(), string(m.GetUID()), m.GetResourceVersion()}); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(project(decodeWhole(t, []byte(data)), Fields{}), o.Unstructured().Object); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestNumbersOfWholeObjects(t *testing.T) {
	whole := map[string]any{"apiVersion": "v1", "kind": "T", "metadata": map[string]any{"name": "a"},
		"a": []any{1.0, -0.5, 1e21, 1e-9, 1e20, int64(5), int64(-1 << 63), 123456789012345678.0}}
	o, err := Of(&unstructured.Unstructured{Object: whole}, Whole())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, o.Unstructured().Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
