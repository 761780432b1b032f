/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built programs' manual pages, completions and configuration files, held against what --help
 * says, and read by those they are for: man, bash, fish and zsh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregator/policy/score/score.h"
#include "shared/mem.h"
#include "tests/process.h"

static char *folder;

/* Programs are called by their names alone, as shells do. */
static int make_folder(void **state)
{
	char *program = realpath(program_path("evenkeel"), NULL), *path;

	(void)state;
	assert_non_null(program);
	*strrchr(program, '/') = '\0';
	path = mem_printf("%s:%s", program, getenv("PATH"));
	setenv("PATH", path, 1);
	unsetenv("EVENKEEL_SERVER");
	free(path);
	free(program);
	folder = folder_make();
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	folder_remove(folder);
	return 0;
}

/* Standard output of a program that must end well and say nothing else. */
static char *output_of(char *const argv[])
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	int status = process_run(argv, &out, &err);

	if (status || err.len)
		fail_msg("%s %s: exit status %d, %s", argv[0], argv[1] ? argv[1] : "", status,
			 err.len ? err.data : "");
	buf_fini(&err);
	return buf_take(&out, NULL);
}

#define OUTPUT(...) output_of((char *[]){__VA_ARGS__, NULL})

static char *write_file(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	return path;
}

/* True when the shell finds the program; else says what is left out. */
static bool is_installed(const char *program)
{
	char *script = mem_printf("command -v %s >/dev/null", program);
	bool found = process_run((char *[]){"sh", "-c", script, NULL}, NULL, NULL) == 0;

	free(script);
	if (!found)
		print_message("SKIP: documents: there is no %s here\n", program);
	return found;
}

/* --- what --help lists is in everything else -------------------------------------------------- */

/* As roff has it. */
static char *escaped(const char *text)
{
	struct buf out = BUF_INIT;

	for (; *text; text++)
		buf_printf(&out, "%s%c", *text == '-' ? "\\" : "", *text);
	return buf_take(&out, NULL);
}

static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && strchr("\t\n", at[len]))
			return true;
	return false;
}

/* The next "--name" that begins a row of help; the caller frees it, and *at is behind it. */
static char *next_option(const char **at)
{
	for (; **at; *at += strcspn(*at, "\n"), *at += **at == '\n') {
		const char *option = strstr(*at, "--");
		size_t indent = option ? (size_t)(option - *at) : 0;

		if (indent != 6 || strncmp(*at, "  ", 2) != 0)
			continue;
		option = mem_strndup(option, strcspn(option, " [\n"));
		*at += strcspn(*at, "\n");
		return (char *)option;
	}
	return NULL;
}

/* help: where rows of options stand after the line `title`; common: of all commands, "" without. */
static void check_options(char *program, char *command, char *help, const char *common)
{
	char *text =
		mem_printf("%s%s", strstr(help, "Options:\n") ? strstr(help, "Options:\n") : "",
			   common);
	char *manual = OUTPUT(program, "__manual"), *option;
	char *offered = command ? OUTPUT(program, "__complete", command, "--")
				: OUTPUT(program, "__complete", "--");
	const char *at = text;
	int found = 0;

	for (; (option = next_option(&at)); found++) {
		char *in_manual = escaped(option);

		if (!strstr(manual, in_manual))
			fail_msg("%s(%s): no %s in the manual", program, command, option);
		if (!has_line(offered, option))
			fail_msg("%s(%s): %s is not completed", program, command, option);
		free(in_manual);
		free(option);
	}
	assert_true(found >= 8);
	for (const char *line = offered; *line != ':'; line = strchr(line, '\n') + 1)
		found--;
	assert_int_equal(found, 0);
	free(text);
	free(manual);
	free(offered);
}

/* Every line fits a terminal, and the usage names the program as it was called. */
static void check_help(char *program, const char *called, char *const args[4], const char *usage)
{
	char *argv[] = {program, args[0], args[1], args[2], args[3], NULL};
	char *help = output_of(argv), *want = mem_printf("Usage: %s%s", called, usage);

	assert_memory_equal(help, want, strlen(want));
	for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 80);
	free(want);
	free(help);
}

static void helps_under_both_names(void **state)
{
	static const struct {
		char *args[4];
		const char *usage;
	} cases[] = {
		{{"--help"}, " COMMAND [NAME..] [OPTION..]\n"},
		{{"help"}, " COMMAND [NAME..] [OPTION..]\n"},
		{{"help", "pods"}, " pods [NAME..] [OPTION..]\n"},
		{{"-o", "wide", "help", "pods"}, " pods [NAME..] [OPTION..]\n"},
		{{"pods", "x", "-h"}, " pods [NAME..] [OPTION..]\n"},
		{{"version", "--help"}, " version [OPTION..]\n"},
	};
	char *alias = mem_printf("%s/kubectl-evenkeel", folder);
	char *target = realpath(program_path("evenkeel"), NULL);
	(void)state;

	assert_non_null(target);
	assert_int_equal(symlink(target, alias), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_help(target, "evenkeel", cases[i].args, cases[i].usage);
		check_help(alias, "kubectl evenkeel", cases[i].args, cases[i].usage);
	}
	free(target);
	free(alias);
}

