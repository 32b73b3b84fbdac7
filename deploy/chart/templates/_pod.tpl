{{/* The command line: a test gives it to the real command. */}}
{{- define "rectifier.args" -}}
{{- $flags := list "--leader-elect" (printf "--lease-name=%s" (include "rectifier.fullname" .)) "--health-address=:8081" "--bind-address=127.0.0.1:8080" -}}
{{- if .Values.metrics.enabled -}}
{{- $flags = concat $flags (list "--metrics-address=:8443" "--authorize") -}}
{{- if .Values.metrics.tlsSecretName -}}
{{- $flags = concat $flags (list "--tls-cert-file=/etc/rectifier/tls/tls.crt" "--tls-private-key-file=/etc/rectifier/tls/tls.key") -}}
{{- end -}}
{{- end -}}
{{- if include "rectifier.rulesConfigMap" . -}}
{{- $flags = append $flags "--rules=/etc/rectifier/rules" -}}
{{- end -}}
{{- $flags = append $flags (printf "--builtin=%s" (join "," (.Values.builtin | default list) | default "none")) -}}
{{- range .Values.namespaces -}}
{{- $flags = append $flags (printf "--namespace=%s" .) -}}
{{- end -}}
{{- range .Values.excludeNamespaces -}}
{{- $flags = append $flags (printf "--exclude-namespace=%s" .) -}}
{{- end -}}
{{- if .Values.dryRun -}}
{{- $flags = append $flags "--dry-run" -}}
{{- end -}}
{{- if .Values.strictRules -}}
{{- $flags = append $flags "--strict-rules" -}}
{{- end -}}
{{- /* Numbers of a file are floats, which are printed as 1e+06 unless JSON is made of them. */ -}}
{{- range $flag := list "workers" "qps" "burst" -}}
{{- $value := index $.Values $flag -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $flags = append $flags (printf "--%s=%s" $flag (toJson $value)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.verbosity -}}
{{- $flags = append $flags (printf "--v=%s" (toJson .Values.verbosity)) -}}
{{- end -}}
{{- toYaml (concat (list "run") $flags (.Values.extraArgs | default list)) -}}
{{- end -}}

{{- define "rectifier.env" -}}
{{- $env := .Values.extraEnv | default list -}}
{{- $given := false -}}
{{- range $env -}}
{{- if eq .name "GOMEMLIMIT" -}}{{- $given = true -}}{{- end -}}
{{- end -}}
{{- $limit := include "rectifier.goMemoryLimit" . -}}
{{- if and $limit (not $given) -}}
{{- $env = prepend $env (dict "name" "GOMEMLIMIT" "value" $limit) -}}
{{- end -}}
{{- if $env -}}
{{- toYaml $env -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap is mounted as a folder, never by subPath: that is not updated. */}}
{{- define "rectifier.mounts" -}}
{{- if include "rectifier.rulesConfigMap" . -}}
- {name: rules, mountPath: /etc/rectifier/rules, readOnly: true}
{{ end -}}
{{- if and .Values.metrics.enabled .Values.metrics.tlsSecretName -}}
- {name: tls, mountPath: /etc/rectifier/tls, readOnly: true}
{{ end -}}
{{- end -}}

{{- define "rectifier.volumes" -}}
{{- with include "rectifier.rulesConfigMap" . -}}
- name: rules
  configMap: {name: {{ . | quote }}}
{{ end -}}
{{- if and .Values.metrics.enabled .Values.metrics.tlsSecretName -}}
- name: tls
  secret: {secretName: {{ .Values.metrics.tlsSecretName | quote }}}
{{ end -}}
{{- end -}}

{{- define "rectifier.spread" -}}
{{- if not (kindIs "invalid" .Values.topologySpreadConstraints) -}}
{{- if .Values.topologySpreadConstraints -}}
{{- toYaml .Values.topologySpreadConstraints -}}
{{- end -}}
{{- else -}}
{{- range $i, $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
{{- if $i }}
{{ end -}}
- topologyKey: {{ $key }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "rectifier.selectorLabels" $ | nindent 6 }}
  # Pods of one version are spread, also in the middle of a rolling update.
  matchLabelKeys: [pod-template-hash]
{{- end -}}
{{- end -}}
{{- end -}}
