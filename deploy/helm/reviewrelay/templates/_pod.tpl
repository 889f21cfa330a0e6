{{/* The parts that all pods share. Calls pass a dict of `root` and `role`. */}}

{{/*
The Secret with the address of the tables' owner, for pods that may have it. No pod of the API refers to it, because an API
answers requests from outside.
*/}}
{{- define "reviewrelay.owner" -}}
{{- if ne .role "api" }}{{ .root.Values.secret.migrations }}{{ end }}
{{- end }}

{{- define "reviewrelay.labels" -}}
app: reviewrelay
role: {{ .role }}
{{- end }}

{{- define "reviewrelay.container" -}}
image: {{ with .root.Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.root.Chart.AppVersion }}{{ end }}{{ end }}
envFrom:
  - configMapRef: { name: reviewrelay }
{{- if include "reviewrelay.owner" . }}
env:
  - { name: MAINTENANCE_DATABASE_URL_FILE, value: /migrations/database_url }
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: secrets, mountPath: /secrets, readOnly: true }
  - { name: tmp, mountPath: /tmp }
  {{- if include "reviewrelay.owner" . }}
  - { name: migrations, mountPath: /migrations, readOnly: true }
  {{- end }}
{{- end }}

{{- define "reviewrelay.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
automountServiceAccountToken: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
volumes:
  - name: secrets
    secret: { secretName: {{ .root.Values.secret.name }}, defaultMode: 0440 }
  {{- with include "reviewrelay.owner" . }}
  - name: migrations
    secret: { secretName: {{ . }}, defaultMode: 0440 }
  {{- end }}
  - name: tmp
    emptyDir: {}
{{- end }}
