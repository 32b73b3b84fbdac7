package projection

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestBuiltinKindsAreStable(t *testing.T) {
	for gvr, want := range map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "configmaps"}:                                                "ConfigMap",
		{Version: "v1", Resource: "endpoints"}:                                                 "Endpoints",
		{Group: "apps", Version: "v1", Resource: "deployments"}:                                "Deployment",
		{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}:            "HorizontalPodAutoscaler",
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}:               "NetworkPolicy",
		{Group: "apps", Version: "v1beta2", Resource: "deployments"}:                           "",
		{Group: "resource.k8s.io", Version: "v1alpha3", Resource: "devicetaintrules"}:          "",
		{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "podcertificaterequests"}: "",
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}:  "",
		{Group: "example.com", Version: "v1", Resource: "deployments"}:                         "",
	} {
		gvk, ok := BuiltinKind(gvr)
		if gvk.Kind != want || ok != (want != "") {
			t.Errorf("%v: %v, %t", gvr, gvk, ok)
		}
	}
}
