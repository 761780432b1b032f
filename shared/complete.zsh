#compdef PROGRAM
_FUNCTION() {
	local line directive=4
	local -a candidates
	while IFS= read -r line; do
		case $line in
		:*) directive=${line#:} ;;
		*$'\t'*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
		*) candidates+=("${line//:/\\:}") ;;
		esac
	done < <(${~words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
	(( $#candidates )) && _describe PROGRAM candidates
	[[ $PREFIX == --*=* ]] && compset -P '*='
	case $directive in
	0) _files ;;
	16) _files -/ ;;
	esac
}
if [[ ${funcstack[1]} == _FUNCTION ]]; then _FUNCTION "$@"; else compdef _FUNCTION PROGRAM; fi
