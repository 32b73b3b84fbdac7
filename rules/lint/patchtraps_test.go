package lint_test

import "testing"

func TestMergeList(t *testing.T) {
	testCheck(t, "merge-list", []schemaCase{
		{name: "keyed", spec: `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}}`, // PAT-11
			want: []string{"6:44: a merge patch replaces spec.template.spec.containers whole: elements and fields that are not written here are lost; use applyConfiguration, which merges the elements by name"}},
		{name: "not keyed, and in CEL", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
patches:
  - merge: {spec: {steps: [{run: x}], parts: [{name: a}]}}
  - merge: "${{'spec': {'parts': [{'name': object.metadata.name}]}}}"`,
			want: []string{
				"7:22: a merge patch replaces spec.steps whole: elements and fields that are not written here are lost; use json, with a test of the element that is meant",
				"7:41: a merge patch replaces spec.parts whole: elements and fields that are not written here are lost; use applyConfiguration, which merges the elements by name",
				"8:27: a merge patch replaces spec.parts whole: elements and fields that are not written here are lost; use applyConfiguration, which merges the elements by name",
			}},
		{name: "without a schema", spec: `
resource: {group: example.org, version: v1, resource: things}
patch: {merge: {spec: {rules: [{a: b}], tags: [x]}}}`,
			want: []string{"6:26: a merge patch replaces spec.rules whole: elements and fields that are not written here are lost; use json, with a test of the element that is meant"}},
		{name: "scalars, nothing, what is computed, other patches", spec: `
resource: {group: apps, version: v1, resource: deployments}
patches:
  - merge: {metadata: {finalizers: [a]}, spec: {template: {spec: {tolerations: [], volumes: null}}}}
  - merge: {spec: {template: {spec: {containers: "${object.spec.template.spec.containers.map(c, {'name': c.name, 'image': c.image})}"}}}}
  - merge: {spec: {template: {spec: {tolerations: "${object.spec.template.spec.?tolerations.orValue([]) + [{'key': 'a'}]}"}}}}
  - applyConfiguration: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}
  - json: [{op: add, path: /spec/template/spec/tolerations, value: [{key: a}]}]`},
	})
}

func TestAtomicList(t *testing.T) {
	testCheck(t, "atomic-list", []schemaCase{
		{name: "lists, maps and elements", spec: `
resource: {group: apps, version: v1, resource: deployments}
patch:
  applyConfiguration:
    spec:
      selector: {matchLabels: {a: b}}
      template:
        spec:
          nodeSelector: {a: b}
          tolerations: [{key: a}]
          containers:
            - image: x
            - name: b
              args: [x]
              ports: [{protocol: TCP}, {containerPort: 80}]`,
			want: []string{
				"9:9: spec.selector is atomic: applyConfiguration refuses it, because it could only be replaced whole; use merge or json",
				"12:13: spec.template.spec.nodeSelector is atomic: applyConfiguration refuses it, because it could only be replaced whole; use merge or json",
				"13:13: spec.template.spec.tolerations is an atomic list: applyConfiguration refuses it, because it could only be replaced whole; use merge or json",
				"15:17: an element of spec.template.spec.containers needs its name: applyConfiguration finds the element by it",
				"17:17: spec.template.spec.containers.1.args is an atomic list: applyConfiguration refuses it, because it could only be replaced whole; use merge or json",
			}},
		{name: "in CEL, and computed", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
patches:
  - applyConfiguration: "${Object{spec: Object.spec{selector: object.metadata.labels, parts: [Object.spec.parts{weight: 1}]}}}"
  - applyConfiguration: {spec: {steps: "${object.spec.steps}", selector: "${object.spec.?selector}"}}`,
			want: []string{
				"7:55: spec.selector is atomic: applyConfiguration refuses it, because it could only be replaced whole; use merge or json",
				"7:97: an element of spec.parts needs its name: applyConfiguration finds the element by it",
				"8:35: spec.steps is an atomic list: applyConfiguration refuses it, because it could only be replaced whole; use merge or json",
			}},
		{name: "keys, sets, nulls, computed keys, open fields", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
patches:
  - applyConfiguration: {spec: {parts: [{name: a, weight: 1}, {"${object.metadata.name}": 1}], tags: [x], steps: null, selector: null, free: {a: [1, {b: c}]}, open: {x: [1]}}}
  - merge: {spec: {selector: {a: b}, tags: [x]}}`},
	})
}

func TestImmutableField(t *testing.T) {
	testCheck(t, "immutable-field", []schemaCase{
		{name: "selector", spec: `
resource: {group: apps, version: v1, resource: deployments}
patches:
  - merge: {spec: {selector: {matchLabels: {a: b, c: d}}, replicas: 3}}
  - json: [{op: test, path: /spec/selector/matchLabels/a, value: b}, {op: add, path: /spec/selector/matchLabels/a, value: b}]`,
			want: []string{
				"7:22: spec.selector of deployments cannot be changed: it tells which pods belong to the object, and the server refuses another one",
				"8:94: spec.selector of deployments cannot be changed: it tells which pods belong to the object, and the server refuses another one",
			}},
		{name: "pods", spec: `
resource: {version: v1, resource: pods}
patches:
  - applyConfiguration: {spec: {containers: [{name: a, image: b, imagePullPolicy: Always}], priorityClassName: x, activeDeadlineSeconds: 3}}
  - json:
      - {op: replace, path: /spec/containers/0/image, value: a}
      - {op: add, path: /spec/tolerations/-, value: {key: a}}
      - {op: add, path: /spec/containers/0/env/-, value: {name: a, value: b}}
      - {op: remove, path: /spec/nodeName}
  - merge: {metadata: {labels: {a: b}}}`,
			want: []string{
				"7:68: spec.containers.0.imagePullPolicy of pods cannot be changed: of a pod that exists only images, activeDeadlineSeconds, and more tolerations can be changed; change what made the pod",
				"7:95: spec.priorityClassName of pods cannot be changed: of a pod that exists only images, activeDeadlineSeconds, and more tolerations can be changed; change what made the pod",
				"11:46: spec.containers.0.env of pods cannot be changed: of a pod that exists only images, activeDeadlineSeconds, and more tolerations can be changed; change what made the pod",
				"12:36: spec.nodeName of pods cannot be changed: of a pod that exists only images, activeDeadlineSeconds, and more tolerations can be changed; change what made the pod",
			}},
		{name: "claims", spec: `
resource: {version: v1, resource: persistentvolumeclaims}
patch: {merge: {spec: {storageClassName: a, resources: {requests: {storage: 10Gi}}, volumeAttributesClassName: b}}}`,
			want: []string{"6:26: spec.storageClassName of persistentvolumeclaims cannot be changed: the spec of a claim is immutable but for resources.requests and volumeAttributesClassName"}},
		{name: "others", spec: `
resources:
  - {group: storage.k8s.io, version: v1, resource: storageclasses}
patch: {merge: {reclaimPolicy: Retain, allowVolumeExpansion: true}}`,
			want: []string{"7:19: reclaimPolicy of storageclasses cannot be changed: the server refuses another value: make another StorageClass"}},
		{name: "custom resources", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
patches:
  - merge: {spec: {owner: x, size: 3, place: {zone: a}}}
  - json: [{op: replace, path: /spec/place/zone, value: b}]`,
			want: []string{
				"7:22: spec.owner cannot be changed: its schema says self == oldSelf, so the server refuses another value than the one that is there",
				"7:41: spec.place cannot be changed: its schema says self == oldSelf, so the server refuses another value than the one that is there",
				"8:40: spec.place cannot be changed: its schema says self == oldSelf, so the server refuses another value than the one that is there",
			}},
		{name: "what can be changed", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {group: apps, version: v1, resource: statefulsets}
patch: {merge: {spec: {replicas: 3, template: {spec: {nodeSelector: {a: b}}}, selector: {}}, metadata: {labels: {a: b}}}}`},
	})
}

func TestIntOrString(t *testing.T) {
	testCheck(t, "int-or-string", []schemaCase{
		{name: "NUM-09", spec: `
resource: {version: v1, resource: services}
variables:
  - {name: target, expression: "object.spec.ports[0].targetPort"}
condition: >-
  object.spec.ports[0].targetPort == '80'
  || object.spec.ports.exists(p, 90 > p.targetPort)
  || variables.target in ['80', 'http']
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{
				"9:26: targetPort may be an int or a string: compared with a string, it never matches where it is an int; compare string(…), or ask for its type() first",
				"10:43: targetPort may be an int or a string: compared with an int, it is an error where it is a string; compare string(…), or ask for its type() first",
				"11:8: variables.target may be an int or a string: compared with a string, it never matches where it is an int; compare string(…), or ask for its type() first",
			}},
		{name: "both, converted, or asked for", spec: `
resource: {group: policy, version: v1, resource: poddisruptionbudgets}
variables:
  - {name: a, expression: "object.spec.maxUnavailable == 0 || object.spec.maxUnavailable == '0%'"}
  - {name: b, expression: "string(object.spec.maxUnavailable) == '0'"}
  - {name: c, expression: "type(object.spec.maxUnavailable) == int && object.spec.maxUnavailable < 1"}
  - {name: d, expression: "object.spec.maxUnavailable in [0, '0%']"}
condition: variables.a || variables.b || variables.c || variables.d
patch: {merge: {metadata: {labels: {a: b}}}}`},
		{name: "custom resource", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
condition: object.spec.?port.orValue(80) != 80
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"6:27: port may be an int or a string: compared with an int, it always differs where it is a string; compare string(…), or ask for its type() first"}},
	})
}
