package lint_test

import "testing"

func TestResourceName(t *testing.T) {
	patch := "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	testCheck(t, "resource-name", []schemaCase{
		{name: "group missing", spec: "resource: {version: v1, resource: deployments}" + patch,
			want: []string{"5:13: deployments is not a resource of the core group (did you mean group apps?)"}},
		{name: "another group", spec: "resource: {group: extensions, version: v1beta1, resource: ingresses}" + patch,
			want: []string{"5:21: ingresses is not a resource of group extensions (did you mean group networking.k8s.io?)"}},
		{name: "a slip", spec: "resource: {group: apps, version: v1, resource: deploymets}" + patch,
			want: []string{`5:50: "deploymets" is not a resource of group apps (did you mean "deployments"?)`}},
		{name: "nothing like it", spec: "resource: {group: apps, version: v1, resource: xyzzyxyzzys}" + patch,
			want: []string{`5:50: "xyzzyxyzzys" is not a resource of group apps: apps/v1/xyzzyxyzzys does not exist`}},
		{name: "version of a built-in group", spec: "resource: {group: policy, version: v1beta1, resource: poddisruptionbudgets}" + patch,
			want: []string{"5:38: poddisruptionbudgets.policy is not served in version v1beta1 (available: v1)"}},
		{name: "version of a CRD", crds: widgetCRD, spec: "resource: {group: example.io, version: v1alpha1, resource: widgets}" + patch,
			want: []string{"5:42: widgets.example.io is not served in version v1alpha1 (available: v1)"}},
		{name: "singular of a CRD", crds: widgetCRD, spec: "resource: {group: example.io, version: v1, resource: widget}" + patch,
			want: []string{`5:56: "widget" is not a resource of group example.io (did you mean "widgets"?)`}},
		{name: "lookups, and one of several", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {version: v1, resource: configmapps}
lookups:
  - name: hpas
    resource: {version: v1, resource: horizontalpodautoscalers}
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{
				`7:31: "configmapps" is not a resource of the core group (did you mean "configmaps"?)`,
				"10:17: horizontalpodautoscalers is not a resource of the core group (did you mean group autoscaling?)",
			}},
		{name: "custom resources of which nothing is known", spec: "resource: {group: cert-manager.io, version: v1, resource: certificates}" + patch},
		{name: "other resources of a CRD's group", crds: widgetCRD, spec: "resource: {group: example.io, version: v1, resource: gadgets}" + patch},
		{name: "what there is", spec: "resource: {group: autoscaling, version: v1, resource: horizontalpodautoscalers}" + patch},
	})
}

func TestClusterScopedNamespaces(t *testing.T) {
	testCheck(t, "cluster-scoped-namespaces", []schemaCase{
		{name: "match", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: racks}
match: {namespaces: [a], excludeNamespaces: [b], namespaceSelector: {matchLabels: {a: b}}}
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{
				"6:11: racks is cluster-scoped: its objects are in no namespace, so the rule matches none of them",
				"6:28: racks is cluster-scoped: its objects are in no namespace, so nothing is left out",
				"6:52: racks is cluster-scoped: its objects are in no namespace, so all of them fit the selector",
			}},
		{name: "one of several", spec: `
resources:
  - {version: v1, resource: pods}
  - {version: v1, resource: nodes}
match: {namespaces: [a], namespaceSelector: {matchLabels: {a: b}}}
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"8:11: nodes is cluster-scoped: its objects are in no namespace, so the rule matches none of them"}},
		{name: "lookup", spec: `
resource: {version: v1, resource: pods}
lookups:
  - {name: namespaces, resource: {version: v1, resource: namespaces}, namespace: "${object.metadata.namespace}"}
  - {name: pods, resource: {version: v1, resource: pods}, namespace: "${object.metadata.namespace}"}
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"7:73: namespaces is cluster-scoped: in a namespace nothing is ever found; leave namespace out"}},
		{name: "Namespaces have labels of their own", spec: `
resource: {version: v1, resource: namespaces}
match: {namespaceSelector: {matchLabels: {a: b}}}
patch: {merge: {metadata: {labels: {a: b}}}}`},
		{name: "namespaced, and not known", crds: widgetCRD, spec: `
resources:
  - {group: example.io, version: v1, resource: widgets}
  - {group: example.org, version: v1, resource: things}
match: {namespaces: [a], excludeNamespaces: [b]}
patch: {merge: {metadata: {labels: {a: b}}}}`},
	})
}

func TestSubresourceMissing(t *testing.T) {
	testCheck(t, "subresource-missing", []schemaCase{
		{name: "status", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: racks}
patches:
  - {subresource: status, merge: {status: {units: 3}}}
  - {subresource: scale, merge: {spec: {replicas: 3}}}`,
			want: []string{"7:21: racks has no subresource status: leave subresource out"}},
		{name: "scale", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
patches:
  - {subresource: status, merge: {status: {phase: x}}}
  - {subresource: scale, merge: {spec: {replicas: 3}}}
  - {subresource: "", merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"8:21: widgets has no subresource scale: leave subresource out, and write the field itself"}},
		{name: "several resources", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {group: apps, version: v1, resource: daemonsets}
patch: {subresource: scale, merge: {spec: {replicas: 3}}}`,
			want: []string{"8:24: daemonsets has no subresource scale: leave subresource out, and write the field itself"}},
		{name: "not known", spec: `
resource: {group: example.org, version: v1, resource: things}
patch: {subresource: scale, merge: {spec: {replicas: 3}}}`},
	})
}

func TestStatusSubresource(t *testing.T) {
	testCheck(t, "status-subresource", []schemaCase{
		{name: "merge", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
condition: "!has(object.status.phase)"
patch: {merge: {status: {phase: New}}}`, // SUB-01
			want: []string{"7:19: status of widgets is a subresource: the server drops what is written to it here; give the patch subresource: status"}},
		{name: "json and CEL", spec: `
resource: {version: v1, resource: pods}
patches:
  - json:
      - {op: test, path: /status/phase, value: Failed}
      - {op: add, path: /status/phase, value: Succeeded}
  - applyConfiguration: "${Object{status: Object.status{phase: 'x'}}}"
  - merge: "${{'status': object.status}}"`,
			want: []string{
				"9:28: status of pods is a subresource: the server drops what is written to it here; give the patch subresource: status",
				"10:37: status of pods is a subresource: the server drops what is written to it here; give the patch subresource: status",
				"11:18: status of pods is a subresource: the server drops what is written to it here; give the patch subresource: status",
			}},
		{name: "through status, and without one", crds: widgetCRD, spec: `
resources:
  - {group: example.io, version: v1, resource: racks}
  - {group: example.org, version: v1, resource: things}
patch: {merge: {status: {units: 3}}}`},
		{name: "subresource", spec: `
resource: {version: v1, resource: pods}
patch: {subresource: status, merge: {status: {phase: Failed}}}`},
	})
}
