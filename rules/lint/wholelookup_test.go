package lint_test

import "testing"

func TestWholeLookup(t *testing.T) {
	const patch = "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	const head = "resource: {group: apps, version: v1, resource: deployments}\nlookups:\n  - name: found\n    resource: "
	const pods, size = "{version: v1, resource: pods}", "\ncondition: lookups.found.size() > 3" + patch
	whole := func(resource string) string {
		return "7:13: lookups.found takes all " + resource + " of the cluster, each time that it is read, some µs for each: let where, or namespace, find those that are meant"
	}
	testCheck(t, "whole-lookup", []schemaCase{
		{name: "all pods", spec: head + pods + size, want: []string{whole("pods")}},
		{name: "all pods with a label", spec: head + pods + "\n    labelSelector: {matchLabels: {a: b}}" + size, want: []string{whole("pods") + "; labelSelector looks at each of them"}},
		{name: "pods by a field", spec: head + pods + "\n    where: {spec.nodeName: a}" + size},
		{name: "the pods of a namespace", spec: head + pods + "\n    namespace: a" + size},
		{name: "a loop, which cost reports", spec: head + pods + "\ncondition: lookups.found.exists(p, p.spec.nodeName == 'a')" + patch},
		{name: "a loop that is bounded", spec: head + pods + "\n    labelSelector: {matchLabels: {a: b}}\ncondition: lookups.found.exists(p, p.spec.nodeName == 'a')" + patch, want: []string{whole("pods") + "; labelSelector looks at each of them"}},
		{name: "nodes", spec: head + "{version: v1, resource: nodes}" + size, want: []string{whole("nodes")}},
		{name: "Namespaces", spec: head + "{version: v1, resource: namespaces}" + size, want: []string{whole("namespaces")}},
		{name: "volumes", spec: head + "{version: v1, resource: persistentvolumes}" + size, want: []string{whole("persistentvolumes")}},
		{name: "classes", spec: head + "{group: storage.k8s.io, version: v1, resource: storageclasses}" + size},
		{name: "what is not known", spec: head + "{group: example.org, version: v1, resource: things}" + size},
		{name: "a reason", spec: head[:len(head)-len("  - name: found\n    resource: ")] + "  # rectifier:ignore whole-lookup it is a small cluster\n  - name: found\n    resource: " + pods + size},
	})
}
