package lint_test

import "testing"

func TestPatchField(t *testing.T) {
	testCheck(t, "patch-field", []schemaCase{
		{name: "merge", spec: `
resource: {group: apps, version: v1, resource: deployments}
patch:
  merge:
    spec:
      replcas: 3
      paused: "yes"
      minReadySeconds: 2.5
      template: {spec: {hostNetwork: 1, nodeSelector: {a: b}, containers: 3}}
      strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: true}}
    sepc: {}`,
			want: []string{
				`9:9: unknown field "replcas" in spec (did you mean "replicas"?)`,
				`10:17: spec.paused must be a bool, not a string`,
				`11:26: spec.minReadySeconds must be an int, not a fraction`,
				`12:40: spec.template.spec.hostNetwork must be a bool, not an int`,
				`12:77: spec.template.spec.containers must be a list, not an int`,
				`13:67: spec.strategy.rollingUpdate.maxUnavailable must be an int or a string, not a bool`,
				`14:7: unknown field "sepc" (did you mean "spec"?)`,
			}},
		{name: "templates", spec: `
resource: {group: apps, version: v1, resource: deployments}
patch:
  merge:
    metadata:
      annotations: "${object.metadata.labels}"
      labels: {"${object.metadata.name}": "x"}
    spec:
      replicas: ${object.metadata.name}
      paused: "${object.spec.replicas > 3}"
      minReadySeconds: ${object.spec.replicas * 2}
      progressDeadlineSeconds: s-${object.metadata.name}
      revisionHistoryLimit: ${object.spec.template.spec.containers.map(c, c.name)}
      template: "${object.spec.?template}"`,
			want: []string{
				`12:21: spec.replicas must be an int, not a string`,
				`15:34: spec.progressDeadlineSeconds must be an int, not a string`,
				`16:33: spec.revisionHistoryLimit must be an int, not a list`,
			}},
		{name: "nulls, computed keys, maps, quantities and dates", spec: `
resource: {group: apps, version: v1, resource: deployments}
patch:
  merge:
    metadata: {annotations: {a: null, "${object.metadata.name}": "b"}}
    spec:
      strategy: null
      template: {spec: {overhead: {cpu: 1, memory: 1Gi, x: 1.5}, containers: [{name: a, resources: {limits: {cpu: "1"}}}]}}`},
		{name: "lists of a merge patch, by their elements", spec: `
resource: {version: v1, resource: services}
patch:
  merge: {spec: {ports: [{port: "80"}, {prt: 81}, {targetPort: http}, "x"]}}`,
			want: []string{
				`7:35: spec.ports.0.port must be an int, not a string`,
				`7:43: unknown field "prt" in spec.ports.1 (did you mean "port"?)`,
				`7:73: spec.ports.3 must be a mapping, not a string`,
			}},
		{name: "applyConfiguration in CEL", spec: `
resource: {group: apps, version: v1, resource: deployments}
variables:
  - name: name
    expression: object.metadata.name
patch:
  applyConfiguration: |-
    ${Object{
      spec: Object.spec{
        replicas: variables.name,
        template: Object.spec.template{
          spec: Object.spec.template.spec{
            containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{
              name: c.name,
              imagePullPolcy: 'Always'
            })
          }
        }
      }
    }}`,
			want: []string{
				`13:21: spec.replicas must be an int, not a string`,
				`18:17: unknown field "imagePullPolcy" in spec.template.spec.containers.* (did you mean "imagePullPolicy"?)`,
			}},
		{name: "a map in CEL, with both sides of a condition", spec: `
resource: {group: apps, version: v1, resource: deployments}
patch:
  merge: "${{'spec': {'replcas': 3, 'paused': object.metadata.name == 'x' ? dyn('no') : dyn(null)}}}"`,
			want: []string{
				`7:25: unknown field "replcas" in spec (did you mean "replicas"?)`,
				`7:83: spec.paused must be a bool, not a string`,
			}},
		{name: "json", spec: `
resource: {group: apps, version: v1, resource: deployments}
patch:
  json:
    - {op: add, path: /spec/replcas, value: 3}
    - {op: replace, path: /spec/replicas, value: "3"}
    - {op: add, path: /spec/template/spec/containers/0/imagePullPolcy, value: Always}
    - {op: add, path: /spec/template/spec/containers/-, value: {name: a, imag: b}}
    - {op: add, path: /spec/template/spec/containers/first, value: {name: a}}
    - {op: test, path: /spec/template/spec/nodeSelectr/a, value: b}
    - {op: remove, path: /spec/replicas/x}
    - {op: move, from: /spec/pausd, path: /spec/paused}
    - {op: add, path: /metadata/annotations/a~1b, value: c}
    - {op: test, path: /metadata/annotations, value: null}
    - {op: add, path: "/spec/template/spec/containers/${object.spec.replicas}/imag", value: a}
    - {op: add, path: "${object.metadata.name}", value: a}`,
			want: []string{
				`8:31: unknown field "replcas" in spec (did you mean "replicas"?)`,
				`9:52: spec.replicas must be an int, not a string`,
				`10:58: unknown field "imagePullPolcy" in spec.template.spec.containers.0 (did you mean "imagePullPolicy"?)`,
				`11:76: unknown field "imag" in spec.template.spec.containers.- (did you mean "image"?)`,
				`12:56: spec.template.spec.containers is a list: its elements have numbers, or - for one behind the last, not "first"`,
				`13:46: unknown field "nodeSelectr" in spec.template.spec (did you mean "nodeSelector"?)`,
				`14:43: unknown field "x": spec.replicas is an int`,
				`15:32: unknown field "pausd" in spec (did you mean "paused"?)`,
				`18:81: unknown field "imag" in spec.template.spec.containers.* (did you mean "image"?)`,
			}},
		{name: "json in CEL", spec: `
resource: {group: apps, version: v1, resource: deployments}
variables:
  - name: ops
    expression: >-
      object.spec.template.spec.containers.transformList(i, c, c.name != 'a',
        {'op': 'add', 'path': '/spec/template/spec/containers/' + string(i) + '/imagePullPolcy', 'value': 'Always'})
patches:
  - json: ${variables.ops}
  - json: |-
      ${[JSONPatch{op: 'replace', path: '/spec/replcas', value: 3},
         JSONPatch{op: 'replace', path: '/spec/replicas', value: '3'},
         JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 1}]
        + object.metadata.name.split(',').map(p, JSONPatch{op: 'add', path: '/spec/' + p, value: 1})}`,
			want: []string{
				`10:83: unknown field "imagePullPolcy" in spec.template.spec.containers.* (did you mean "imagePullPolicy"?)`,
				`14:50: unknown field "replcas" in spec (did you mean "replicas"?)`,
				`15:68: spec.replicas must be an int, not a string`,
				`16:96: metadata.labels.* must be a string, not an int`,
			}},
		{name: "scale and status", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: racks}
patches:
  - {subresource: scale, merge: {spec: {replicas: "3"}}}
  - {subresource: scale, merge: {spec: {replicas: 3}}}`,
			want: []string{`7:53: spec.replicas must be an int, not a string`}},
		{name: "status", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
patches:
  - {subresource: status, merge: {status: {phse: x}}}
  - {subresource: status, json: [{op: add, path: /status/phase, value: 3}]}`,
			want: []string{
				`7:46: unknown field "phse" in status (did you mean "phase"?)`,
				`8:74: status.phase must be a string, not an int`,
			}},
		{name: "custom resource", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
patch:
  merge:
    spec: {mode: Quick, open: {x: 1, known: a}, free: {a: {b: [1]}}, template: {spec: {x: 1}, metadata: {labels: {a: b}, lables: {}}}, x-dash: a, nothing: null, port: 80, ratio: 1, sise: 1}`,
			want: []string{
				`8:20: spec.mode must be one of Fast, Slow, not another string`,
				`8:47: spec.open.known must be an int, not a string`,
				`8:124: unknown field "lables" in spec.template.metadata (did you mean "labels"?)`,
				`8:184: unknown field "sise" in spec (did you mean "size"?)`,
			}},
		{name: "anchors and merge keys", spec: `
resource: {group: apps, version: v1, resource: deployments}
patches:
  - merge: {spec: &base {replcas: 1}}
  - merge: {spec: {<<: *base, paused: true}}`,
			want: []string{`7:28: unknown field "replcas" in spec (did you mean "replicas"?)`}},
		{name: "several resources", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {group: apps, version: v1, resource: daemonsets}
patch: {merge: {spec: {replicas: 3, minRedySeconds: 3}}}`,
			want: []string{
				`8:26: unknown field "replicas" in spec (of daemonsets)`,
				`8:39: unknown field "minRedySeconds" in spec (did you mean "minReadySeconds"?)`,
			}},
		{name: "nothing is known of the resource", spec: `
resource: {group: example.org, version: v1, resource: things}
patch: {merge: {what: {ever: [1, {a: b}]}}}`},
	})
}
