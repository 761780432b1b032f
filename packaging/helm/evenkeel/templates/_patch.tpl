{{- /*
Carries out an operation of a JSON patch (RFC 6902: add, remove, replace, test) on an object, in place. A list cannot be changed in place: the
map that holds it gets a new one.
*/}}
{{- define "evenkeel.patch" }}
{{- $op := .operation.op }}
{{- $at := .object }}
{{- $map := dict }}
{{- $key := "" }}
{{- $parts := splitList "/" (trimPrefix "/" .operation.path) }}
{{- range initial $parts }}
{{- if kindIs "slice" $at }}
{{- $at = index $at (int .) }}
{{- else }}
{{- $map = $at }}
{{- $key = . }}
{{- $at = get $at . }}
{{- end }}
{{- end }}
{{- $last := last $parts }}
{{- if kindIs "slice" $at }}
{{- $n := eq $last "-" | ternary (len $at) (int $last) }}
{{- $rest := slice $at (eq $op "add" | ternary $n (int (add $n 1))) }}
{{- $middle := eq $op "remove" | ternary list (list .operation.value) }}
{{- if eq $op "test" }}
{{- include "evenkeel.test" (dict "is" (index $at $n) "patch" .) }}
{{- else }}
{{- $_ := set $map $key (concat (slice $at 0 $n) $middle $rest) }}
{{- end }}
{{- else if eq $op "test" }}
{{- include "evenkeel.test" (dict "is" (get $at $last) "patch" .) }}
{{- else if eq $op "remove" }}
{{- $_ := unset $at $last }}
{{- else }}
{{- $_ := set $at $last .operation.value }}
{{- end }}
{{- end }}

{{- define "evenkeel.test" }}
{{- if ne (toJson .is) (toJson .patch.operation.value) }}
{{- fail (printf "overlay %s does not go with the overlays before it, by name: %s of %s is %s" .patch.overlay .patch.operation.path
    .patch.object.metadata.name (toJson .is)) }}
{{- end }}
{{- end }}
