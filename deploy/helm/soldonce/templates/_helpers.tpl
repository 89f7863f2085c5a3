{{- define "soldonce.labels" -}}
app.kubernetes.io/name: soldonce
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "soldonce.selector" -}}
app.kubernetes.io/name: soldonce
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- /* What every container may: nothing but what it is for. */ -}}
{{- define "soldonce.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "soldonce.environment" -}}
envFrom:
  - configMapRef: { name: {{ .Release.Name }} }
  - secretRef: { name: {{ .Values.existingSecret | default .Release.Name }} }
{{- end }}

{{- /* A list as its variable wants it: addresses of leases may have commas of their own. A number of a file of values is
a float, which as text would be 1e+06. */ -}}
{{- define "soldonce.variable" -}}
{{- $name := first . -}}
{{- $value := kindIs "float64" (last .) | ternary (toJson (last .)) (last .) -}}
SOLDONCE_{{ upper $name }}: {{ join (eq $name "lease_url" | ternary " " ",") $value | quote }}
{{- end }}