static void check_program(char *program)
{
	char *help = OUTPUT(program, "--help");

	check_options(program, NULL, help, "");
	free(help);
}

/* It shows its own options alone, and has three examples that name it. */
static void check_command(char *name, const char *common)
{
	char *help = OUTPUT("evenkeel", "help", name), *line = mem_printf("evenkeel %s", name);
	int examples = 0;

	check_options("evenkeel", name, help, common);
	assert_null(strstr(help, "--token-file"));
	for (const char *at = help; *at; at += strcspn(at, "\n") + 1)
		assert_true(strcspn(at, "\n") <= 80);
	for (const char *at = strstr(help, "\nExamples:\n"); at && (at = strstr(at, line)); at++)
		examples++;
	if (strcmp(name, "options") != 0 && strcmp(name, "glossary") != 0)
		assert_true(examples >= 2);
	free(help);
	free(line);
}

/* One blank in place of any number, and of line breaks. */
static void join_blanks(char *text)
{
	char *to = text;

	for (const char *from = text + strspn(text, " \n"); *from; from++)
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
		else if (to > text && to[-1] != ' ')
			*to++ = ' ';
	*to = '\0';
}

/* Each row of the page is what the program says, and there are no others. */
static void the_glossary_is_printed_and_written(void **state)
{
	char *page = OUTPUT("cat", "packaging/docs/glossary.md"), *rest = page, *row;
	char *words = OUTPUT("evenkeel", "glossary");
	struct buf want = BUF_INIT;

	(void)state;
	while ((row = strsep(&rest, "\n"))) {
		char *term, *meaning;

		if (strncmp(row, "| ", 2) != 0 || strncmp(row, "| Word ", 7) == 0)
			continue;
		term = row + 2;
		meaning = strstr(term, " | ");
		assert_non_null(meaning);
		buf_printf(&want, "%.*s %.*s ", (int)(meaning - term), term,
			   (int)strcspn(meaning + 3, "|") - 1, meaning + 3);
	}
	join_blanks(words);
	assert_string_equal(words, want.data);
	buf_fini(&want);
	free(words);
	free(page);
}

static void every_option_is_in_all_documents(void **state)
{
	char *commands = OUTPUT("evenkeel", "__complete", ""), *rest = commands, *line;
	char *manual = OUTPUT("evenkeel", "__manual"), *help = OUTPUT("evenkeel", "help");
	char *common = OUTPUT("evenkeel", "options");
	int count = 0;

	(void)state;
	check_program("evenkeel-agent");
	check_program("evenkeel-aggregator");
	check_options("evenkeel", NULL, (char *)"", common);
	while ((line = strsep(&rest, "\n")) && line[0] != ':') {
		char *name = mem_strndup(line, strcspn(line, "\t"));
		char *title = mem_printf("\n.SS %s", name), *row = mem_printf("\n  %s ", name);

		assert_non_null(strstr(help, row));
		if (strcmp(name, "help") != 0) {
			assert_non_null(strstr(manual, title));
			check_command(name, common);
			count++;
		}
		free(name);
		free(title);
		free(row);
	}
	assert_true(count >= 9);
	free(help);
	free(manual);
	free(common);
	free(commands);
}

static void the_plugins_offered_are_all_there_are(void **state)
{
	struct buf want = BUF_INIT;
	char *offered = OUTPUT("evenkeel", "__complete", "scores", "--plugin", "");

	(void)state;
	for (int i = 0; i < SCORE_PLUGINS; i++)
		buf_printf(&want, "%s\n", score_plugin_name((enum score_plugin_id)i));
	buf_add_str(&want, ":4\n");
	assert_string_equal(offered, want.data);
	buf_fini(&want);
	free(offered);
}

static void configuration_files_are_read(void **state)
{
	static const char *const programs[] = {"evenkeel-agent", "evenkeel-aggregator"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		char *text = OUTPUT((char *)programs[i], "__config", "key-file=/k");
		char *path = write_file("config.yaml", text);
		char *version = OUTPUT((char *)programs[i], "--config", path, "--version");

		free(version);
		free(path);
		free(text);
	}
}

/* --- what they are for ------------------------------------------------------------------------ */

