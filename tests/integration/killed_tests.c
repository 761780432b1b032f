/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/run leaves no process behind when test programs end, are killed or take too long, and when
 * it is killed itself. The program is this one with a file's name as its argument; it starts a
 * shell, which starts a child that no signal of its parent's death reaches. Other tests: which
 * programs tests/run repeats, runs side by side and leaves out, and the order of its lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/sanitized.h"

enum { SECONDS = 20, FAMILIES = 2 };

struct family {
	char *file;
	int timeout, program, shell, child;
};

/* --- the program under test ------------------------------------------------------------------- */

static bool is_complete(void *ctx)
{
	const struct family *f = ctx;
	FILE *file = fopen(f->file, "r");
	char last[8] = "";
	bool complete = file && fscanf(file, "%*d %*d %*d %*d %7s", last) == 1;

	if (file)
		fclose(file);
	return complete && strcmp(last, "end") == 0;
}

/* Until it is killed, unless it is to leave its children behind. */
static int be_program(const char *file, bool stays)
{
	char *script = mem_printf("sleep 1000 & echo %d %d $$ $! end >'%s'; wait", (int)getppid(),
				  (int)getpid(), file);
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	struct family f = {.file = (char *)file};

	if (process_start("/dev/null", (char *const *)argv) <= 0 ||
	    !await(is_complete, &f, SECONDS))
		return 1;
	free(script);
	if (!stays)
		return 0;
	for (;;)
		pause();
}

/* Fails when the file is not there, and makes it; with the words of a sanitizer, if told so. */
static int fail_first(const char *file, bool sanitizer)
{
	FILE *f = fopen(file, "wx");

	if (!f)
		return 0;
	fclose(f);
	puts(sanitizer ? "x.c:1:1: runtime error: x" : "failed");
	return 1;
}

static bool is_there(void *file)
{
	return access(file, F_OK) == 0;
}

static char *self_path(void)
{
	char self[256] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		abort();
	return mem_strdup(self);
}

/* Writes beyond an allocation. Without a sanitizer, makes the file that one would make. */
static int overflow(const char *text)
{
	static const char option[] = "log_path='";
	const char *path = "", *found = getenv("ASAN_OPTIONS");
	char *copy = mem_strdup(text), *file;

	if (SANITIZED)
		((volatile char *)copy)[strlen(text) + 1] = 'x';
	free(copy);
	for (; found && (found = strstr(found, option)); path = found)
		found += sizeof(option) - 1;
	file = mem_printf("%.*s.1", (int)strcspn(path, "'"), path);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	free(file);
	return 0;
}

