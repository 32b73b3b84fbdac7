package lint_test

import "testing"

// withCondition is a rule on Deployments with a condition, at 7:5.
func withCondition(cel string) string {
	return deployments + "condition: |-\n  " + cel + "\npatch: {merge: {metadata: {labels: {a: b}}}}"
}

func TestConstantCondition(t *testing.T) {
	const (
		never  = "this can never be true together with what stands before: the && is false for all objects"
		always = "one of this and what stands before is always true: the || is true for all objects"
	)
	cases := []schemaCase{
		{name: "a constant variable", spec: deployments + "variables:\n  - {name: idle, expression: \"false\"}\ncondition: variables.idle && object.spec.?paused.orValue(false)\npatch: {merge: {spec: {paused: false}}}",
			want: []string{"8:14: the condition is false for all objects: the rule never does anything"}},
		{name: "in a variable", spec: deployments + "variables:\n  - {name: some, expression: \"object.spec.template.spec.containers.filter(c, c.name == 'a' && c.name == 'b')\"}\ncondition: variables.some.size() == 0\npatch: {merge: {spec: {paused: false}}}",
			want: []string{"7:97: " + never}},
		{name: "a switch in a variable", spec: deployments + "variables:\n  - {name: idle, expression: \"true\"}\ncondition: variables.idle && object.spec.?paused.orValue(false)\npatch: {merge: {spec: {paused: false}}}"},
	}
	for cel, want := range map[string]string{
		"true": "7:5: the condition is true for all objects: leave it out",
		"object.spec.?paused.orValue(false) || true": "7:5: the condition is true for all objects",
		"1 > 2": "7:5: the condition is false for all objects: the rule never does anything",
		"has(object.metadata) && has(object.metadata.name)":                                        "7:5: the condition is true for all objects",
		"has(object.metadata) && object.spec.?paused.orValue(false)":                               "7:5: this part of the condition is true for all objects",
		"object.spec.?paused.orValue(false) && !('a' in ['a'])":                                    "7:5: the condition is false for all objects: the rule never does anything",
		"object.spec.?paused.orValue(false) || 'a' == 'b'":                                         "7:43: this part of the condition is false for all objects",
		"object.metadata.name == 'a' && object.metadata.name == 'b'":                               "7:36: " + never,
		"object.metadata.name == 'a' && has(object.spec.paused) && 'b' == object.metadata['name']": "", // another spelling
		"object.metadata.name == 'a' && has(object.spec.paused) && 'b' == object.metadata.name":    "7:63: " + never,
		"object.metadata.name in ['a', 'b'] && object.metadata.name == 'c'":                        "7:43: " + never,
		"object.metadata.name in ['a', 'b'] && !(object.metadata.name in ['b', 'a'])":              "7:43: " + never,
		"object.metadata.name != 'a' || object.metadata.name != 'b'":                               "7:36: " + always,
		"object.spec.?replicas.orValue(1) > 3 && object.spec.?replicas.orValue(1) < 3":             "7:45: " + never,
		"object.spec.?replicas.orValue(1) >= 3 && object.spec.?replicas.orValue(1) < 3":            "7:46: " + never,
		"object.spec.?replicas.orValue(1) == 3 && object.spec.?replicas.orValue(1) > 3.5":          "7:46: " + never,
		"object.spec.?replicas.orValue(1) > 3 || object.spec.?replicas.orValue(1) <= 3":            "7:45: " + always,
		"has(object.spec.paused) && !has(object.spec.paused)":                                      "7:32: " + never,
		"has(object.spec.paused) || !has(object.spec.paused)":                                      "7:32: " + always,
		"object.spec.template.spec.containers.exists(c, c.name == 'a' && c.name == 'b')":           "7:69: " + never,
		"has(object.spec.paused) && (object.metadata.name == 'a' && object.metadata.name != 'a')":  "7:64: " + never,

		"object.metadata.name == 'a' || object.metadata.name == 'b'":                                                                     "",
		"object.metadata.name != 'a' && object.metadata.name != 'b'":                                                                     "",
		"object.metadata.name == 'a' && object.metadata.namespace == 'b'":                                                                "",
		"object.spec.?replicas.orValue(1) > 3 && object.spec.?replicas.orValue(1) < 5":                                                   "",
		"object.spec.?replicas.orValue(1) >= 3 && object.spec.?replicas.orValue(1) <= 3":                                                 "",
		"object.spec.?replicas.orValue(0) == 0 && object.spec.?replicas.orValue(1) == 1":                                                 "", // true where it is absent
		"object.metadata.name in ['a', 'b'] && object.metadata.name != 'a'":                                                              "",
		"object.spec.?paused.orValue(true) || object.spec.?paused.orValue(false)":                                                        "",
		"has(object.metadata.labels) && has(object.spec) && has(object.metadata.namespace)":                                              "",
		"object.spec.template.spec.containers.exists(c, c.name == 'a') && object.spec.template.spec.containers.exists(c, c.name == 'b')": "",
		"object.metadata.name.startsWith('a') && object.metadata.name.startsWith('b')":                                                   "",
	} {
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		cases = append(cases, schemaCase{name: cel, spec: withCondition(cel), want: wanted})
	}
	testCheck(t, "constant-condition", cases)
}

