# evict POD NAMESPACE UID: tries until the API accepts the eviction or the pod is gone
# remember POD NAMESPACE WORKLOAD: notes how many pods of the pod's workload are ready
# settle: waits until evicted pods are gone and remembered workloads as ready as before
# Each wait ends with an error after 10 minutes; sh -e stops there.
gone= ready=
try() {
  failure=$1 tries=300; shift
  until "$@"; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || { echo "$failure after 10 minutes" >&2; return 1; }
    sleep 2
  done
}
is_gone() {
  uid=$(kubectl get pod "$1" -n "$2" --ignore-not-found -o 'jsonpath={.metadata.uid}') &&
    [ "$uid" != "$3" ]
}
is_evicted() {
  is_gone "$@" ||
    printf '{"apiVersion":"EVICTION_API","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},"deleteOptions":{"preconditions":{"uid":"%s"}}}' "$@" |
    kubectl create --raw "/api/v1/namespaces/$2/pods/$1/eviction" -f - >/dev/null
}
evict() {
  try "pod $2/$1 is not evicted" is_evicted "$@" || return 1
  echo "pod $2/$1 is evicted"
  gone="$gone try 'pod $2/$1 is not gone' is_gone $1 $2 $3 &&"
}
count() { kubectl get "$2" -n "$1" -o 'jsonpath={.spec.replicas} {.status.readyReplicas}'; }
is_counted() { now=$(count "$1" "$2"); }
is_ready() {
  before=$3; set -- $(count "$@")
  [ "${2:-0}" -ge "$before" ] || [ "${2:-0}" -ge "${1:-1}" ]
}
remember() {
  try "$3 of pod $2/$1 is not read" is_counted "$2" "$3" || return 1
  now=${now#* }
  ready="$ready try 'pod $2/$1 is not replaced in $3' is_ready $2 $3 ${now:-0} &&"
}
settle() {
  eval "$gone true" || return 1
  sleep 5 # until controllers have counted
  eval "$ready true" || return 1
  gone= ready=
}
