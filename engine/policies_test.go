package engine

// policyCases are policies as the Kubernetes documentation shows them and as
// people publish them.
var policyCases = []policyCase{
	{
		name: "default requests over all containers",
		spec: `
matchConstraints:
  resourceRules:
  - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments, statefulsets]}
variables:
- name: pod
  expression: object.spec.template.spec
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: |
      Object{
        spec: Object.spec{
          template: Object.spec.template{
            spec: Object.spec.template.spec{
              containers: variables.pod.containers.map(c, Object.spec.template.spec.containers{
                name: c.name,
                resources: Object.spec.template.spec.containers.resources{
                  // what is there stays
                  requests: {
                    "cpu": c.?resources.?requests[?"cpu"].orValue("100m"),
                    "memory": c.?resources.?requests[?"memory"].orValue("64Mi")
                  }
                }
              }),
              // where there are none, none are set: not an empty list either
              ?initContainers: variables.pod.?initContainers.optMap(list, list.map(c, Object.spec.template.spec.initContainers{
                name: c.name,
                resources: Object.spec.template.spec.initContainers.resources{
                  requests: {"cpu": c.?resources.?requests[?"cpu"].orValue("10m")}
                }
              }))
            }
          }
        }
      }`,
		objects: []policyObject{
			{deployments, true, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: wait, image: "registry.example/wait:1", env: [{name: FOR, value: db}]}
      containers:
      - {name: web, image: "registry.example/web:1", ports: [{containerPort: 80}]}
      - {name: log, image: "registry.example/log:1", resources: {requests: {cpu: 250m}, limits: {memory: 1Gi}}}
      - {name: set, image: "registry.example/set:1", resources: {requests: {cpu: "1", memory: 2Gi}}}`},
			{statefulsets, true, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %s}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "registry.example/db:1"}]}`},
			{deployments, false, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1", resources: {requests: {cpu: 1m, memory: 1Mi}}}]}`},
		},
	},
	{
		name: "a size limit on every emptyDir",
		spec: `
matchConstraints:
  resourceRules:
  - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
matchConditions:
- name: some-without
  expression: object.spec.template.spec.?volumes.orValue([]).exists(v, has(v.emptyDir) && !has(v.emptyDir.sizeLimit))
mutations:
- patchType: JSONPatch
  jsonPatch:
    expression: |
      lists.range(object.spec.template.spec.volumes.size())
        .filter(i, has(object.spec.template.spec.volumes[i].emptyDir)
          && !has(object.spec.template.spec.volumes[i].emptyDir.sizeLimit))
        .map(i, JSONPatch{
          op: "add",
          path: "/spec/template/spec/volumes/" + string(i) + "/emptyDir/sizeLimit",
          value: object.spec.template.spec.volumes[i].emptyDir.?medium.orValue("") == "Memory" ? "64Mi" : "1Gi"
        })`,
		objects: []policyObject{
			{deployments, true, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "registry.example/web:1", volumeMounts: [{name: tmp, mountPath: /tmp}]}]
      volumes:
      - {name: settings, configMap: {name: web}}
      - {name: tmp, emptyDir: {}}
      - {name: cache, emptyDir: {sizeLimit: 5Gi}}
      - {name: shm, emptyDir: {medium: Memory}}`},
			{deployments, false, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}`},
		},
	},
	{
		name: "hosts rewritten in an Ingress",
		spec: `
matchConstraints:
  objectSelector: {matchExpressions: [{key: keep-host, operator: DoesNotExist}]}
  resourceRules:
  - {apiGroups: [networking.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [ingresses]}
variables:
- name: rules
  expression: object.spec.?rules.orValue([])
- name: tls
  expression: object.spec.?tls.orValue([])
mutations:
- patchType: JSONPatch
  jsonPatch:
    expression: |
      lists.range(variables.rules.size())
        .filter(i, variables.rules[i].?host.orValue("").endsWith(".old.example.com"))
        .map(i, JSONPatch{
          op: "replace", path: "/spec/rules/" + string(i) + "/host",
          value: variables.rules[i].host.replace(".old.example.com", ".example.com")
        })
      + lists.range(variables.tls.size())
        .filter(i, variables.tls[i].?hosts.orValue([]).exists(h, h.endsWith(".old.example.com")))
        .map(i, JSONPatch{
          op: "replace", path: "/spec/tls/" + string(i) + "/hosts",
          value: variables.tls[i].hosts.map(h, h.replace(".old.example.com", ".example.com"))
        })`,
		objects: []policyObject{
			{ingresses, true, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s, annotations: {example.com/keep: "yes"}}
spec:
  tls:
  - {hosts: [shop.old.example.com, shop.example.org], secretName: shop}
  - {hosts: [blog.example.org]}
  rules:
  - host: shop.old.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
  - host: blog.example.org
  - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: any, port: {name: http}}}}]}
  - host: "*.old.example.com"`},
			{ingresses, false, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s, labels: {keep-host: ""}}
spec: {rules: [{host: shop.old.example.com}]}`},
		},
	},
	{
		name: "tolerations",
		spec: `
matchConstraints:
  objectSelector: {matchLabels: {pool: spot}}
  resourceRules:
  - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
matchConditions:
- name: none-yet
  expression: '!object.spec.template.spec.?tolerations.orValue([]).exists(t, t.?key.orValue("") == "spot")'
mutations:
- patchType: JSONPatch
  jsonPatch:
    expression: |
      (has(object.spec.template.spec.tolerations) ? [] : [
        JSONPatch{op: "add", path: "/spec/template/spec/tolerations", value: []}
      ]) + [
        JSONPatch{
          op: "add", path: "/spec/template/spec/tolerations/-",
          value: Object.spec.template.spec.tolerations{key: "spot", operator: "Exists", effect: "NoSchedule"}
        }
      ]`,
		objects: []policyObject{
			{deployments, true, tolerating("spot", "[]")},
			{deployments, true, tolerating("spot", "[{key: gpu, operator: Equal, value: a100}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]")},
			{deployments, false, tolerating("spot", "[{key: spot, operator: Exists}]")},
			{deployments, false, tolerating("fixed", "[]")},
		},
	},
	{
		name: "labels",
		spec: `
matchConstraints:
  resourceRules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
variables:
- name: team
  expression: namespaceObject.metadata.labels.team
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: >
      Object{metadata: Object.metadata{labels: {"example.com/team": variables.team, "managed": "yes"}}}
- patchType: JSONPatch
  jsonPatch:
    expression: |
      [
        has(object.metadata.annotations)
          ? JSONPatch{op: "test", path: "/metadata/labels/managed", value: "yes"}
          : JSONPatch{op: "add", path: "/metadata/annotations", value: {}},
        JSONPatch{
          op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("example.com/owner"),
          value: variables.team + "/" + object.metadata.labels["managed"]
        }
      ]`,
		objects: []policyObject{
			{configmaps, true, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {key: value}}`},
			{configmaps, true, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {managed: "no", app: web}, annotations: {a: b}}}`},
			{configmaps, false, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {managed: "yes", example.com/team: payments}, annotations: {example.com/owner: payments/yes}}}`},
			{deployments, true, tolerating("any", "[]")},
		},
	},
	{
		name: "a TTL on Jobs",
		spec: `