// CEL-12, CEL-13.
func TestQuantityCompare(t *testing.T) {
	of := func(op, better string) string {
		return "a quantity is a string, and " + op + " compares strings letter by letter: write " + better
	}
	cases := []schemaCase{
		{name: "a field of a custom resource", crds: backupCRD, spec: backups + "condition: object.spec.size > '1Gi'\npatch: {merge: {spec: {keep: 1}}}",
			want: []string{"6:31: " + of(">", "quantity(string(object.spec.size)).isGreaterThan(quantity('1Gi'))")}},
		{name: "through a variable", spec: deployments + "variables:\n  - {name: m, expression: \"object.spec.template.spec.containers[0].resources.limits['memory']\"}\n  - {name: max, expression: \"'x' + 'y'\"}\ncondition: variables.m > variables.max\npatch: {merge: {spec: {paused: false}}}",
			want: []string{"9:26: " + of(">", "quantity(string(variables.m)).isGreaterThan(quantity(variables.max))")}},
		{name: "capacity of a claim, without a schema", spec: "resource: {group: unknown.io, version: v1, resource: things}\ncondition: object.status.capacity.storage <= object.spec.other\npatch: {merge: {spec: {a: b}}}",
			want: []string{"6:45: " + of("<=", "!quantity(string(object.status.capacity.storage)).isGreaterThan(quantity(string(object.spec.other)))")}},
	}
	for cel, want := range map[string]string{
		"object.metadata.name > '1Gi'":   "7:26: " + of(">", "quantity(string(object.metadata.name)).isGreaterThan(quantity('1Gi'))"),
		"'900Mi' < object.metadata.name": "7:13: " + of("<", "quantity('900Mi').isLessThan(quantity(string(object.metadata.name)))"),
		"object.spec.template.spec.containers.exists(c, c.resources.requests.cpu >= c.resources.limits.cpu)": "7:77: " + of(">=", "!quantity(string(c.resources.requests.cpu)).isLessThan(quantity(string(c.resources.limits.cpu)))"),
		"object.spec.template.spec.containers.exists(c, c.?resources.?limits[?'cpu'].orValue('0') > '1')":    "7:94: " + of(">", "quantity(c.?resources.?limits[?'cpu'].orValue('0')).isGreaterThan(quantity('1'))"),

		"object.metadata.name > 'abc'":                           "",
		"object.metadata.name == '1Gi'":                          "",
		"object.spec.?replicas.orValue(1) > 3":                   "",
		"object.metadata.name.size() > 3":                        "",
		"quantity('1Gi').isGreaterThan(quantity('1Mi'))":         "",
		"quantity('1Gi').compareTo(quantity('1Mi')) > 0":         "",
		"quantity(object.metadata.name).asInteger() > 5":         "",
		"object.metadata.?labels[?'limits'].orValue('') < 'abc'": "",
	} {
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		cases = append(cases, schemaCase{name: cel, spec: withCondition(cel), want: wanted})
	}
	testCheck(t, "quantity-compare", cases)
}

