package lint_test

import (
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// widgetCRD has what built-in kinds do not: enums, open and embedded objects,
// fields that never change.
const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer}
                ratio: {type: number}
                mode: {type: string, enum: [Fast, Slow]}
                port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
                owner:
                  type: string
                  x-kubernetes-validations: [{rule: self == oldSelf, message: stays}]
                place:
                  type: object
                  properties: {zone: {type: string}}
                  x-kubernetes-validations: [{rule: "self  ==  oldSelf"}]
                open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: integer}}}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
                selector: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
                parts:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties: {name: {type: string}, weight: {type: integer}}
                steps: {type: array, items: {type: object, properties: {run: {type: string}}}}
                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                nothing: {nullable: true, type: string}
                "x-dash": {type: string}
            status: {type: object, properties: {phase: {type: string}}}
    - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.example.io}
spec:
  group: example.io
  scope: Cluster
  names: {plural: racks, singular: rack, kind: Rack}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {scale: {specReplicasPath: .spec.units, statusReplicasPath: .status.units}}
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {units: {type: integer}}}, status: {type: object, properties: {units: {type: integer}}}}}}
`

func TestCELType(t *testing.T) {
	testCheck(t, "cel-type", []schemaCase{
		{name: "field", spec: `
resource: {group: apps, version: v1, resource: deployments}
condition: object.spec.replcas != 3
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"6:26: undefined field 'replcas' (did you mean 'replicas'?)"}},
		{name: "in a folded block", spec: `
resource: {group: apps, version: v1, resource: deployments}
condition: >-
  has(object.spec.replicas)
  && object.spec.template.spec.containers.exists(c,
    c.imagePullPolcy == 'Always')
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"9:9: undefined field 'imagePullPolcy' (did you mean 'imagePullPolicy'?)"}},
		{name: "types", spec: `
resource: {group: apps, version: v1, resource: deployments}
condition: object.spec.replicas == '3' || object.metadata.creationTimestamp < now
recheckAfter: 1h
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{
				"6:35: int and string cannot be compared with ==: found no matching overload for '_==_' applied to '(int, string)'",
				"6:79: string and timestamp cannot be compared with <: found no matching overload for '_<_' applied to '(string, timestamp)'",
			}},
		{name: "variables, lookups and the Namespace", spec: `
resource: {group: apps, version: v1, resource: deployments}
lookups:
  - name: hpas
    resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}
    namespace: ${object.metadata.namespce}
variables:
  - name: pod
    expression: object.spec.template.spec
  - name: replicas
    expression: object.spec.?replicas.orValue(1)
condition: >-
  variables.pod.hostNetwrk
  && variables.replicas.contains('1')
  && lookups.hpas.exists(h, h.spec.maxReplica > 1)
  && namespaceObject.metadata.lables['a'] == 'b'
patch: {merge: {metadata: {labels: {a: "${object.metadata.nam}"}}}}
event: {message: "${object.spec.replcas}"}`,
			want: []string{
				"9:36: undefined field 'namespce' (did you mean 'namespace'?)",
				"16:19: undefined field 'hostNetwrk' (did you mean 'hostNetwork'?)",
				"17:27: int has no function contains(string): found no matching overload for 'contains' applied to 'int.(string)'",
				"18:38: undefined field 'maxReplica' (did you mean 'maxReplicas'?)",
				"19:33: undefined field 'lables' (did you mean 'labels'?)",
				"20:61: undefined field 'nam' (did you mean 'name'?)",
				"21:35: undefined field 'replcas' (did you mean 'replicas'?)",
			}},
		{name: "a variable that is wrong is reported once", spec: `
resource: {group: apps, version: v1, resource: deployments}
variables: [{name: it, expression: object.spec.replcas}]
condition: variables.it == 'x' && variables.it > 3
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"6:50: undefined field 'replcas' (did you mean 'replicas'?)"}},
		{name: "several resources: all", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {group: apps, version: v1, resource: statefulsets}
condition: object.spec.replcas != 3
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"8:26: undefined field 'replcas' (did you mean 'replicas'?)"}},
		{name: "several resources: one", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {group: apps, version: v1, resource: daemonsets}
condition: object.spec.replicas != 3
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{"8:26: undefined field 'replicas' of DaemonSetSpec (of daemonsets)"}},
		{name: "several resources, told apart", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {group: batch, version: v1, resource: cronjobs}
variables:
  - name: pod
    expression: "object.kind == 'CronJob' ? object.spec.jobTemplate.spec.template : object.spec.template"
condition: variables.pod.spec.containers.size() > 1
patch: {merge: {metadata: {labels: {a: b}}}}`},
		{name: "several resources, told apart by a field", spec: `
resources:
  - {group: apps, version: v1, resource: deployments}
  - {group: batch, version: v1, resource: cronjobs}
condition: "has(object.spec.jobTemplate) && object.spec.jobTemplate.metadata.name == 'x'"
patch: {merge: {metadata: {labels: {a: b}}}}`},
		{name: "custom resource", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
condition: >-
  object.spec.sise > 1 || object.metadata.labls == {} || object.spec.mode == 'Fats' || object.spec.mode in ['Slow', 'slow']
  || object.spec.open.known == 'x' || object.spec['x-dush'] == 'a'
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{
				"7:17: undefined field 'sise' (did you mean 'size'?)",
				"7:45: undefined field 'labls' (did you mean 'labels'?)",
				"7:80: mode is never 'Fats' (did you mean 'Fast'?)",
				"7:119: mode is never 'slow' (did you mean 'Slow'?)",
				"8:31: int and string cannot be compared with ==: found no matching overload for '_==_' applied to '(int, string)'",
				"8:53: undefined field 'x-dush' (did you mean 'x-dash'?)",
			}},
		{name: "custom resource, what is open", crds: widgetCRD, spec: `
resource: {group: example.io, version: v1, resource: widgets}
condition: >-
  object.spec.ratio * 2.0 > 1.0 && object.spec.port == '80' && object.spec.port < 3 && object.spec.open.other.x == 1 && object.spec.free.a.b[0] == 'x'
  && object.spec.template.spec.x == 1 && object.spec.template.metadata.labels['a'] == 'b' && object.spec['x-dash'] == 'a' && object.spec.mode == 'Brandnew'
  && object.spec.nothing == null && 'size' in object.spec && object.spec.?status.orValue({}) == {} && object.?status.orValue({}).?phase.orValue('') == ''
patch: {merge: {metadata: {labels: {a: b}}}}`,
			want: []string{
				"8:148: mode is never 'Brandnew': it is one of Fast, Slow",
				"9:77: undefined field 'status' (did you mean 'steps'?)",
			}},
		{name: "nothing is known of the resource", spec: `
resource: {group: example.org, version: v1, resource: things}
condition: object.spec.anything.at.all == '3' && object.metadata.lables == 1
patch: {merge: {metadata: {labels: {a: b}}}}`},
		{name: "escapes are for escaped-name", spec: `
resource: {version: v1, resource: pods}
condition: object.spec.node__dash__name == 'a'
patch: {merge: {metadata: {labels: {a: b}}}}`},
	})
}

// The whole report of one finding is what docs and cli.md show.
func TestCELTypeLooksAsDocumented(t *testing.T) {
	report := lint.Run(knowing(t, ""), rules.Source{Name: "rules/team.yaml", Data: []byte(`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: team}
spec:
  resource: {group: apps, version: v1, resource: deployments}
  condition: object.spec.replcas != 3
  patch: {merge: {metadata: {labels: {a: b}}}}
`)})
	var got string
	for _, f := range report.Findings {
		if f.Check.ID == "cel-type" {
			got += f.Problem.Detail()
		}
	}
	want := strings.TrimPrefix(`
rules/team.yaml:6:26: rule "team": undefined field 'replcas' (did you mean 'replicas'?)
  6 |   condition: object.spec.replcas != 3
                               ^`, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
