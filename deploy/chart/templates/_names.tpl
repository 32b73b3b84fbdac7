{{/* The name of everything: the release's, with the chart's unless it is in there. */}}
{{- define "rectifier.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The name of what is not in the release's namespace: releases in other namespaces
may have the same full name. A colon is in neither part, so that no two are equal.
*/}}
{{- define "rectifier.farName" -}}
{{- printf "%s:%s" (include "rectifier.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "rectifier.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "rectifier.labels" -}}
{{ include "rectifier.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- define "rectifier.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "rectifier.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.create is false: give serviceAccount.name" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap with the rules; empty: there is none. */}}
{{- define "rectifier.rulesConfigMap" -}}
{{- if .Values.existingConfigMap -}}
{{- .Values.existingConfigMap -}}
{{- else if .Values.rules -}}
{{- include "rectifier.fullname" . }}-rules
{{- end -}}
{{- end -}}

{{- define "rectifier.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
80 % of the memory limit for Go's garbage collector, which then works harder
instead of letting the kernel end the process. Only Mi and Gi are read; for
anything else the variable is left out.
*/}}
{{- define "rectifier.goMemoryLimit" -}}
{{- $limit := dig "limits" "memory" "" (.Values.resources | default dict) | toString -}}
{{- if regexMatch "^[0-9]+Mi$" $limit -}}
{{- printf "%dMiB" (div (mul (trimSuffix "Mi" $limit | int64) 80) 100) -}}
{{- else if regexMatch "^[0-9]+Gi$" $limit -}}
{{- printf "%dMiB" (div (mul (trimSuffix "Gi" $limit | int64) 1024 80) 100) -}}
{{- end -}}
{{- end -}}
