# bash completion of PROGRAM
_FUNCTION()
{
	local line directive=4 word=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:*) directive=${line#:} ;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	[ "$word" != = ] || word=
	case $directive in
	0) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	16) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	esac
}
complete -F _FUNCTION PROGRAM
