/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made from tables besides --help: the manual page, the configuration file, and what
 * completes a command line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "shared/options_internal.h"
#include "shared/cli_spec.h"

struct values {
	bool help, all, colour;
	char *server, *config, *dir, *base, *plugin, *on;
	struct option_list pools, targets;
	int64_t count, again;
	int output, sort;
};

#define AT(name) offsetof(struct values, name)

static const char *const outputs[] = {"table", "wide", "json", NULL};
static const char *const periods[] = {"2s", NULL};
static const char *const sorts[] = {"name", "cpu", NULL};
static const char *const plugins[] = {"Peaks", "LimitAware", NULL};

static const struct option_spec general[] = {
	{"server", 's', OPTION_STRING, AT(server), "URL", "http://a:1", 0, 0, NULL, "Whom to ask."},
	{"config", 0, OPTION_STRING, AT(config), "FILE", NULL, 0, 0, NULL, "A file. Of YAML."},
	{"dir", 0, OPTION_STRING, AT(dir), "DIR", NULL, 0, 0, NULL, "A \\folder."},
	{"output", 'o', OPTION_CHOICE, AT(output), NULL, "table", 0, 0, outputs, "The form."},
	{"colour", 0, OPTION_FLAG, AT(colour), NULL, "true", 0, 0, NULL, "Print it grey."},
	{"target", 0, OPTION_LIST, AT(targets), "URL", "tcp://a,tcp://b", 0, 0, NULL, "Where to."},
	{"pool", 0, OPTION_RECORDS, AT(pools), "KEY=N,..", NULL, 0, 0, NULL, "A record."},
	{"count", 'c', OPTION_INTEGER, AT(count), "N", "3", 1, 10, NULL, "How many."},
	{"again", 'g', OPTION_PERIOD, AT(again), "TIME", NULL, 1e8, 60e9, periods, "Again."},
	{"help", 'h', OPTION_FLAG, AT(help), NULL, NULL, 0, 0, NULL, "Print this."},
	{0},
};

static const struct option_spec nodes[] = {
	{"sort-by", 0, OPTION_CHOICE, AT(sort), "KEY", "name", 0, 0, sorts, "Order."},
	{"all", 'a', OPTION_FLAG, AT(all), NULL, NULL, 0, 0, NULL, "Show all."},
	{0},
};
static const struct option_spec scores[] = {
	{"plugin", 'p', OPTION_STRING, AT(plugin), "NAME", NULL, 0, 0, plugins, "Score by it."},
	{"on", 0, OPTION_STRING, AT(on), "NODE", NULL, 0, 0, NULL, "There."},
	{"base", 0, OPTION_STRING, AT(base), "asked|raw:N|given", NULL, 0, 0, NULL, "Of what."},
	{0},
};
static const char *const words[] = {"admit", "lint", NULL};

static const struct option_note notes[] = {
	{"DESCRIPTION", NULL, ".does 'things' at ~/x^2."},
	{"FILES", "/etc/prog.yaml", "Is read."},
	{"EXAMPLES", NULL, "\tprog --all"},
	{0},
};

static const struct option_program program = {
	.name = "prog",
	.summary = "Does things.",
	.usage = "COMMAND [OPTION..]",
	.specs = general,
	.env_prefix = "EKTEST_",
	.config_name = "config",
	.manual = notes,
};

static const struct cli_spec_example examples[] = {{"prog nodes -a", "All nodes."}, {0}};
static const struct cli_spec_command commands[] = {
	{"nodes", "[NAME..]", "Show nodes", NULL, nodes, NULL, examples, "NODE"},
	{"scores", "[admit|lint]", "Show scores", "All of them.", scores, words, NULL, "CLASS"},
};

static void find_names(const char *what, int count, char *const *line, struct buf *out);

static const struct cli_spec spec = {&program, 1, commands, 2, find_names};

/* Three nodes, and what the server was; classes are not known. */
static void find_names(const char *what, int count, char *const *line, struct buf *out)
{
	if (strcmp(what, "NODE") == 0)
		buf_add_str(out, "alpha\nbravo\n");
	for (int i = 0; i < count && strcmp(what, "NODE") == 0; i++)
		if (strncmp(line[i], "--server=", 9) == 0)
			buf_printf(out, "of-%s\n", line[i] + 9);
}

