package rules

import (
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// shortNames are those of kubectl, for resources that people write rules about.
// The package knows no cluster, so that this is a list of what is likely meant and
// not of what there is.
var shortNames = map[string]string{
	"cj": "cronjobs", "cm": "configmaps", "crd": "customresourcedefinitions", "deploy": "deployments", "ds": "daemonsets",
	"ep": "endpoints", "ev": "events", "hpa": "horizontalpodautoscalers", "ing": "ingresses", "job": "jobs", "limits": "limitranges",
	"netpol": "networkpolicies", "no": "nodes", "ns": "namespaces", "pc": "priorityclasses", "pdb": "poddisruptionbudgets", "po": "pods",
	"pv": "persistentvolumes", "pvc": "persistentvolumeclaims", "quota": "resourcequotas", "rc": "replicationcontrollers", "rs": "replicasets",
	"sa": "serviceaccounts", "sc": "storageclasses", "secret": "secrets", "sts": "statefulsets", "svc": "services",
	"ingressclass": "ingressclasses", "lease": "leases", "role": "roles", "rolebinding": "rolebindings", "clusterrole": "clusterroles",
	"clusterrolebinding": "clusterrolebindings", "endpointslice": "endpointslices", "runtimeclass": "runtimeclasses", "apiservice": "apiservices",
}

// plural is how Kubernetes makes the plural of a kind: policies, ingresses, pods.
func plural(name string) string {
	switch stem, y := strings.CutSuffix(name, "y"); {
	case y && !strings.HasSuffix(stem, "a"): // gateways
		return stem + "ies"
	case strings.HasSuffix(name, "ss"):
		return name + "es"
	case strings.HasSuffix(name, "s"):
		return name
	}
	return name + "s"
}

// meantResource names the resource that is likely meant by what is no plural, as
// an addition to a message; empty if none is near.
func meantResource(name string) string {
	name = strings.ToLower(name)
	if plural, ok := shortNames[name]; ok {
		return suggest.DidYouMean(plural, []string{plural})
	}
	var known []string
	for _, plural := range shortNames {
		known = append(known, plural)
	}
	slices.Sort(known)
	if p := plural(name); slices.Contains(known, p) {
		return suggest.DidYouMean(p, []string{p})
	}
	return suggest.DidYouMean(name, known)
}
