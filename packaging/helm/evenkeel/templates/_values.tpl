{{- /* Changes an object by the values, in place. */}}
{{- define "evenkeel.values" }}
{{- $values := .root.Values }}
{{- if has .object.kind (list "DaemonSet" "Deployment") }}
{{- $own := get $values (trimPrefix "evenkeel-" .object.metadata.name) }}
{{- $pod := .object.spec.template.spec }}
{{- $container := first $pod.containers }}
{{- include "evenkeel.image" (dict "container" $container "own" $own.image "all" $values.image) }}
{{- $verbose := $own.verbose | ternary (list "--verbose") list }}
{{- $_ := set $container "args" (concat $container.args $verbose $own.extraArgs) }}
{{- $_ := mergeOverwrite $container.resources $own.resources }}
{{- $_ := mergeOverwrite $pod.nodeSelector $own.nodeSelector }}
{{- if kindIs "slice" $own.tolerations }}
{{- $_ := set $pod "tolerations" $own.tolerations }}
{{- end }}
{{- with $values.image.pullSecrets }}
{{- $_ := set $pod "imagePullSecrets" . }}
{{- end }}
{{- else if and (eq .object.kind "PersistentVolumeClaim") (eq .object.metadata.name "evenkeel-state") }}
{{- with $values.claim.size }}
{{- $_ := set $.object.spec.resources.requests "storage" . }}
{{- end }}
{{- with $values.claim.storageClassName }}
{{- $_ := set $.object.spec "storageClassName" . }}
{{- end }}
{{- else if hasPrefix "monitoring.coreos.com/" .object.apiVersion }}
{{- $_ := mergeOverwrite .object.metadata.labels $values.prometheus.labels }}
{{- end }}
{{- end }}

{{- define "evenkeel.image" }}
{{- $name := regexReplaceAll ":[^:/]*$" .container.image "" }}
{{- $tag := .all.tag | default (trimPrefix (printf "%s:" $name) .container.image) }}
{{- with .all.registry }}
{{- $name = printf "%s/%s" (trimSuffix "/" .) (base $name) }}
{{- end }}
{{- $_ := set .container "image" (.own | default (printf "%s:%s" $name $tag)) }}
{{- with .all.pullPolicy }}
{{- $_ := set $.container "imagePullPolicy" . }}
{{- end }}
{{- end }}
