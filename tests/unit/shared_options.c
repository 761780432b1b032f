/* SPDX-License-Identifier: Apache-2.0 */
/* Options: what each place may say, which place wins, and the one line that says what is wrong. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shared/clock.h"
#include "shared/options.h"
#include "shared/options_internal.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct values {
	bool help, watch, colour;
	char *server, *config;
	struct option_list aggregators, pools;
	int64_t count, interval, again;
	double rate;
	int output;
};

#define MEMBER(name) offsetof(struct values, name)

static const char *const outputs[] = {"table", "wide", "json", NULL};
static const char *const periods[] = {"2s", NULL};

static const struct option_spec specs[] = {
	{"help", 'h', OPTION_FLAG, MEMBER(help), NULL, NULL, 0, 0, NULL, "Print this help."},
	{"watch", 'w', OPTION_FLAG, MEMBER(watch), NULL, NULL, 0, 0, NULL, "Repeat."},
	{"again", 'g', OPTION_PERIOD, MEMBER(again), "TIME", NULL, 1e8, 60e9, periods, "Again."},
	{"colour", 0, OPTION_FLAG, MEMBER(colour), NULL, "true", 0, 0, NULL, "Use colours."},
	{"server", 's', OPTION_STRING, MEMBER(server), "URL", "http://127.0.0.1:2020", 0, 0, NULL,
	 "Where the aggregator listens for people and for schedulers."},
	{"config", 0, OPTION_STRING, MEMBER(config), "FILE", NULL, 0, 0, NULL, "A YAML file."},
	{"aggregator", 'a', OPTION_LIST, MEMBER(aggregators), "URL", "tcp://a,tcp://b", 0, 0, NULL,
	 "Where to send to."},
	{"pool", 0, OPTION_RECORDS, MEMBER(pools), "KEY=VALUE,..", NULL, 0, 0, NULL, "A record."},
	{"count", 0, OPTION_INTEGER, MEMBER(count), "N", "3", 1, 10, NULL, "How many."},
	{"interval", 'i', OPTION_DURATION, MEMBER(interval), "DURATION", "5s", 1e9, 15e9, NULL,
	 "How often."},
	{"rate", 0, OPTION_NUMBER, MEMBER(rate), "HZ", "10", 0.5, INFINITY, NULL, "How fast."},
	{"output", 'o', OPTION_CHOICE, MEMBER(output), NULL, "table", 0, 0, outputs, "Form."},
	{0},
};

static const struct option_former former[] = {{"period", "interval"}, {0}};

static const struct option_program program = {
	.name = "prog",
	.summary = "Does things.",
	.usage = "[OPTION..]",
	.specs = specs,
	.former = former,
	.env_prefix = "EKTEST_",
	.config_name = "config",
};

enum { ARGS_MAX = 8 };

static int parse(char *const args[ARGS_MAX], struct values *v, struct option_list *operands,
		 struct error *error)
{
	char *argv[ARGS_MAX + 2] = {"prog"};
	int argc = 1;

	for (; argc <= ARGS_MAX && args[argc - 1]; argc++)
		argv[argc] = args[argc - 1];
	*v = (struct values){0};
	return options_parse(&program, v, argc, argv, operands, error);
}

/* The values as one line, to compare with. */
static void describe(const struct values *v, struct buf *out)
{
	buf_printf(out, "%s%s%s%s c%ld i%ld r%g o%d", v->help ? "h " : "", v->watch ? "w " : "",
		   v->colour ? "" : "grey ", v->server, (long)v->count,
		   (long)(v->interval / 1000000), v->rate, v->output);
	if (v->again)
		buf_printf(out, " g%ld", (long)(v->again / 1000000));
	for (size_t i = 0; i < v->aggregators.count; i++)
		buf_printf(out, " [%s]", v->aggregators.items[i]);
	for (size_t i = 0; i < v->pools.count; i++)
		buf_printf(out, " {%s}", v->pools.items[i]);
}

#define REST	 " [tcp://a] [tcp://b]"
#define DEFAULTS "http://127.0.0.1:2020 c3 i5000 r10 o0"

