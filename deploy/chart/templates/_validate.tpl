{{/*
What ties rights to the rules that they were made for; `rectifier rbac -o helm`
makes the same (cmd/rectifier/rbachelm.go): the SHA-256 of a line for each file,
as sha256sum prints it, and one for each other value that decides. A built-in rule
counts with its text, which files/builtin.sha256 stands for here.
*/}}
{{- define "rectifier.digest" -}}
{{- $lines := list -}}
{{- range $name := keys (.Values.rules | default dict) | sortAlpha -}}
{{- $lines = append $lines (printf "%s  %s" (get $.Values.rules $name | sha256sum) $name) -}}
{{- end -}}
{{- with .Values.existingConfigMap -}}
{{- $lines = append $lines (printf "configmap %s" .) -}}
{{- end -}}
{{- range .Values.builtin | default list | uniq | sortAlpha -}}
{{- $lines = append $lines (printf "builtin %s %s" . (include "rectifier.builtinSum" (list $ .))) -}}
{{- end -}}
{{- range .Values.namespaces | default list | uniq | sortAlpha -}}
{{- $lines = append $lines (printf "namespace %s" .) -}}
{{- end -}}
{{- join "\n" $lines | sha256sum -}}
{{- end -}}

{{/* The SHA-256 of a built-in rule as the binary of this chart has it. */}}
{{- define "rectifier.builtinSum" -}}
{{- $name := index . 1 -}}
{{- $sum := "" -}}
{{- range (index . 0).Files.Lines "files/builtin.sha256" -}}
{{- if hasSuffix (printf "  %s" $name) . -}}
{{- $sum = splitList " " . | first -}}
{{- end -}}
{{- end -}}
{{- $sum | default "unknown" -}}
{{- end -}}

{{/* The command that makes the rights for these values; with rules in any case, if asked. */}}
{{- define "rectifier.rbacCommand" -}}
{{- $values := (index . 0).Values -}}
rectifier rbac
{{- if or $values.rules $values.existingConfigMap (index . 1) }} --rules rules/{{ end }}
{{- include "rectifier.scopeFlags" (index . 0) }}
{{- with $values.existingConfigMap }} --config-map {{ . }}{{ end }} -o helm
{{- end -}}

{{/* What rectifier rbac must know beside the rules. */}}
{{- define "rectifier.scopeFlags" -}}
{{- $builtin := join "," (.Values.builtin | default list) -}}
{{- if ne $builtin "expected-replicas" }} --builtin {{ $builtin | default "none" }}{{ end }}
{{- with .Values.namespaces }} --namespace {{ join "," . }}{{ end }}
{{- end -}}

{{/* What diff --cluster must know to look at what the pods look at, and no more. */}}
{{- define "rectifier.lookFlags" -}}
{{- include "rectifier.scopeFlags" . -}}
{{- with .Values.excludeNamespaces }} --exclude-namespace '{{ join "," . }}'{{ end }}
{{- end -}}

