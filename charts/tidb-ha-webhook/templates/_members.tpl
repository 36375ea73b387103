{{/*
Who is a member, in CEL. Labels may be absent, null or empty: every look is an optional one, since an error would
follow the failure policy for pods that are no business of ours.

The list is webhook.core.groups.MEMBER_CLASSES; a test compares them.
*/}}
{{- define "webhook.members" -}}
["dm-master", "pd", "tikv"]
{{- end -}}

{{- define "webhook.isV2" -}}
(has(object.metadata.labels) && object.metadata.labels[?"pingcap.com/managed-by"].orValue("") == "tidb-operator")
{{- end -}}

{{- define "webhook.isV2Member" -}}
({{ include "webhook.isV2" . }} &&
 object.metadata.labels[?"pingcap.com/component"].orValue("") in {{ include "webhook.members" . }} &&
 object.metadata.labels[?"pingcap.com/cluster"].orValue("") != "")
{{- end -}}

{{- define "webhook.isV1Member" -}}
(has(object.metadata.labels) && !{{ include "webhook.isV2" . }} &&
 object.metadata.labels[?"app.kubernetes.io/managed-by"].orValue("") == "tidb-operator" &&
 object.metadata.labels[?"app.kubernetes.io/name"].orValue("") in ["tidb-cluster", "dm-cluster"] &&
 object.metadata.labels[?"app.kubernetes.io/component"].orValue("") in {{ include "webhook.members" . }} &&
 object.metadata.labels[?"app.kubernetes.io/instance"].orValue("") != "")
{{- end -}}

{{- define "webhook.isMember" -}}
{{ include "webhook.isV2Member" . }} ||
{{ include "webhook.isV1Member" . }}
{{- end -}}

{{/* Backup jobs, TiBR servers and copies made by hand carry the labels too. */}}
{{- define "webhook.hasOwner" -}}
has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o,
  o.?controller.orValue(false) &&
  ((o.kind == "StatefulSet" && (o.apiVersion.startsWith("apps/") || o.apiVersion.startsWith("apps.pingcap.com/"))) ||
   o.apiVersion.startsWith("core.pingcap.com/")))
{{- end -}}

{{/* Static and daemon pods have their node already. */}}
{{- define "webhook.isUnplaced" -}}
!has(object.spec.nodeName) || object.spec.nodeName == ""
{{- end -}}