// CEL-02.
func TestEscapedName(t *testing.T) {
	cases := []schemaCase{
		{name: "the fields of an Object", spec: deployments + "patch:\n  applyConfiguration: \"${Object{metadata: Object.metadata{labels: Object.metadata.labels{a__slash__b: 'c'}}}}\"",
			want: []string{`7:105: "a__slash__b" is the field's name as it stands, not an escape: write 'a/b' in a map, {'a/b': …}`}},
	}
	for cel, want := range map[string]string{
		"!has(object.spec.nodeSelector) || !has(object.spec.nodeSelector.pool__dash__blue)": `7:40: "pool__dash__blue" is the field's name as it stands, not an escape: write 'pool-blue' in object.spec.nodeSelector`,
		"object.metadata.labels.app__dot__kubernetes__dot__io__slash__name == 'a'":          `7:28: "app__dot__kubernetes__dot__io__slash__name" is the field's name as it stands, not an escape: write object.metadata.labels['app.kubernetes.io/name']`,
		"object.metadata.?labels.?a__dash__b.orValue('') == 'a'":                            `7:30: "a__dash__b" is the field's name as it stands, not an escape: write object.metadata.?labels[?'a-b']`,
		"object.spec.__namespace__ == 'a'":                                                  `7:17: "__namespace__" is the field's name as it stands, not an escape: write object.spec.namespace`,
		"object.spec.a__underscores__b == 'a'":                                              `7:17: "a__underscores__b" is the field's name as it stands, not an escape: write object.spec.a__b`,

		"object.spec.a__b == 'a'":                                       "",
		"object.spec.dash == 'a'":                                       "",
		"'a__dash__b' in object.metadata.labels":                        "",
		"object.metadata.labels['a__dash__b'] == object.spec.__other__": "",
	} {
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		cases = append(cases, schemaCase{name: cel, spec: withCondition(cel), want: wanted})
	}
	testCheck(t, "escaped-name", cases)
}

// NUM-01.
func TestMixedNumbers(t *testing.T) {
	of := func(what, op, better string) string {
		return what + " is an int where its value is a whole number, and an int " + op + " a double is an error: write " + better
	}
	cases := []schemaCase{
		{name: "a number of a custom resource", crds: backupCRD, spec: backups + "condition: object.spec.ratio * 2.0 > 1.5\npatch: {merge: {spec: {keep: 1}}}",
			want: []string{"6:14: " + of("object.spec.ratio", "*", "double(object.spec.ratio)")}},
		{name: "converted", crds: backupCRD, spec: backups + "condition: double(object.spec.ratio) * 2.0 > 1.5\npatch: {merge: {spec: {keep: 1}}}"},
		{name: "a variable", spec: deployments + "variables:\n  - {name: x, expression: object.spec.x}\ncondition: 1.5 - variables.x > 0.0\npatch: {merge: {spec: {paused: true}}}",
			want: []string{"8:20: " + of("variables.x", "-", "double(variables.x)")}},
	}
	for cel, want := range map[string]string{
		"1.0 / object.spec.x < object.spec.y + 0.5":           "7:11: " + of("object.spec.x", "/", "double(object.spec.x)"),
		"object.spec.x > 0.5":                                 "",
		"object.spec.x * 2 > 4":                               "",
		"double(object.spec.x) * 2.0 > 1.5":                   "",
		"double(object.spec.x) + double(object.spec.y) > 1.5": "",
	} {
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		if cel[:3] == "1.0" {
			wanted = append(wanted, "7:27: "+of("object.spec.y", "+", "double(object.spec.y)"))
		}
		cases = append(cases, schemaCase{name: cel, spec: withUnknown(cel), want: wanted})
	}
	testCheck(t, "mixed-numbers", cases)
}