/*
 * The candidates for the last of the blank-separated words ("." is the empty one), meanings cut
 * off, joined by blanks.
 */
static char *complete(const struct cli_spec *o, const char *line)
{
	char *copy = mem_strdup(line), *rest = copy, *word, *args[8];
	struct buf out = BUF_INIT, names = BUF_INIT;
	int count = 0;

	while ((word = strsep(&rest, " ")))
		args[count++] = strcmp(word, ".") == 0 ? "" : word;
	cli_spec_complete(o, count, args, &out);
	rest = out.data;
	while ((word = strsep(&rest, "\n")) && *word)
		buf_printf(&names, "%s%.*s", names.len ? " " : "", (int)strcspn(word, "\t"), word);
	buf_fini(&out);
	free(copy);
	return buf_take(&names, NULL);
}

static const struct {
	const char *line, *candidates;
} completions[] = {
	/* commands, and what stands for one */
	{".", "nodes scores help :4"},
	{"n", "nodes :4"},
	{"-o json n", "nodes :4"},
	{"-ojson n", "nodes :4"},
	{"--output=json n", "nodes :4"},
	{"--output = json n", "nodes :4"},
	{"--sort-by cpu n", "nodes :4"},
	{"--all n", "nodes :4"},
	{"-ac 3 n", "nodes :4"},
	{"--again n", "nodes :4"},
	{"-g n", "nodes :4"},
	{"-g=5s n", "nodes :4"},
	{"-agc 3 n", "nodes :4"},
	{"-gc 3 n", "nodes :4"},
	{"help s", "scores :4"},
	{"help scores .", ":4"},
	{"nodes .", "alpha bravo :4"},
	{"nodes alpha b", "bravo :4"},
	{"nodes -- b", "bravo :4"},
	{"help nodes b", ":4"},
	{"scores --on .", "alpha bravo :4"},
	{"scores --on=a", "--on=alpha :4"},
	{"--server = http : //a:1 nodes o", "of-http://a:1 :4"},
	{"--server http : //a:1 nodes o", ":4"},
	{"scores .", "admit lint :4"},
	{"scores l", "lint :4"},
	{"scores lint .", ":4"},
	{"scores -- l", "lint :4"},
	{"scores -- -", ":4"},
	{"nothing .", ":4"},
	{"nothing --", ":4"},
	/* options */
	{"nodes --s", "--sort-by --server :4"},
	{"--s", "--server :4"},
	{"scores --so", ":4"},
	{"help scores --pl", "--plugin :4"},
	{"nodes --co", "--config --count :4"},
	{"nodes --no", "--no-colour :4"},
	{"nodes -",
	 "--sort-by --all -a --server -s --config --dir --output -o --no-colour --target "
	 "--pool --count -c --again -g --help -h :4"},
	/* values */
	{"-o .", "table wide json :4"},
	{"-o w", "wide :4"},
	{"-ao w", "wide :4"}, /* letters of all commands, as there is none yet */
	{"nodes -ao w", "wide :4"},
	{"--output t", "table :4"},
	{"--output=t", "--output=table :4"},
	{"--output =", "table wide json :4"},
	{"--output = w", "wide :4"},
	{"--output=x", ":4"},
	{"--none=x", ":4"},
	{"nodes --sort-by .", "name cpu :4"},
	{"nodes --sort-by=c", "--sort-by=cpu :4"},
	{"--sort-by c", "cpu :4"},
	{"scores --sort-by c", ":4"},
	{"scores -p .", "Peaks LimitAware :4"},
	{"scores --base .", "asked given :4"},
	{"--colour=", "--colour=true --colour=false :4"},
	{"--config x", ":0"},
	{"--config=x", ":0"},
	{"--config = x", ":0"},
	{"--config a .", "nodes scores help :4"},
	{"--dir .", ":16"},
	{"--server .", ":4"},
	{"--count .", ":4"},
};

