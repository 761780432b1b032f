# Shared by tests/btf/check and tests/btf/extract.

bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)

# unresolved OUT BTF OBJECT...: the relocations of the objects that find nothing in a BTF file, each once, as "KIND
# TYPE.MEMBER"; OUT becomes the part of the BTF that they found. Fails on anything else that went wrong.
#
# bpftool prints what libbpf does: "relo #N: <kind> [id] spec = value (..)", then, if so, that nothing matches. Its exit
# status says nothing.
unresolved() {
	local log=$1.log
	if ! "$bpftool" -d gen min_core_btf "$2" "$1" "${@:3}" >"$log" 2>&1 ||
		grep -E 'Error:|: failed|ambigu|incompatible|unexpected|corrupt' "$log" >&2; then
		tail -n 3 "$log" >&2
		return 1
	fi
	awk '
		/: relo #[0-9]+: <[a-z_]+> \[[0-9]+\] / {
			sub(/^.*: relo #[0-9]+: </, ""); sub(/> \[[0-9]+\]/, ""); sub(/ (= .*|\([0-9].*)$/, "")
			relocation = $0
			next
		}
		/: no matching targets found$/ { print relocation }
	' "$log" | LC_ALL=C sort -u
}
