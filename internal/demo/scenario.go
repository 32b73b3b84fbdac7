package main

import "k8s.io/apimachinery/pkg/runtime/schema"

const (
	namespace  = "shop"
	engineUser = "rectifier"
	writerUser = "night-shift"
	expected   = "example.io/expected-replicas"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	backups     = schema.GroupVersionResource{Group: "example.io", Version: "v1", Resource: "backups"}
)

// item is an object of the show.
type item struct {
	resource schema.GroupVersionResource
	object   map[string]any // as it is created
	fields   []field        // what the rules are about
}

// field is a part of an object with the value that it should have, written
// down by hand: the show does not ask Rectifier what is right.
type field struct {
	label  string
	path   []any // keys and indices
	wanted any
	note   string // why it is right, where that is not obvious
	// disturbances are values that the second writer sets. None: it keeps off.
	disturbances []any
}

// container is a container with the pull policy that it should have.
type container struct{ name, image, policy, wanted string }

const (
	always = "Always"
	once   = "IfNotPresent"
)

// items are created in this order. Half of them are wrong in some way.
var items = []item{
	deployment("frontend", "5", 5, 3, container{"web", "shop/frontend:4.2.0", once, once}),
	deployment("cart", "3", 3, 3, container{"app", "shop/cart:1.8.2", once, once}),
	deployment("checkout", "4", 4, 1,
		container{"app", "registry.example.io:5000/checkout:2.14.1", always, once},
		container{"proxy", "envoy:latest", once, always},
		container{"metrics", "exporter:0.9", once, once}),
	deployment("catalog", "2", 2, 7, container{"app", "shop/catalog:3.3.1", once, once}),
	deployment("search", "2", 2, 2, container{"app", "registry.example.io:5000/search", once, always}),
	deployment("payment", "6", 6, 6, container{"app", "shop/payment:9.1.0", once, once}),
	deployment("shipping", "2", 2, 0, container{"app", "shop/shipping:1.0.7", once, once}),
	deployment("email", "1", 1, 4, container{"app", "shop/email:2.2.2", always, once}),
	deployment("ads", "0", 0, 2, container{"app", "shop/ads:latest", always, always}),
	deployment("recommend", "3", 3, 3, container{"app", "shop/recommend:latest", once, always}),
	// Nobody declared a count: whatever it is, it is right.
	deployment("loadtest", "", 8, 8, container{"app", "shop/loadtest:0.1", once, once}),
	// A count that is none: the rule says so on the object and writes nothing.
	deployment("currency", "two", 1, 1, container{"app", "shop/currency:1.4", once, once}),

	backup("orders-db", "customer", 30, 7),
	backup("users-db", "customer", 90, 90),
	backup("search-index", "", 7, 1),
	backup("sessions", "", 7, nil),
	backup("audit-log", "customer", 30, 14),
}

// warnedOnce are the objects on which Rectifier has to complain, once each.
var warnedOnce = []string{"deployment/currency"}

func deployment(name, annotation string, wanted, is int64, containers ...container) item {
	labels := map[string]any{"app": name}
	meta := map[string]any{"name": name, "namespace": namespace, "labels": labels}
	replicas := field{label: "replicas", path: []any{"spec", "replicas"}, wanted: wanted}
	switch annotation {
	case "":
		replicas.note = "not declared"
	case "two":
		replicas.note = `"two" is no count`
	default:
		replicas.disturbances = otherCounts(wanted)
	}
	if annotation != "" {
		meta["annotations"] = map[string]any{expected: annotation}
	}
	it := item{resource: deployments, fields: []field{replicas}}
	var list []any
	for i, c := range containers {
		list = append(list, map[string]any{
			"name": c.name, "image": c.image, "imagePullPolicy": c.policy,
			"env":            []any{map[string]any{"name": "LOG_LEVEL", "value": "info"}},
			"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/ready", "port": int64(8080)}},
			"volumeMounts":   []any{map[string]any{"name": "config", "mountPath": "/etc/" + c.name}},
		})
		f := field{label: "pull policy of " + c.name, wanted: c.wanted, note: c.image,
			path: []any{"spec", "template", "spec", "containers", i, "imagePullPolicy"}}
		if i == 0 {
			f.disturbances = []any{map[string]string{always: once, once: always}[c.wanted], "Never"}
		}
		it.fields = append(it.fields, f)
	}
	it.object = map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
		"spec": map[string]any{
			"replicas": is,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": list, "volumes": []any{
					map[string]any{"name": "config", "configMap": map[string]any{"name": name}},
				}},
			},
		},
	}
	return it
}

// otherCounts are wrong replica counts: scaled up, and down where that is possible.
func otherCounts(wanted int64) []any {
	if wanted == 0 {
		return []any{int64(2), int64(1)}
	}
	return []any{wanted + 2, wanted - 1}
}

func backup(name, class string, wanted int64, is any) item {
	meta := map[string]any{"name": name, "namespace": namespace}
	if class != "" {
		meta["labels"] = map[string]any{"data-class": class}
	}
	spec := map[string]any{"source": name + "-data", "schedule": "0 2 * * *", "encryption": map[string]any{"keyRef": "kms/" + name}}
	if days, ok := is.(int); ok {
		spec["retentionDays"] = int64(days)
	}
	f := field{label: "retentionDays", path: []any{"spec", "retentionDays"}, wanted: wanted, note: class}
	if wanted == 30 || wanted == 7 { // a longer one would be raised to its minimum, not to what it was
		f.disturbances = []any{int64(3), nil}
	}
	return item{
		resource: backups,
		object:   map[string]any{"apiVersion": "example.io/v1", "kind": "Backup", "metadata": meta, "spec": spec},
		fields:   []field{f},
	}
}

func count(resource schema.GroupVersionResource) (n int) {
	for _, it := range items {
		if it.resource == resource {
			n++
		}
	}
	return n
}

func (it item) name() string {
	meta, _ := it.object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

// title is the object as people write it: deployment/cart.
func (it item) title() string {
	if it.resource == backups {
		return "backup/" + it.name()
	}
	return "deployment/" + it.name()
}
