{{/*
Names. Fifty characters leave room for suffixes within the 63 that names of Services and label values have.
*/}}
{{- define "webhook.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "webhook.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- (contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name)) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/*
Objects without a namespace: two releases of one name live in two namespaces. Neither part can hold a dot, so that no
two pairs make one name.
*/}}
{{- define "webhook.clusterName" -}}
{{- printf "%s.%s" (include "webhook.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "webhook.serviceAccountName" -}}
{{- default (.Values.serviceAccount.create | ternary (include "webhook.fullname" .) "default") .Values.serviceAccount.name -}}
{{- end -}}

{{/* The controller's own Deployment, account, Lease. Its pods must not be found by the Service of the reviews. */}}
{{- define "webhook.controllerName" -}}
{{- printf "%s-controller" (include "webhook.fullname" .) -}}
{{- end -}}

{{- define "webhook.controllerServiceAccountName" -}}
{{- default (include "webhook.controllerName" .) .Values.controller.serviceAccountName -}}
{{- end -}}

{{- define "webhook.controllerSelectorLabels" -}}
app.kubernetes.io/name: {{ include "webhook.name" . }}-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "webhook.selectorLabels" -}}
app.kubernetes.io/name: {{ include "webhook.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* No version of chart or image in here: it would be a change of every object at each upgrade. */}}
{{- define "webhook.labels" -}}
{{ include "webhook.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: tidb-ha-webhook
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "webhook.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "webhook.selfManaged" -}}
{{- eq .Values.certificates.mode "selfManaged" | ternary "true" "" -}}
{{- end -}}

{{/*
What the container beside the server does: "run" makes the certificate, "publish" only has the API server trust somebody
else's; "": there is none.
*/}}
{{- define "webhook.keeper" -}}
{{- $by := include "webhook.certificatesBy" . -}}
{{- eq $by "selfManaged" | ternary "run" (has $by (list "existingSecret" "certManager") | ternary "publish" "") -}}
{{- end -}}

{{/* Who makes the certificate and says what is trusted; keepers of another mode write nothing (certs.state.Mode). */}}
{{- define "webhook.certificatesBy" -}}
{{- $c := .Values.certificates -}}
{{- if eq $c.mode "certManager" -}}
{{- $c.certManager.injector | ternary "injector" "certManager" -}}
{{- else if and (eq $c.mode "existingSecret") (not $c.existingSecret.caBundle) -}}
nobody
{{- else -}}
{{- $c.mode -}}
{{- end -}}
{{- end -}}

{{/* The Secret whose files the server reads; each mode has its own, so that switching deletes none in use. */}}
{{- define "webhook.tlsSecretName" -}}
{{- eq .Values.certificates.mode "existingSecret" | ternary .Values.certificates.existingSecret.name (printf "%s-cert-manager" (include "webhook.fullname" .)) -}}
{{- end -}}

{{- define "webhook.floor" -}}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- eq (toString .Values.floor.enabled) "auto" | ternary $served (eq (toString .Values.floor.enabled) "true") | ternary "true" "" -}}
{{- end -}}

{{- define "webhook.failurePolicy" -}}
{{- if eq .Values.webhook.failurePolicy "auto" -}}
{{- eq (include "webhook.floor" .) "true" | ternary "Ignore" "Fail" -}}
{{- else -}}
{{- .Values.webhook.failurePolicy -}}
{{- end -}}
{{- end -}}

{{- define "webhook.excludedNamespaces" -}}
{{- append .Values.webhook.excludedNamespaces .Release.Namespace | uniq | toJson -}}
{{- end -}}

{{- define "webhook.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ include "webhook.excludedNamespaces" . }}
{{- with .Values.webhook.namespaceMatchExpressions }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A pod in a namespace that is not looked at would come back as it went. */}}
{{- define "webhook.testable" -}}
{{- has .Values.test.namespace (append .Values.webhook.excludedNamespaces .Release.Namespace) | ternary "" "true" -}}
{{- end -}}

{{/* What the containers, the clean-up and the test are allowed: nothing. Passes Pod Security "restricted". */}}
{{- define "webhook.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "webhook.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Flags by which `python -m certs` finds the release's objects. */}}
{{- define "webhook.certsTarget" -}}
- --in-cluster
- --namespace={{ .Release.Namespace }}
- --service={{ include "webhook.fullname" . }}
- --configuration={{ include "webhook.clusterName" . }}
- --secret={{ include "webhook.fullname" . }}-certificates
- --lease={{ include "webhook.fullname" . }}-certs
{{- end -}}