{{/* Refuses values that would install something else than what was meant. */}}
{{- define "rectifier.validate" -}}
{{- with .Values.error -}}
{{- fail . -}}
{{- end -}}
{{- if and .Values.rules .Values.existingConfigMap -}}
{{- fail "rules and existingConfigMap are both set: rules come from one of them" -}}
{{- end -}}
{{- if not (or .Values.rules .Values.existingConfigMap .Values.builtin) -}}
{{- fail "there is no rule: set rules, existingConfigMap or builtin" -}}
{{- end -}}
{{- if .Values.rbac.create -}}
{{- if ne (.Values.rbac.digest | default "") (include "rectifier.digest" .) -}}
{{- fail (printf "\n\nrbac holds the rights for other rules or namespaces than these values have, or for a\nbuilt-in rule of another version. With the rectifier of this chart's version, make values\nwith the rules and just their rights by\n\n  %s\n\nand give them to helm with -f (or rbac.create=false, if somebody else grants the rights).\n" (include "rectifier.rbacCommand" (list . false))) -}}
{{- end -}}
{{- range .Values.rbac.clusterRules -}}
{{- include "rectifier.validateRight" (list $ .) -}}
{{- end -}}
{{- range $namespace, $rules := .Values.rbac.namespaceRules -}}
{{- if not (has $namespace ($.Values.namespaces | default list)) -}}
{{- fail (printf "rbac.namespaceRules names the namespace %s, which is not in namespaces" $namespace) -}}
{{- end -}}
{{- range $rules -}}
{{- include "rectifier.validateRight" (list $ .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "rectifier.validateExcluded" . -}}
{{- $name := include "rectifier.fullname" . -}}
{{- if and .Values.metrics.enabled (not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name)) -}}
{{- fail (printf "metrics.enabled makes a Service, and its name cannot be %s: it begins with a letter, and has no dot. Set fullnameOverride" $name) -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled: without it, metrics are served inside of the pod only" -}}
{{- end -}}
{{- if and .Values.metrics.prometheusRule.enabled (not (.Files.Get "files/alerts.yaml")) -}}
{{- fail "metrics.prometheusRule.enabled: this chart has no files/alerts.yaml" -}}
{{- end -}}
{{- if and .Values.metrics.dashboard.enabled (not (.Files.Get "files/dashboard.json")) -}}
{{- fail "metrics.dashboard.enabled: this chart has no files/dashboard.json" -}}
{{- end -}}
{{- end -}}

{{/*
Refuses what the binary would refuse at its start, in its words
(cmd/rectifier/exclude.go). The schema lets only * of all wildcards through.
*/}}
{{- define "rectifier.validateExcluded" -}}
{{- $excluded := .Values.excludeNamespaces | default list -}}
{{- range $excluded -}}
{{- if and (not (contains "*" .)) (or (gt (len .) 63) (hasPrefix "-" .) (hasSuffix "-" .)) -}}
{{- fail (printf "excludeNamespaces: %q matches no name that a namespace can have" .) -}}
{{- end -}}
{{- end -}}
{{- $left := list -}}
{{- range $namespace := .Values.namespaces | default list -}}
{{- $matched := false -}}
{{- range $excluded -}}
{{- if regexMatch (printf "^%s$" (replace "*" ".*" .)) $namespace -}}
{{- $matched = true -}}
{{- end -}}
{{- end -}}
{{- if not $matched -}}
{{- $left = append $left $namespace -}}
{{- end -}}
{{- end -}}
{{- if and .Values.namespaces (not $left) -}}
{{- fail (printf "nothing is left to look at: excludeNamespaces %s excludes all of namespaces %s" (join "," $excluded) (join "," .Values.namespaces)) -}}
{{- end -}}
{{- end -}}

{{/*
Refuses a right on what the safety of the whole cluster hangs on, unless that is
allowed: docs/install.md#permissions lists it. It is no sandbox: to change the pods
of a namespace is to have its Secrets, and passes.
*/}}
{{- define "rectifier.validateRight" -}}
{{- $values := (index . 0).Values -}}
{{- $right := index . 1 -}}
{{- $why := "" -}}
{{- range $right.apiGroups -}}
{{- if has . (list "*" "rbac.authorization.k8s.io" "admissionregistration.k8s.io" "apiregistration.k8s.io" "certificates.k8s.io") -}}
{{- $why = printf "the API group %s" . -}}
{{- end -}}
{{- end -}}
{{- range $right.resources -}}
{{- if or (contains "*" .) (and (has "" $right.apiGroups) (eq (splitList "/" . | first) "secrets")) -}}
{{- $why = printf "the resource %s" . -}}
{{- end -}}
{{- end -}}
{{- range $right.verbs -}}
{{- if and (has "apiextensions.k8s.io" $right.apiGroups) (not (has . (list "get" "list" "watch"))) -}}
{{- $why = "the API group apiextensions.k8s.io" -}}
{{- end -}}
{{- if has . (list "*" "escalate" "bind" "impersonate") -}}
{{- $why = printf "the verb %s" . -}}
{{- end -}}
{{- end -}}
{{- if and $why (not $values.rbac.allowSensitive) -}}
{{- fail (printf "rbac grants %s to %s: the safety of the whole cluster hangs on that.\nSet rbac.allowSensitive=true if the rules are meant to have it." (join ", " $right.verbs) $why) -}}
{{- end -}}
{{- end -}}

{{/* What of rights is granted: all, or with dryRun what reads. */}}
{{- define "rectifier.grants" -}}
{{- $dryRun := index . 0 -}}
{{- $out := list -}}
{{- range index . 1 -}}
{{- $verbs := list -}}
{{- range .verbs -}}
{{- if or (not $dryRun) (has . (list "get" "list" "watch")) -}}
{{- $verbs = append $verbs . -}}
{{- end -}}
{{- end -}}
{{- if $verbs -}}
{{- $out = append $out (merge (dict "verbs" $verbs) .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $out -}}
{{- end -}}
