package projection

import (
	"fmt"
	"math/rand"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler fills values of Go types with what is usual and what is not: zero values, nil,
// empty and full lists and maps, strings that need escapes.
type filler struct{ *rand.Rand }

// strings are texts of all kinds. The server may well have invalid UTF-8.
var fillStrings = []string{"", "", "a", "nginx:1.27", "example.io/x", "two\nlines\t\"quoted\" \\ <b>&", "é😀", "\u2028", "\x00\x01\x1f\x7f", "bad\xff\xc0utf8", "null", "5"}

var fillNumbers = []int64{0, 0, 1, 3, -1, 127, 128, 1 << 20, -(1 << 31), 1<<31 - 1, 1<<63 - 1, -1 << 63}

func (f filler) object(t reflect.Type, name string) runtime.Object {
	v := reflect.New(t)
	f.fill(v.Elem(), 0)
	meta := v.Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta)
	meta.Name, meta.UID, meta.ResourceVersion = name, thingUID, "7"
	if meta.Namespace != "" {
		meta.Namespace = "b"
	}
	return v.Interface().(runtime.Object)
}

func (f filler) fill(v reflect.Value, depth int) {
	if f.special(v.Addr().Interface()) || f.Intn(12) == 0 && depth > 1 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fillStrings[f.Intn(len(fillStrings))])
	case reflect.Bool:
		v.SetBool(f.Intn(2) == 0)
	case reflect.Int32:
		v.SetInt(int64(int32(fillNumbers[f.Intn(len(fillNumbers))])))
	case reflect.Int64:
		v.SetInt(fillNumbers[f.Intn(len(fillNumbers))])
	case reflect.Uint8:
		v.SetUint(uint64(f.Intn(256)))
	case reflect.Pointer:
		if f.Intn(depth/3+2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if n := f.length(depth); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				f.fill(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if n := f.length(depth); n >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				f.fill(key, depth+1)
				f.fill(value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Type != typeMetaType {
				f.fill(v.Field(i), depth+1)
			}
		}
	default:
		panic(fmt.Sprintf("a %s", v.Type()))
	}
}

// length is that of a list or map; -1 for nil.
func (f filler) length(depth int) int {
	if f.Intn(depth/3+2) > 0 {
		return f.Intn(2) - 1
	}
	return 1 + f.Intn(3)
}

// special fills a value of a type with an encoding of its own.
func (f filler) special(p any) bool {
	times := []time.Time{{}, time.Unix(0, 0), time.Unix(1_700_000_000, 123_456_789), time.Date(1, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(9998, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))}
	raw := []string{`{}`, `{"a":{"b":[1,2.50,"x",null]}}`, ` { "a" : 1e3 } `, `[]`, `null`, `"x"`}
	switch v := p.(type) {
	case *metav1.Time:
		v.Time = times[f.Intn(len(times))]
	case *metav1.MicroTime:
		v.Time = times[f.Intn(len(times))]
	case *resource.Quantity:
		*v = resource.MustParse([]string{"0", "1", "500m", "1.5Gi", "1e3", "-2", "100n", "12345678901234567890", "0.5"}[f.Intn(9)])
	case *intstr.IntOrString:
		*v = []intstr.IntOrString{{}, intstr.FromInt32(-3), intstr.FromString("25%"), intstr.FromString("")}[f.Intn(4)]
	case *metav1.FieldsV1:
		if f.Intn(4) > 0 {
			v.SetRawBytes([]byte(raw[f.Intn(len(raw))]))
		}
	case *runtime.RawExtension:
		if f.Intn(4) > 0 {
			v.Raw = []byte(raw[f.Intn(len(raw))])
		}
	default:
		return false
	}
	return true
}
