package lint_test

import "testing"

func TestEmptyLookup(t *testing.T) {
	const head = "resource: {version: v1, resource: persistentvolumeclaims}\nlookups:\n  - name: sc\n    resource: {group: storage.k8s.io, version: v1, resource: storageclasses}\n    labelSelector: {matchLabels: {a: b}}\n"
	const patch = "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	const empty = "lookups.sc may be empty: ask lookups.sc.size() > 0 first, or write lookups.sc[?0].?provisioner.orValue('')"
	cases := []schemaCase{
		{name: "a patch", spec: head + "patch:\n  merge: {metadata: {labels: {a: \"${lookups.sc[0].provisioner}\"}}}", want: []string{"11:49: " + empty}},
		{name: "a patch behind the condition", spec: head + "condition: lookups.sc.size() == 1\npatch:\n  merge: {metadata: {labels: {a: \"${lookups.sc[0].provisioner}\"}}}"},
		{name: "a variable", spec: head + "variables:\n  - {name: p, expression: \"lookups.sc[0].provisioner\"}\ncondition: variables.p == 'a'" + patch, want: []string{"11:40: " + empty}},
		{name: "a variable that is read behind a guard", spec: head + "variables:\n  - {name: p, expression: \"lookups.sc[0].provisioner\"}\ncondition: lookups.sc.size() > 0 && variables.p == 'a'" + patch},
		{name: "under another name", spec: head + "variables:\n  - {name: all, expression: lookups.sc}\ncondition: variables.all[0].provisioner == 'a'" + patch,
			want: []string{"12:27: variables.all may be empty: ask variables.all.size() > 0 first, or write variables.all[?0].?provisioner.orValue('')"}},
		{name: "a message of an Event", spec: head + "event: {message: \"${lookups.sc[0].provisioner}\"}" + patch},
	}
	for cel, want := range map[string]string{
		"lookups.sc[0].provisioner == 'a'":                                    "11:15: " + empty,
		"has(lookups.sc[0].provisioner)":                                      "11:19: lookups.sc may be empty: ask lookups.sc.size() > 0 first, or write lookups.sc[?0].?provisioner.hasValue()",
		"lookups.sc.size() < 2 && lookups.sc[0].provisioner == 'a'":           "11:40: " + empty,
		"lookups.sc.size() > 0 || lookups.sc[0].provisioner == 'a'":           "11:40: " + empty,
		"lookups.sc.all(s, s.provisioner == 'a') && lookups.sc[0].kind == ''": "11:58: lookups.sc may be empty: ask lookups.sc.size() > 0 first, or write lookups.sc[?0].?kind.orValue('')",
		"lookups.sc.size() > 0 && lookups.sc[1].provisioner == 'a'":           "11:40: lookups.sc may have no element 1: ask lookups.sc.size() > 1 first, or write lookups.sc[?1].?provisioner.orValue('')",
		"lookups.sc.filter(s, s.provisioner == 'a')[0].metadata.name == 'b'":  "11:47: this list may be empty: ask whether its size() > 0 first, or write …[?0].?metadata.?name.orValue('')",

		"lookups.sc.size() > 0 && lookups.sc[0].provisioner == 'a'":                                                             "",
		"lookups.sc[0].provisioner == 'a' && size(lookups.sc) != 0":                                                             "",
		"lookups.sc.size() == 0 || lookups.sc[0].provisioner == 'a'":                                                            "",
		"lookups.sc != [] && lookups.sc[0].provisioner == 'a'":                                                                  "",
		"lookups.sc.exists(s, s.provisioner == 'a') && lookups.sc[0].provisioner == 'a'":                                        "",
		"lookups.sc.size() >= 2 && lookups.sc[1].provisioner == lookups.sc[0].provisioner":                                      "",
		"lookups.sc.size() == 1 ? lookups.sc[0].provisioner == 'a' : false":                                                     "",
		"lookups.sc[?0].?provisioner.orValue('') == 'a'":                                                                        "",
		"lookups.sc.sortBy(s, s.metadata.name).size() > 0 && lookups.sc.sortBy(s, s.metadata.name)[0].provisioner == 'a'":       "",
		"lookups.sc.filter(s, s.kind == 'a').size() > 0 && lookups.sc.filter(s, s.kind == 'a')[0].metadata.name == 'b'":         "",
		"object.spec.accessModes[0] == 'a' && lookups.sc.exists(s, s.allowedTopologies[0].matchLabelExpressions[0].key == 'a')": "",
	} {
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		cases = append(cases, schemaCase{name: cel, spec: head + "condition: |-\n  " + cel + patch, want: wanted})
	}
	testCheck(t, "empty-lookup", cases)
}
