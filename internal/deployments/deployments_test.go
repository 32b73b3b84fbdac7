package deployments

import (
	"bytes"
	"testing"
)

func TestSizes(t *testing.T) {
	for size, want := range map[Size]int{Small: 3500, Large: 16000} {
		for _, i := range []int{0, 7, 19999} {
			if got := len(JSON(i, size)); got < want*95/100 || got > want*105/100 {
				t.Errorf("Deployment %d of size %d has %d bytes, not about %d", i, size, got, want)
			}
		}
	}
}

func TestDeterministicAndDistinct(t *testing.T) {
	seen := map[any]int{}
	for i := range 500 {
		if !bytes.Equal(JSON(i, Small), JSON(i, Small)) {
			t.Fatalf("Deployment %d is not the same twice", i)
		}
		d := Make(i, Small)
		for _, part := range []any{"name " + d.Name, d.UID, "label " + d.Labels["app.kubernetes.io/instance"], "owner " + d.Annotations["example.io/owner"], "version " + d.ResourceVersion} {
			if other, ok := seen[part]; ok {
				t.Fatalf("Deployments %d and %d have %v", i, other, part)
			}
			seen[part] = i
		}
	}
}