static void reads_the_command_line(void **state)
{
	static const struct {
		char *args[ARGS_MAX];
		const char *want;
	} cases[] = {
		{{NULL}, DEFAULTS REST},
		{{"-h"}, "h " DEFAULTS REST},
		{{"--watch", "--no-colour"}, "w grey " DEFAULTS REST},
		{{"-wh"}, "h w " DEFAULTS REST},
		{{"--watch", "--no-watch"}, DEFAULTS REST},
		{{"--watch=true", "--colour=false"}, "w grey " DEFAULTS REST},
		{{"--server", "x"}, "x c3 i5000 r10 o0" REST},
		{{"--server=x"}, "x c3 i5000 r10 o0" REST},
		{{"-sx"}, "x c3 i5000 r10 o0" REST},
		{{"-s", "x"}, "x c3 i5000 r10 o0" REST},
		{{"-ws", "x"}, "w x c3 i5000 r10 o0" REST},
		{{"--server="}, " c3 i5000 r10 o0" REST},
		{{"--server", "x", "--server", "y"}, "y c3 i5000 r10 o0" REST},
		{{"--count", "10", "--rate=.5", "-o", "json"},
		 "http://127.0.0.1:2020 c10 i5000 r0.5 o2" REST},
		{{"-i1s"}, "http://127.0.0.1:2020 c3 i1000 r10 o0" REST},
		{{"-a", "x,y", "-az"}, DEFAULTS " [x,y] [z]"},
		{{"-g"}, DEFAULTS " g2000" REST},
		{{"-g", "-w"}, "w " DEFAULTS " g2000" REST},
		{{"-wg"}, "w " DEFAULTS " g2000" REST},
		{{"-gw"}, "w " DEFAULTS " g2000" REST},
		{{"-g=5s"}, DEFAULTS " g5000" REST},
		{{"-wg=500ms"}, "w " DEFAULTS " g500" REST},
		{{"--again"}, DEFAULTS " g2000" REST},
		{{"--again=1m"}, DEFAULTS " g60000" REST},
		{{"-g=5s", "--no-again"}, DEFAULTS REST},
		{{"--pool", "a=1,b=2", "--pool=c;d"}, DEFAULTS REST " {a=1,b=2} {c;d}"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf got = BUF_INIT;
		struct error error = {""};
		struct values v;

		assert_int_equal(parse(cases[i].args, &v, NULL, &error), 0);
		describe(&v, &got);
		assert_string_equal(got.data, cases[i].want);
		buf_fini(&got);
		options_free(&program, &v);
	}
}

static void refuses_with_one_line(void **state)
{
	static const struct {
		char *args[ARGS_MAX];
		const char *want;
	} cases[] = {
		{{"--intervall", "3s"}, "unknown option --intervall; did you mean --interval?"},
		{{"-g=61s"}, "--again: \"61s\" is too long; 100ms to 1m are allowed"},
		{{"--again="}, "--again: \"\" is not a duration such as 300ms, 5s, 1m30s or 2h"},
		{{"-g=x"}, "--again: \"x\" is not a duration such as 300ms, 5s, 1m30s or 2h"},
		{{"--inter=3s"}, "unknown option --inter; did you mean --interval?"},
		{{"--sevrer=3s"}, "unknown option --sevrer; did you mean --server?"},
		{{"--zzz"}, "unknown option --zzz; --help lists the options"},
		{{"--no-server"}, "unknown option --no-server; --help lists the options"},
		{{"-wx"}, "unknown option -x; --help lists the options"},
		{{"--a\nb\033"}, "unknown option --a?b?; --help lists the options"},
		{{"-i", "0.5s"}, "--interval: \"0.5s\" is too short; 1s to 15s are allowed"},
		{{"-i", "1m"}, "--interval: \"1m\" is too long; 1s to 15s are allowed"},
		{{"-i", "5"}, "--interval: \"5\" needs a unit, as in 300ms, 5s, 1m30s or 2h"},
		{{"-i"}, "--interval needs a value: DURATION"},
		{{"--output"}, "--output needs a value"},
		{{"--output", "xml"}, "--output: \"xml\" is not known; it is table, wide or json"},
		{{"--count", "0"}, "--count: \"0\" is too small; 1 to 10 are allowed"},
		{{"--count", "11"}, "--count: \"11\" is too large; 1 to 10 are allowed"},
		{{"--count", "1x"}, "--count: \"1x\" is not a whole number"},
		{{"--count", " 1"}, "--count: \" 1\" is not a whole number"},
		{{"--count", ""}, "--count: \"\" is not a whole number"},
		{{"--count", "99999999999999999999"},
		 "--count: \"99999999999999999999\" is beyond what fits in 64 bits"},
		{{"--rate", "0.4"}, "--rate: \"0.4\" is too small; at least 0.5 is allowed"},
		{{"--rate", "nan"}, "--rate: \"nan\" is not a number"},
		{{"--rate", "0x10"}, "--rate: \"0x10\" is not a number"},
		{{"--rate", "1e999"}, "--rate: \"1e999\" is not a number"},
		{{"--watch=yes"}, "--watch: \"yes\" is neither true nor false"},
		{{"left"}, "unexpected argument \"left\"; --help shows the usage"},
		{{"--config", "/does/not/exist"},
		 "--config: /does/not/exist: No such file or directory"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error error = {""};
		struct values v;

		assert_int_equal(parse(cases[i].args, &v, NULL, &error), -EINVAL);
		assert_string_equal(error.text, cases[i].want);
		assert_null(v.server);
		assert_null(v.aggregators.items);
	}
}

/* At once: nobody may ever write into the pipe. */
static void refuses_what_is_no_file(void **state)
{
	char folder[] = "/tmp/evenkeel-options-XXXXXX", path[64], want[128];
	char *args[ARGS_MAX] = {"--config", path};
	struct error error = {""};
	struct values v;
	(void)state;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10);
	assert_int_equal(parse(args, &v, NULL, &error), -EINVAL);
	alarm(0);
	snprintf(want, sizeof(want), "--config: %s: not a regular file", path);
	assert_string_equal(error.text, want);
	unlink(path);
	snprintf(path, sizeof(path), "%s", folder);
	assert_int_equal(parse(args, &v, NULL, &error), -EINVAL);
	assert_non_null(strstr(error.text, "not a regular file"));
	rmdir(folder);
}

static void gives_operands_in_order(void **state)
{
	char *args[ARGS_MAX] = {"one", "-w", "-", "--", "--server", "-h"};
	struct option_list operands;
	struct error error;
	struct values v;
	(void)state;

	assert_int_equal(parse(args, &v, &operands, &error), 0);
	assert_true(v.watch);
	assert_false(v.help);
	assert_int_equal(operands.count, 4);
	assert_string_equal(operands.items[0], "one");
	assert_string_equal(operands.items[1], "-");
	assert_string_equal(operands.items[2], "--server");
	assert_string_equal(operands.items[3], "-h");
	option_list_free(&operands);
	options_free(&program, &v);
}

/* A file in the build's temporary directory; the caller unlinks it. */
static void write_file(char path[], const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void later_places_override(void **state)
{
	char path[] = "/tmp/evenkeel-test-options-XXXXXX";
	char *args[ARGS_MAX] = {"--config", path, "--count", "4"};
	struct buf got = BUF_INIT;
	struct error error = {""};
	struct values v;
	(void)state;

	write_file(path, "server: file\ncount: 2\nrate: 2\naggregator: [f]\nwatch: true\n");
	setenv("EKTEST_SERVER", "env", 1);
	setenv("EKTEST_COUNT", "3", 1);
	setenv("EKTEST_AGGREGATOR", "e1,,e2,", 1);
	setenv("EKTEST_POOL", "a=1,b=2;c=3;", 1);
	setenv("EKTEST_OUTPUT", "", 1);
	setenv("EKTEST_HELP", "true", 1);
	setenv("EKTEST_SERVICE_HOST", "10.0.0.1", 1);
	assert_int_equal(parse(args, &v, NULL, &error), 0);
	describe(&v, &got);
	assert_string_equal(got.data, "w env c4 i5000 r2 o0 [e1] [e2] {a=1,b=2} {c=3}");
	options_free(&program, &v);
	buf_fini(&got);

	setenv("EKTEST_INTERVAL", "0.5s", 1);
	assert_int_equal(parse(args, &v, NULL, &error), -EINVAL);
	assert_string_equal(error.text, "--interval: \"0.5s\" is too short; 1s to 15s are allowed "
					"(from EKTEST_INTERVAL)");
	unsetenv("EKTEST_SERVER");
	unsetenv("EKTEST_COUNT");
	unsetenv("EKTEST_AGGREGATOR");
	unsetenv("EKTEST_POOL");
	unsetenv("EKTEST_OUTPUT");
	unsetenv("EKTEST_HELP");
	unsetenv("EKTEST_INTERVAL");
	unsetenv("EKTEST_SERVICE_HOST");
	unlink(path);
}

static void former_names_are_read(void **state)
{
	char path[] = "/tmp/evenkeel-test-options-XXXXXX";
	char *typed[ARGS_MAX] = {"--period", "6s"}, *file[ARGS_MAX] = {"--config", path};
	struct error error = {""};
	struct values v;

	(void)state;
	assert_int_equal(parse(typed, &v, NULL, &error), 0);
	assert_int_equal(v.interval, 6 * NS_PER_SEC);
	options_free(&program, &v);
	write_file(path, "period: 7s\n");
	assert_int_equal(parse(file, &v, NULL, &error), 0);
	assert_int_equal(v.interval, 7 * NS_PER_SEC);
	options_free(&program, &v);
	setenv("EKTEST_PERIOD", "8s", 1);
	assert_int_equal(parse(file, &v, NULL, &error), 0);
	assert_int_equal(v.interval, 8 * NS_PER_SEC);
	options_free(&program, &v);
	setenv("EKTEST_INTERVAL", "9s", 1);
	assert_int_equal(parse(file, &v, NULL, &error), 0);
	assert_int_equal(v.interval, 9 * NS_PER_SEC);
	options_free(&program, &v);
	unsetenv("EKTEST_INTERVAL");
	unsetenv("EKTEST_PERIOD");
	unlink(path);
}

static void bad_values_in_a_file_name_their_line(void **state)
{
	char path[] = "/tmp/evenkeel-test-options-XXXXXX", want[128];
	char *args[ARGS_MAX] = {"--config", path};
	struct error error = {""};
	struct values v;
	(void)state;

	write_file(path, "# comment\n\nrate: fast\n");
	assert_int_equal(parse(args, &v, NULL, &error), -EINVAL);
	snprintf(want, sizeof(want), "--rate: \"fast\" is not a number (from %s:3)", path);
	assert_string_equal(error.text, want);
	unlink(path);
}

static void reads_yaml(void **state)
{
	static const struct {
		const char *text, *want; /* "name=text,..", a list beginning with "name=-" */
	} cases[] = {
		{"", ""},
		{"# nothing\n", ""},
		{"---\n~\n", ""},
		{"{}", ""},
		{"count: 3\nserver: 'a: b'\n", "count=3,server=a: b,"},
		{"aggregator:\n- x\n- \"y\"\n", "aggregator=-,aggregator=x,aggregator=y,"},
		{"aggregator: []", "aggregator=-,"},
		{"server: ''", "server=,"},
		{"pool:\n- a=1,b\n- {c: 1, d: [x, y], e: []}\n- {}\n",
		 "pool=-,pool=a=1,b,pool=c=1,d=x,y,e,pool=,"},
		{"\"count\": !!str 3", "count=3,"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct settings found = {0};
		struct buf got = BUF_INIT;
		struct error error = {""};

		assert_int_equal(options_parse_yaml(&program, "f.yaml", cases[i].text,
						    strlen(cases[i].text), &found, &error),
				 0);
		buf_add_str(&got, "");
		for (size_t j = 0; j < found.count; j++)
			buf_printf(&got, "%s=%s,", found.items[j].spec->name,
				   found.items[j].text ? found.items[j].text : "-");
		assert_string_equal(got.data, cases[i].want);
		buf_fini(&got);
		settings_fini(&found);
	}
}

static void refuses_yaml_by_place(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"rte: 3", "f.yaml:1:1: unknown option \"rte\"; did you mean rate?"},
		{"zzzz: 3", "f.yaml:1:1: unknown option \"zzzz\""},
		{"rate: 3\nrate: 3", "f.yaml:2:1: rate is set twice"},
		{"rate:\n", "f.yaml:1:6: rate has no value"},
		{"rate: null", "f.yaml:1:7: rate has no value"},
		{"rate: [3]", "f.yaml:1:7: rate: expected a plain value here"},
		{"rate: {a: b}", "f.yaml:1:7: rate: expected a plain value here"},
		{"rate: \"3\\0x\"", "f.yaml:1:7: rate: a value with a zero byte"},
		{"aggregator: x",
		 "f.yaml:1:13: aggregator is a list: write [a, b], or one \"- value\" a line"},
		{"aggregator:\n- [x]", "f.yaml:2:3: aggregator: expected a plain value here"},
		{"aggregator:\n- {a: b}", "f.yaml:2:3: aggregator: expected a plain value here"},
		{"pool:\n- {a: {b: c}}", "f.yaml:2:7: pool: expected a plain value here"},
		{"pool:\n- {a: [[b]]}", "f.yaml:2:8: pool: expected a plain value here"},
		{"pool:\n- {[a]: b}", "f.yaml:2:4: pool: expected a plain value here"},
		{"pool:\n- a: b\n  c:\n", "f.yaml:3:5: pool has no value"},
		{"server: x\nconfig: x", "f.yaml:2:1: config cannot be set in a file"},
		{"server: &a x\noutput: *a", "f.yaml:1:9: more than 0 anchors"},
		{"help: true", "f.yaml:1:1: help cannot be set in a file"},
		{"[a]: b", "f.yaml:1:1: expected the name of an option"},
		{"- a", "f.yaml:1:1: expected \"name: value\" lines"},
		{"text", "f.yaml:1:1: expected \"name: value\" lines"},
		{"rate: 3\n---\nrate: 4", "f.yaml:2:1: a second document; there may be only one"},
		{"rate: 3\nx", "f.yaml:3:1: could not find expected ':'"},
		{"rate: \x01", "f.yaml: byte 7: control characters are not allowed"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct settings found = {0};
		struct error error = {""};

		assert_int_equal(options_parse_yaml(&program, "f.yaml", cases[i].text,
						    strlen(cases[i].text), &found, &error),
				 -EINVAL);
		assert_string_equal(error.text, cases[i].want);
		settings_fini(&found);
	}
}

static void help_fits_eighty_columns(void **state)
{
	static const char want[] =
		"Usage: prog [OPTION..]\n"
		"\n"
		"Does things.\n"
		"\n"
		"Options:\n"
		"  -h, --help              Print this help.\n"
		"  -w, --watch             Repeat. [EKTEST_WATCH]\n"
		"  -g, --again[=TIME]      Again. [100ms to 1m; EKTEST_AGAIN]\n"
		"      --no-colour         Use colours. [EKTEST_COLOUR=false]\n"
		"  -s, --server URL        Where the aggregator listens for people and for\n"
		"                          schedulers. [default http://127.0.0.1:2020;\n"
		"                          EKTEST_SERVER]\n"
		"      --config FILE       A YAML file. [EKTEST_CONFIG]\n"
		"  -a, --aggregator URL    Where to send to. [repeatable; default\n"
		"                          tcp://a,tcp://b; EKTEST_AGGREGATOR]\n"
		"      --pool KEY=VALUE,..\n"
		"                          A record. [repeatable; EKTEST_POOL]\n"
		"      --count N           How many. [default 3; 1 to 10; EKTEST_COUNT]\n"
		"  -i, --interval DURATION\n"
		"                          How often. [default 5s; 1s to 15s; EKTEST_INTERVAL]\n"
		"      --rate HZ           How fast. [default 10; at least 0.5; EKTEST_RATE]\n"
		"  -o, --output table|wide|json\n"
		"                          Form. [default table; EKTEST_OUTPUT]\n";
	struct buf got = BUF_INIT;
	(void)state;

	options_help(&program, &got);
	assert_string_equal(got.data, want);
	buf_fini(&got);
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {
		{"0", 0},
		{"0s", 0},
		{"300ms", 300000000},
		{"5s", 5000000000},
		{"1m30s", 90000000000},
		{"2h", 7200000000000},
		{"0.5s", 500000000},
		{"1.5h", 5400000000000},
		{".5ms", 500000},
		{"5.s", 5000000000},
		{"7ns", 7},
		{"7us", 7000},
		{"0.00000000019s", 0},
		{"9223372036854775807ns", INT64_MAX},
	};
	static const char *const bad[] = {
		"",
		"5",
		"s",
		".s",
		"-5s",
		"+5s",
		"5 s",
		"5S",
		"5s5",
		"1d",
		"5sm",
		"1..5s",
		"1.5.5s",
		"9223372036854775808ns",
		"9999999999999999999999h",
		"2562048h",
		"9223372036854775807ns1ns",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(good); i++) {
		char text[DURATION_LEN];
		int64_t ns = -1, again = -1;

		assert_int_equal(duration_parse(good[i].text, &ns, NULL), 0);
		assert_int_equal(ns, good[i].want);
		duration_format(ns, text);
		assert_int_equal(duration_parse(text, &again, NULL), 0);
		assert_int_equal(again, ns);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct error error = {""};
		int64_t ns = 42;

		assert_int_equal(duration_parse(bad[i], &ns, &error), -EINVAL);
		assert_int_equal(ns, 42);
		assert_true(strlen(error.text) > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_command_line),
		cmocka_unit_test(refuses_with_one_line),
		cmocka_unit_test(refuses_what_is_no_file),
		cmocka_unit_test(gives_operands_in_order),
		cmocka_unit_test(later_places_override),
		cmocka_unit_test(former_names_are_read),
		cmocka_unit_test(bad_values_in_a_file_name_their_line),
		cmocka_unit_test(reads_yaml),
		cmocka_unit_test(refuses_yaml_by_place),
		cmocka_unit_test(help_fits_eighty_columns),
		cmocka_unit_test(durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
