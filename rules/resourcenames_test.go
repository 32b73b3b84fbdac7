package rules

import "testing"

// What is likely meant, and nothing that there is not.
func TestMeantResource(t *testing.T) {
	for name, want := range map[string]string{
		"deploy": "deployments", "Deployment": "deployments", "deploymentz": "deployments", "po": "pods", "podz": "pods", "hpa": "horizontalpodautoscalers",
		"networkpolicy": "networkpolicies", "ingress": "ingresses", "configmap": "configmaps", "sts": "statefulsets", "qqqqqqqqqqqq": "",
	} {
		got := meantResource(name)
		if want != "" {
			want = ` (did you mean "` + want + `"?)`
		}
		if got != want {
			t.Errorf("%s:%s, want%s", name, got, want)
		}
	}
}