// withUnknown is a rule on a resource of which nothing is known, with a
// condition at 7:5.
func withUnknown(cel string) string {
	return "resource: {group: unknown.io, version: v1, resource: things}\ncondition: |-\n  " + cel + "\npatch: {merge: {metadata: {labels: {a: b}}}}"
}

func TestCost(t *testing.T) {
	pods := deployments + "lookups:\n  - name: pods\n    resource: {version: v1, resource: pods}\n    BOUND\ncondition: >-\n  "
	patch := "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	testCheck(t, "cost", []schemaCase{
		{name: "a whole lookup", spec: pods[:len(deployments)+len("lookups:\n  - name: pods\n    resource: {version: v1, resource: pods}\n")] + "condition: lookups.pods.exists(p, p.metadata.name == 'a')" + patch,
			want: []string{"9:27: exists goes over all objects that lookups.pods finds, each time that an object is looked at: let where, or namespace, find those that are meant"}},
		{name: "a whole lookup that is counted", spec: pods[:len(deployments)+len("lookups:\n  - name: pods\n    resource: {version: v1, resource: pods}\n")] + "condition: lookups.pods.size() > 3" + patch},
		{name: "a lookup in a loop", spec: deployments + "lookups:\n  - {name: pods, resource: {version: v1, resource: pods}, namespace: a}\ncondition: |-\n  object.spec.template.spec.containers.exists(c, lookups.pods.exists(p, p.metadata.name == c.name))" + patch,
			want: []string{"9:65: exists goes over all that lookups.pods finds, once for each element of the list around it: let where find those that are meant"}},
		{name: "a product", spec: withCondition("object.spec.template.spec.containers.exists(a, object.spec.template.spec.containers.exists(b, a.name == b.name))"),
			want: []string{"7:89: exists runs once for each element of the list around it: the cost is the product of both lengths"}},
		{name: "a walk through the object", spec: withCondition("object.spec.template.spec.containers.exists(a, a.?env.orValue([]).exists(b, a.name == b.name))")},
		{name: "a list of the rule", spec: withCondition("object.spec.template.spec.containers.exists(a, ['x', 'y'].exists(b, a.name == b))")},
		{name: "labels", spec: withCondition("object.spec.template.spec.containers.exists(a, object.metadata.?labels.orValue({}).exists(k, a.name == k))")},
		{name: "one after the other", spec: withCondition("object.spec.template.spec.containers.map(a, a.name).exists(n, n == 'a')")},
		{name: "an optional value", spec: withCondition("object.spec.template.spec.containers.exists(a, object.spec.?replicas.optMap(r, r > 1).orValue(false))")},
	})
}

func TestEventRule(t *testing.T) {
	rule := func(group, resource string) string {
		return "resources:\n  - {version: v1, resource: pods}\n  - {group: " + group + ", version: v1, resource: " + resource + "}\npatch: {merge: {metadata: {labels: {a: b}}}}"
	}
	const events = "the rule is about Events: each fix makes an Event, which the rule then sees, and Events are deleted after an hour"
	testCheck(t, "event-rule", []schemaCase{
		{name: "Events", spec: rule(`""`, "events"), want: []string{"7:42: " + events}},
		{name: "Events of the other group", spec: rule("events.k8s.io", "events"), want: []string{"7:53: " + events}},
		{name: "Leases", spec: rule("coordination.k8s.io", "leases"), want: []string{"7:59: the rule is about Leases: their holders write them every few seconds, rectifier's own among them, and a patch in between can cost the holder its lease"}},
		{name: "events of others", spec: rule("example.io", "events")},
		{name: "the core resource alone", spec: "resource: {version: v1, resource: events}\npatch: {merge: {metadata: {labels: {a: b}}}}", want: []string{"5:37: " + events}},
	})
}