/* Passes, but the daemon that it starts has an error. */
static int start_overflow(const char *file)
{
	char *self = self_path();
	char *argv[] = {self, (char *)"overflows", (char *)file, NULL};

	process_run(argv, NULL, NULL);
	free(self);
	return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

static bool runs(int pid)
{
	char *path = mem_printf("/proc/%d/stat", pid), state = 'X';
	FILE *file = fopen(path, "r");

	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	if (file)
		fclose(file);
	free(path);
	return state != 'X' && state != 'Z';
}

static bool is_gone(void *ctx)
{
	const struct family *f = ctx;

	return !runs(f->timeout) && !runs(f->program) && !runs(f->shell) && !runs(f->child);
}

static void read_family(struct family *f)
{
	FILE *file;

	assert_true(await(is_complete, f, SECONDS));
	file = fopen(f->file, "r");
	assert_non_null(file);
	assert_int_equal(
		fscanf(file, "%d %d %d %d", &f->timeout, &f->program, &f->shell, &f->child), 4);
	fclose(file);
}

/* This program as an argument of tests/run. */
static char *entry(const char *how, const char *folder, const char *file)
{
	char *self = self_path(), *entry = mem_printf("%s,%s,%s/%s", self, how, folder, file);

	free(self);
	return entry;
}

/* tests/run with the program twice, side by side, once all of both is there. */
static pid_t start(struct family families[FAMILIES], const char *folder, const char *how)
{
	char *log = mem_printf("%s/log", folder);
	char *entries[] = {entry(how, folder, "0"), entry(how, folder, "1")};
	pid_t run =
		process_start(log, (char *const[]){(char *)"tests/run", (char *)"-j", (char *)"2",
						   (char *)folder, entries[0], entries[1], NULL});

	assert_true(run > 0);
	for (int i = 0; i < FAMILIES; i++) {
		families[i].file = mem_printf("%s/%d", folder, i);
		read_family(&families[i]);
		free(entries[i]);
	}
	free(log);
	return run;
}

static void expect_gone(struct family *f)
{
	if (!await(is_gone, f, SECONDS))
		fail_msg("timeout %d, program %d, shell %d, child %d", runs(f->timeout),
			 runs(f->program), runs(f->shell), runs(f->child));
}

enum victim { NOBODY, PROGRAM, TIMEOUT, RUN };

/* One program after the other is killed: the other one goes on until then. */
static void expect_nothing_left(enum victim victim, int signal_number, const char *how)
{
	char *folder = folder_make();
	struct family families[FAMILIES] = {{0}};
	pid_t run = start(families, folder, how);

	if (victim == RUN)
		assert_int_equal(process_stop(run, signal_number), 128 + signal_number);
	for (int i = 0; i < FAMILIES; i++) {
		struct family *f = &families[i];

		if (victim == PROGRAM || victim == TIMEOUT) {
			assert_true(runs(f->child));
			kill(victim == PROGRAM ? f->program : f->timeout, signal_number);
		}
		expect_gone(f);
		free(f->file);
	}
	if (victim != RUN)
		process_stop(run, 0);
	folder_remove(folder);
}

static void test_ends(void **state)
{
	(void)state;
	expect_nothing_left(NOBODY, 0, "ends");
}

static void test_killed(void **state)
{
	(void)state;
	expect_nothing_left(PROGRAM, SIGKILL, "stays");
}

static void test_takes_too_long(void **state)
{
	const char *before = getenv("TEST_TIMEOUT");
	char *kept = before ? mem_strdup(before) : NULL;

	(void)state;
	setenv("TEST_TIMEOUT", "4", 1);
	expect_nothing_left(NOBODY, 0, "stays");
	if (kept)
		setenv("TEST_TIMEOUT", kept, 1);
	else
		unsetenv("TEST_TIMEOUT");
	free(kept);
}

static void test_timeout_killed(void **state)
{
	(void)state;
	expect_nothing_left(TIMEOUT, SIGKILL, "stays");
}

static void test_run_killed(void **state)
{
	static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		expect_nothing_left(RUN, signals[i], "stays");
}

/* A program that fails by chance is forgiven when that is asked for, memory errors never. */
static void test_run_again(void **state)
{
	static const struct {
		const char *again, *how;
		int status;
	} cases[] = {{"0", "fails", 1},	 {"1", "fails", 0},  {"1", "sanitizer", 1},
		     {"1", "always", 1}, {"0", "daemon", 1}, {"1", "daemon", 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *folder = folder_make();
		char *program = entry(cases[i].how, folder, "file");
		char *argv[] = {(char *)"tests/run", folder, program, NULL};

		setenv("TEST_AGAIN", cases[i].again, 1);
		assert_int_equal(process_run(argv, NULL, NULL), cases[i].status);
		unsetenv("TEST_AGAIN");
		free(program);
		folder_remove(folder);
	}
}

/*
 * The first program waits for a file that the second makes, for a second where it cannot come; the
 * second fails if it makes the file.
 */
static void expect_output(const char *jobs, const char *again, const char *between, bool passes)
{
	char *folder = folder_make();
	char *waits = entry(passes && again[0] == '0' ? "awaits" : "looks", folder, "file");
	char *makes = entry("fails", folder, "file");
	char *argv[] = {(char *)"tests/run",
			(char *)"-j",
			(char *)jobs,
			folder,
			waits,
			between ? (char *)between : makes,
			between ? makes : NULL,
			NULL};
	struct buf out = BUF_INIT;
	const char *ok;

	setenv("TEST_AGAIN", again, 1);
	assert_int_equal(process_run(argv, &out, NULL), again[0] == '0');
	unsetenv("TEST_AGAIN");
	ok = strstr(out.data, "  ok ");
	assert_int_equal(ok != NULL, passes);
	assert_int_equal(ok && ok < strstr(out.data, "  FAIL "), passes && again[0] == '0');
	buf_fini(&out);
	free(makes);
	free(waits);
	folder_remove(folder);
}

static void test_side_by_side(void **state)
{
	(void)state;
	expect_output("2", "0", NULL, true);
	expect_output("1", "0", NULL, false);
	expect_output("2", "0", "--alone", false);
}

static void test_again_after_all_others(void **state)
{
	(void)state;
	expect_output("1", "2", NULL, true);
}

/* A program that makes a file and fails, or passes if the file is there. Without it: did it run? */
static void test_passed_before(void **state)
{
	static const struct {
		const char *passed, *again;
		bool always, is_there;
		int status;
	} steps[] = {
		{"passed", "1", false, false, 0}, /* by chance: that is not kept */
		{"passed", "0", false, false, 1}, {"passed", "0", false, true, 0},
		{"passed", "0", false, false, 0}, {"", "0", false, false, 1},
		{"passed", "0", true, false, 1},  {"other", "0", false, false, 1},
	};
	char *folder = folder_make(), *file = mem_printf("%s/file", folder);
	char *passed = mem_printf("%s/passed", folder), *other = mem_printf("%s/other", folder);
	char *program = entry("fails", folder, "file"), *bin = mem_printf("%s/bin", folder);

	(void)state;
	/* The program starts nothing but itself. */
	assert_int_equal(mkdir(bin, 0700), 0);
	setenv("BIN", bin, 1);
	setenv("TB", bin, 1);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		char *argv[] = {(char *)"tests/run", folder,
				steps[i].always ? (char *)"--always" : program,
				steps[i].always ? program : NULL, NULL};

		if (!steps[i].is_there)
			unlink(file);
		setenv("TEST_AGAIN", steps[i].again, 1);
		setenv("TEST_PASSED",
		       !steps[i].passed[0]	   ? ""
		       : steps[i].passed[0] == 'p' ? passed
						   : other,
		       1);
		if (process_run(argv, NULL, NULL) != steps[i].status)
			fail_msg("step %zu", i);
	}
	unsetenv("TEST_AGAIN");
	unsetenv("TEST_PASSED");
	free(bin);
	free(program);
	free(other);
	free(passed);
	free(file);
	folder_remove(folder);
}

static int be(const char *how, const char *file)
{
	if (strcmp(how, "always") == 0)
		return 1;
	if (strcmp(how, "fails") == 0 || strcmp(how, "sanitizer") == 0)
		return fail_first(file, how[0] == 's');
	if (strcmp(how, "awaits") == 0 || strcmp(how, "looks") == 0)
		return !await(is_there, (void *)file, how[0] == 'a' ? SECONDS : 1);
	if (strcmp(how, "overflows") == 0)
		return overflow(file);
	if (strcmp(how, "daemon") == 0)
		return start_overflow(file);
	return be_program(file, strcmp(how, "stays") == 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_takes_too_long),
		cmocka_unit_test(test_timeout_killed),
		cmocka_unit_test(test_run_killed),
		cmocka_unit_test(test_run_again),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_again_after_all_others),
		cmocka_unit_test(test_passed_before),
	};

	if (argc == 3)
		return be(argv[1], argv[2]);
	unsetenv("TEST_AGAIN");
	unsetenv("TEST_PASSED");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