matchConstraints:
  resourceRules:
  - {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}
matchConditions:
- {name: none-yet, expression: '!has(object.spec.ttlSecondsAfterFinished)'}
- name: not-of-a-cronjob
  expression: |
    !object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "CronJob") // they have a history limit
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: 'Object{spec: Object.spec{ttlSecondsAfterFinished: 60 * 60}} // an hour'`,
		objects: []policyObject{
			{jobs, true, job("", "")},
			{jobs, false, job("", "ttlSecondsAfterFinished: 0, ")},
			{jobs, false, job(", ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: nightly, uid: 5c1b2a34-0000-4000-8000-000000000000}]", "")},
		},
	},
	{
		name: "a sidecar",
		spec: `
matchConstraints:
  resourceRules:
  - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
matchConditions:
- name: does-not-already-have-sidecar
  expression: '!object.spec.template.spec.?initContainers.orValue([]).exists(ic, ic.name == "mesh-proxy")'
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: >
      Object{
        spec: Object.spec{
          template: Object.spec.template{
            spec: Object.spec.template.spec{
              initContainers: [
                Object.spec.template.spec.initContainers{
                  name: "mesh-proxy",
                  image: "registry.example/mesh-proxy:1",
                  env: [Object.spec.template.spec.initContainers.env{name: "MODE", value: "sidecar"}],
                  ports: [Object.spec.template.spec.initContainers.ports{containerPort: 15001}],
                  restartPolicy: "Always"
                }
              ]
            }
          }
        }
      }`,
		objects: []policyObject{
			{deployments, true, tolerating("any", "[]")},
			{deployments, true, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: migrate, image: "registry.example/migrate:1", command: [migrate, up]}
      containers: [{name: web, image: "registry.example/web:1"}]`},
		},
	},
}

// tolerating is a Deployment for a pool, with tolerations in YAML.
func tolerating(pool, tolerations string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, labels: {pool: ` + pool + `}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "registry.example/web:1"}]
      tolerations: ` + tolerations
}

// job is a Job with more metadata and more in its spec.
func job(metadata, spec string) string {
	return `{apiVersion: batch/v1, kind: Job, metadata: {name: %s` + metadata + `}, spec: {` + spec +
		`template: {spec: {restartPolicy: Never, containers: [{name: once, image: "registry.example/once:1"}]}}}}`
}
