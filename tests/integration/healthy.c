/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel-agent --healthy beside an agent that runs, confined, among processes of its own: it
 * turns, is stopped, goes on, and ends. Other agents of this machine are out of its sight.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"

/*
 * $1 is the program, $2 a folder with a key. Nobody listens where it reports to: that is no matter
 * of its health.
 */
static const char story[] =
	"\"$1\" --key-file \"$2/key\" --node-name n --aggregator tcp://127.0.0.1:9 2>\"$2/log\" & "
	"agent=$!\n"
	"until grep -q 'node n: tier T' \"$2/log\"; do kill -0 $agent || exit 1; sleep 0.1; done\n"
	"for does in CONT STOP CONT TERM; do\n"
	"	kill -$does $agent\n"
	"	[ $does = TERM ] && wait $agent\n"
	"	until [ $does != STOP ] || grep -q 'State:.T' /proc/$agent/status; do sleep 0.1; "
	"done\n"
	"	why=$(\"$1\" --healthy 2>&1); echo \"$does $? $why\"\n"
	"done\n";

static void test_story(void **state)
{
	char *folder = folder_make(), *program = mem_strdup(program_path("evenkeel-agent"));
	char *argv[] = {(char *)"/bin/sh",
			(char *)"-c",
			(char *)"(umask 077; head -c 32 /dev/urandom >\"$3/key\") && "
				"exec unshare --mount --pid --fork --mount-proc /bin/sh -c \"$1\" "
				"story \"$2\" \"$3\"",
			(char *)"story",
			(char *)story,
			program,
			folder,
			NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: processes of one's own need root\n");
		skip();
	}
	assert_int_equal(process_run(argv, &out, &err), 0);
	buf_add_str(&out, "");
	print_message("%s", out.data);
	assert_non_null(
		strstr(out.data, "CONT 0 \nSTOP 1 evenkeel-agent: error: the agent, process "));
	assert_non_null(
		strstr(out.data, "\nCONT 0 \nTERM 1 evenkeel-agent: error: no agent runs here\n"));
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_story)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
