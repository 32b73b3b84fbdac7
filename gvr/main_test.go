package gvr

import (
	"os"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

func TestMain(m *testing.M) {
	// Read by client-go when the first informer is made: a test that modifies a cached object panics.
	if err := os.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "true"); err != nil {
		panic(err)
	}
	os.Exit(testcluster.Main(m))
}
