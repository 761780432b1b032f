/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shells read to complete a program's arguments. The scripts know no option: they hand the
 * words to the program and offer what it answers (cli_spec.h), so they suit every version of it. In
 * the templates PROGRAM is its name, and FUNCTION that name as a shell function may have it.
 */
#include "shared/cli_spec.h"

#include <string.h>

const char *const cli_spec_shells[] = {"bash", "zsh", "fish", NULL};

static const char bash[] = "# bash completion of PROGRAM\n"
			   "_FUNCTION()\n"
			   "{\n"
			   "\tlocal line directive=4 word=${COMP_WORDS[COMP_CWORD]}\n"
			   "\tCOMPREPLY=()\n"
			   "\twhile IFS= read -r line; do\n"
			   "\t\tcase $line in\n"
			   "\t\t:*) directive=${line#:} ;;\n"
			   "\t\t*) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
			   "\t\tesac\n"
			   "\tdone < <(\"${COMP_WORDS[0]/#\\~/$HOME}\" __complete "
			   "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
			   "\t[ \"$word\" != = ] || word=\n"
			   "\tcase $directive in\n"
			   "\t0) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < "
			   "<(compgen -f -- \"$word\") ;;\n"
			   "\t16) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < "
			   "<(compgen -d -- \"$word\") ;;\n"
			   "\tesac\n"
			   "}\n"
			   "complete -F _FUNCTION PROGRAM\n";

static const char zsh[] =
	"#compdef PROGRAM\n"
	"_FUNCTION() {\n"
	"\tlocal line directive=4\n"
	"\tlocal -a candidates\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t:*) directive=${line#:} ;;\n"
	"\t\t*$'\\t'*) candidates+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
	"\t\t*) candidates+=(\"${line//:/\\\\:}\") ;;\n"
	"\t\tesac\n"
	"\tdone < <(${~words[1]} __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
	"\t(( $#candidates )) && _describe PROGRAM candidates\n"
	"\t[[ $PREFIX == --*=* ]] && compset -P '*='\n"
	"\tcase $directive in\n"
	"\t0) _files ;;\n"
	"\t16) _files -/ ;;\n"
	"\tesac\n"
	"}\n"
	"if [[ ${funcstack[1]} == _FUNCTION ]]; then _FUNCTION \"$@\"; else compdef _FUNCTION "
	"PROGRAM; fi\n";

static const char fish[] =
	"# fish completion of PROGRAM\n"
	"function __FUNCTION_complete\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l word (commandline -ct)\n"
	"\tset -l program $words[1]\n"
	"\tset -e words[1]\n"
	"\tfor line in ($program __complete $words \"$word\" 2>/dev/null)\n"
	"\t\tswitch $line\n"
	"\t\t\tcase :0\n"
	"\t\t\t\t__fish_complete_path (string replace -r -- '^--[^=]*=' '' $word)\n"
	"\t\t\tcase :16\n"
	"\t\t\t\t__fish_complete_directories (string replace -r -- '^--[^=]*=' '' $word)\n"
	"\t\t\tcase ':*'\n"
	"\t\t\tcase '*'\n"
	"\t\t\t\techo $line\n"
	"\t\tend\n"
	"\tend\n"
	"end\n"
	"complete -c PROGRAM -f -a '(__FUNCTION_complete)'\n";

/* The program's name as part of a function's. */
static void add_function(struct buf *out, const char *program)
{
	for (; *program; program++)
		buf_add_char(out, *program == '-' ? '_' : *program);
}

void cli_spec_script(const char *program, int shell, struct buf *out)
{
	static const char *const templates[] = {bash, zsh, fish};
	static const char name[] = "PROGRAM", function[] = "FUNCTION";

	for (const char *p = templates[shell]; *p;) {
		if (strncmp(p, name, strlen(name)) == 0) {
			buf_add_str(out, program);
			p += strlen(name);
		} else if (strncmp(p, function, strlen(function)) == 0) {
			add_function(out, program);
			p += strlen(function);
		} else {
			buf_add_char(out, *p++);
		}
	}
}
