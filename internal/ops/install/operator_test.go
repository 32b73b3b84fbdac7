package install

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// The Prometheus operator's module holds its CRDs, with their whole schema.
const (
	operator    = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	operatorSum = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
)

// operatorCRDs are the files of those that the chart makes objects of.
func operatorCRDs(t *testing.T) []string {
	t.Helper()
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal([]byte(output(t, t.TempDir(), "go", "mod", "download", "-json", operator)), &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != operatorSum {
		t.Fatalf("%s has the sum %s, not %s", operator, module.Sum, operatorSum)
	}
	folder := filepath.Join(module.Dir, "example", "prometheus-operator-crd")
	return []string{filepath.Join(folder, "monitoring.coreos.com_servicemonitors.yaml"), filepath.Join(folder, "monitoring.coreos.com_prometheusrules.yaml")}
}
