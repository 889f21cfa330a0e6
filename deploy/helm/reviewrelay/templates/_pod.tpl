{{/* The parts that all pods share. Calls pass a dict of `root` and `role`. */}}

{{- define "reviewrelay.labels" -}}
app: reviewrelay
role: {{ .role }}
{{- end }}

{{- define "reviewrelay.container" -}}
image: {{ with .root.Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.root.Chart.AppVersion }}{{ end }}{{ end }}
envFrom:
  - configMapRef: { name: reviewrelay }
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: secrets, mountPath: /secrets, readOnly: true }
  - { name: tmp, mountPath: /tmp }
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
  {{- with .root.Values.secret.migrations }}
  - name: migrations
    secret: { secretName: {{ . }}, defaultMode: 0440 }
  {{- end }}
  - name: tmp
    emptyDir: {}
{{- end }}