static void test_completion_follows_the_parser(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(completions) / sizeof(completions[0]); i++) {
		char *found = complete(&spec, completions[i].line);

		if (strcmp(found, completions[i].candidates) != 0)
			fail_msg("\"%s\": \"%s\", not \"%s\"", completions[i].line, found,
				 completions[i].candidates);
		free(found);
	}
}

static void test_a_program_without_commands_has_options_only(void **state)
{
	const struct cli_spec daemon = {&program, 8, NULL, 0, NULL};
	char *found = complete(&daemon, "x .");

	(void)state;
	assert_string_equal(found, ":4");
	free(found);
	found = complete(&daemon, "x --cou");
	assert_string_equal(found, "--count :4");
	free(found);
}

static void test_meanings_are_one_sentence(void **state)
{
	char *args[] = {"--conf"};
	struct buf out = BUF_INIT;

	(void)state;
	cli_spec_complete(&spec, 1, args, &out);
	assert_string_equal(out.data, "--config\tA file\n:4\n");
	buf_fini(&out);
	cli_spec_complete(&spec, 0, NULL, &out);
	assert_non_null(strstr(out.data, "help\tShow the options of a command\n:4\n"));
	buf_fini(&out);
}

/* clang-format off */
static const char *const in_manual[] = {
	".TH PROG 1 ",
	".SH NAME\nprog \\- does things\n",
	".SH SYNOPSIS\n\\fBprog\\fR COMMAND [OPTION..]\n",
	".SH DESCRIPTION\n.PP\n\\&.does \\(aqthings\\(aq at \\(ti/x\\(ha2.\n",
	".SS nodes [NAME..]\nShow nodes.\n.PP\nAll nodes.\n.PP\n.RS 4\n.nf\nprog nodes \\-a\n.fi\n.RE\n.TP\n\\fB\\-\\-sort\\-by\\fR \\fIKEY\\fR\nOrder. [",
	".SS scores [admit|lint]\nShow scores.\n.PP\nAll of them.\n",
	"\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fItable|wide|json\\fR\n",
	"\\fB\\-\\-no\\-colour\\fR\nPrint it grey. [EKTEST_COLOUR=false]\n",
	"\\fB\\-c\\fR, \\fB\\-\\-count\\fR \\fIN\\fR\nHow many. [default 3; 1 to 10; EKTEST_COUNT]\n",
	"\nA \\efolder. [EKTEST_DIR]\n",
	".SH ENVIRONMENT\n",
	".SH CONFIGURATION FILE\nThe file of \\fB\\-\\-config\\fR",
	".SH FILES\n.TP\n\\fB/etc/prog.yaml\\fR\nIs read.\n",
	".SH EXAMPLES\n.PP\n.RS 4\n.nf\nprog \\-\\-all\n.fi\n",
};
/* clang-format on */

static void test_the_manual_holds_everything_once_and_in_order(void **state)
{
	struct buf out = BUF_INIT;
	const char *at;

	(void)state;
	cli_spec_manual(&spec, &out);
	at = out.data;
	for (size_t i = 0; i < sizeof(in_manual) / sizeof(in_manual[0]); i++) {
		const char *found = strstr(out.data, in_manual[i]);

		if (!found) {
			fail_msg("not in the manual: %s", in_manual[i]);
			return;
		}
		assert_null(strstr(found + strlen(in_manual[i]), in_manual[i]));
		/* Options stand in the table's order, sections in this one. */
		if (strncmp(in_manual[i], ".SH", 3) == 0) {
			assert_true(found >= at);
			at = found;
		}
	}
	buf_fini(&out);
}

static int make_config(char *text, struct buf *out, struct error *error)
{
	struct option_list set = {.items = &text, .count = text ? 1 : 0};

	return cli_spec_config(&program, &set, out, error);
}

/* Takes the signs away before names that have a value. */
static char *uncomment(const char *text)
{
	struct buf out = BUF_INIT;

	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		size_t len = strcspn(line, "\n") + 1;
		bool name = line[0] == '#' && line[1] != ' ';
		const char *colon = strchr(line, ':');

		/* "#dir: DIR" is a word to be replaced. */
		if (name && colon[2] >= 'A' && colon[2] <= 'Z')
			continue;
		buf_add(&out, line + name, len - name);
	}
	return buf_take(&out, NULL);
}