static void man_reads_the_pages_without_a_warning(void **state)
{
	static const char *const programs[] = {"evenkeel", "evenkeel-agent", "evenkeel-aggregator"};

	(void)state;
	if (!is_installed("man"))
		return;
	setenv("MANROFFSEQ", "", 1);
	for (int i = 0; i < 3; i++) {
		char *text = OUTPUT((char *)programs[i], "__manual");
		char *path = write_file("page", text);
		char *page = OUTPUT("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path);

		assert_true(strlen(page) > 1000);
		free(page);
		free(path);
		free(text);
	}
}

/*
 * words are blank-separated as bash has split them; "." is the empty one. Replies are joined by
 * blanks.
 */
static const struct {
	const char *words, *replies;
} bash_cases[] = {
	{"evenkeel ver", "verify version"},
	{"evenkeel nodes --output ta", "table"},
	{"evenkeel nodes --output = ta", "table"},
	{"evenkeel scores --variant =", "corrected upstream kep"},
	{"evenkeel quota adm", "admit"},
	{"evenkeel completion .", "bash zsh fish"},
	{"evenkeel scores --pod po", "pod one.yaml pods"},
	{"evenkeel-agent --tier T", "T0 T1 T2 T3"},
	{"evenkeel-aggregator --state-dir po", "pods"},
	{"no/such/evenkeel no", ""},
};

static void bash_completes(void **state)
{
	static const char script[] =
		"for p in evenkeel evenkeel-agent evenkeel-aggregator; do source <($p __completion "
		"bash); done\n"
		"cd \"$1\" && shift && read -ra COMP_WORDS <<<\"$1\" && "
		"COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
		"[ \"${COMP_WORDS[COMP_CWORD]}\" != . ] || COMP_WORDS[COMP_CWORD]=\n"
		"name=${COMP_WORDS[0]##*/}; _${name//-/_}; echo \"${COMPREPLY[*]}\"";
	char *pods = mem_printf("%s/pods", folder);

	(void)state;
	free(write_file("pod one.yaml", ""));
	assert_int_equal(process_run((char *[]){"mkdir", pods, NULL}, NULL, NULL), 0);
	free(pods);
	for (size_t i = 0; i < sizeof(bash_cases) / sizeof(bash_cases[0]); i++) {
		char *said = OUTPUT("bash", "-c", (char *)script, "bash", folder,
				    (char *)bash_cases[i].words);

		said[strcspn(said, "\n")] = '\0';
		if (strcmp(said, bash_cases[i].replies) != 0)
			fail_msg("%s: \"%s\"", bash_cases[i].words, said);
		free(said);
	}
}

static void fish_completes(void **state)
{
	char *text = OUTPUT("evenkeel", "completion", "fish"), *said, *path;

	(void)state;
	path = write_file("evenkeel.fish", text);
	free(text);
	if (is_installed("fish")) {
		setenv("HOME", folder, 1);
		said = OUTPUT("fish", "--no-execute", path);
		free(said);
		said = OUTPUT("fish", "--no-config", "-c",
			      "source $argv[1]; complete -C 'evenkeel nodes -o '", path);
		assert_non_null(strstr(said, "table\n"));
		assert_non_null(strstr(said, "json\n"));
		assert_null(strstr(said, ":4"));
		free(said);
	}
	free(path);
}

static void zsh_reads_the_script(void **state)
{
	char *text = OUTPUT("evenkeel", "completion", "zsh"), *path, *said;

	(void)state;
	path = write_file("_evenkeel", text);
	free(text);
	if (is_installed("zsh")) {
		said = OUTPUT("zsh", "-n", path);
		assert_string_equal(said, "");
		free(said);
	}
	free(path);
}

static void a_shell_must_be_named(void **state)
{
	static char *const wrong[] = {NULL, "tcsh"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct buf err = BUF_INIT;

		assert_int_equal(process_run((char *[]){"evenkeel", "completion", wrong[i], NULL},
					     NULL, &err),
				 2);
		assert_non_null(strstr(err.data, "bash, zsh or fish"));
		buf_fini(&err);
		assert_int_equal(process_run((char *[]){"evenkeel-agent", "__completion", wrong[i],
							NULL},
					     NULL, &err),
				 2);
		assert_non_null(strstr(err.data, "bash, zsh or fish"));
		buf_fini(&err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helps_under_both_names),
		cmocka_unit_test(every_option_is_in_all_documents),
		cmocka_unit_test(the_glossary_is_printed_and_written),
		cmocka_unit_test(the_plugins_offered_are_all_there_are),
		cmocka_unit_test(configuration_files_are_read),
		cmocka_unit_test(man_reads_the_pages_without_a_warning),
		cmocka_unit_test(bash_completes),
		cmocka_unit_test(fish_completes),
		cmocka_unit_test(zsh_reads_the_script),
		cmocka_unit_test(a_shell_must_be_named),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