static void test_a_configuration_file_says_the_defaults(void **state)
{
	struct settings settings = {0};
	struct error error = {""};
	struct buf out = BUF_INIT, read = BUF_INIT;
	char *text;

	(void)state;
	assert_int_equal(make_config(NULL, &out, &error), 0);
	assert_int_equal(options_parse_yaml(&program, "x", out.data, out.len, &settings, &error),
			 0);
	assert_int_equal(settings.count, 0);
	assert_non_null(strstr(out.data, "\n# How many. [default 3; 1 to 10]\n#count: 3\n"));
	assert_non_null(strstr(out.data, "\n# false: Print it grey.\n#colour: true\n"));
	assert_non_null(strstr(out.data, "\n#dir: DIR\n"));
	assert_null(strstr(out.data, "config:"));
	assert_null(strstr(out.data, "help:"));

	text = uncomment(out.data);
	if (options_parse_yaml(&program, "x", text, strlen(text), &settings, &error))
		fail_msg("%s in:\n%s", error.text, text);
	for (size_t i = 0; i < settings.count; i++)
		if (settings.items[i].text)
			buf_printf(&read, "%s=%s ", settings.items[i].spec->name,
				   settings.items[i].text);
	assert_string_equal(read.data, "server=http://a:1 output=table colour=true target=tcp://a "
				       "target=tcp://b count=3 again=false ");
	settings_fini(&settings);
	buf_fini(&read);
	buf_fini(&out);
	free(text);
}

static void test_a_configuration_file_may_set_something(void **state)
{
	struct settings settings = {0};
	struct error error = {""};
	struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(make_config("dir=/var/lib/x: y", &out, &error), 0);
	assert_int_equal(options_parse_yaml(&program, "x", out.data, out.len, &settings, &error),
			 0);
	assert_int_equal(settings.count, 1);
	assert_string_equal(settings.items[0].text, "/var/lib/x: y");
	settings_fini(&settings);
	buf_fini(&out);
	assert_true(make_config("dirs=x", &out, &error) < 0);
	assert_non_null(strstr(error.text, "\"dirs=x\""));
	assert_true(make_config("help=true", &out, &error) < 0);
	assert_true(make_config("config=x", &out, &error) < 0);
	buf_fini(&out);
}

static void test_scripts_name_program_and_function(void **state)
{
	(void)state;
	for (int shell = 0; cli_spec_shells[shell]; shell++) {
		struct buf out = BUF_INIT;

		assert_true(cli_spec_script("prog-x", cli_spec_shells[shell], &out));
		assert_non_null(strstr(out.data, "prog-x"));
		assert_non_null(strstr(out.data, "_prog_x"));
		assert_non_null(strstr(out.data, " __complete "));
		assert_null(strstr(out.data, "PROGRAM"));
		assert_null(strstr(out.data, "FUNCTION"));
		buf_fini(&out);
	}
}

static void test_other_first_words_are_not_for_it(void **state)
{
	char *none[] = {"prog"}, *other[] = {"prog", "__manuals"},
	     *second[] = {"prog", "-v", "__manual"};
	int status = 7;

	(void)state;
	assert_false(cli_spec_answer(&spec, 1, none, &status));
	assert_false(cli_spec_answer(&spec, 2, other, &status));
	assert_false(cli_spec_answer(&spec, 3, second, &status));
	assert_int_equal(status, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completion_follows_the_parser),
		cmocka_unit_test(test_a_program_without_commands_has_options_only),
		cmocka_unit_test(test_meanings_are_one_sentence),
		cmocka_unit_test(test_the_manual_holds_everything_once_and_in_order),
		cmocka_unit_test(test_a_configuration_file_says_the_defaults),
		cmocka_unit_test(test_a_configuration_file_may_set_something),
		cmocka_unit_test(test_scripts_name_program_and_function),
		cmocka_unit_test(test_other_first_words_are_not_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
