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

/*
 * $3 is an aggregator, which refuses the agent's join token until its file names the node. It reads
 * the file again on SIGHUP, on which the agent asks again; a refusal would have it wait for 30 s.
 */
static const char waiting[] =
	"umask 077; cd \"$2\"; t=0123456789abcdef0123; echo $t other >tokens; echo $t >token\n"
	"\"$3\" --listen 127.0.0.1:0 --ingest ipc://$2/socket --enrolment-key \"$2/k\" "
	"--join-token-file \"$2/tokens\" 2>\"$2/a\" &\n"
	"aggregator=$!\n"
	"until [ -S socket ] && [ -s k.pub ]; do kill -0 $aggregator || exit 1; sleep 0.1; done\n"
	"export EVENKEEL_STATUS_FILE=status\n"
	"\"$1\" --aggregator-key k.pub --join-token-file token --node-name n --interval 1s "
	"--aggregator ipc://$2/socket 2>\"$2/log\" &\n"
	"agent=$!\n"
	"until grep -q 'does not enrol' status; do kill -0 $agent || exit 1; sleep 0.1; done\n"
	"why=$(\"$1\" --healthy 2>&1); echo \"$? $why\"\n"
	"echo $t n >tokens; kill -HUP $aggregator\n"
	"while grep -q 'does not enrol' status; do kill -HUP $agent || exit 1; sleep 1; done\n"
	"why=$(\"$1\" --healthy 2>&1); echo \"$? $why\"; tr '\\0' ' ' </proc/$agent/cmdline\n";

/* What a story tells among processes of its own. */
static void tell(const char *text, struct buf *out)
{
	char *folder = folder_make(), *program = mem_strdup(program_path("evenkeel-agent"));
	char *aggregator = mem_strdup(program_path("evenkeel-aggregator"));
	char *argv[] = {(char *)"/bin/sh",
			(char *)"-c",
			(char *)"(umask 077; head -c 32 /dev/urandom >\"$3/key\") && "
				"exec unshare --mount --pid --fork --mount-proc /bin/sh -c \"$1\" "
				"story \"$(realpath \"$2\")\" \"$3\" \"$(realpath \"$4\")\"",
			(char *)"story",
			(char *)text,
			program,
			folder,
			aggregator,
			NULL};
	struct buf err = BUF_INIT;

	if (geteuid() != 0) {
		print_message("SKIP: processes of one's own need root\n");
		skip();
	}
	assert_int_equal(process_run(argv, out, &err), 0);
	buf_add_str(out, "");
	print_message("%s", out->data);
	buf_fini(&err);
	free(program);
	free(aggregator);
	folder_remove(folder);
}

static void test_waiting_agent_says_why(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	tell(waiting, &out);
	assert_memory_equal(out.data, "0 ipc://", 8);
	assert_non_null(strstr(out.data, "does not enrol this node: the join token is for other"));
	assert_non_null(strstr(out.data, "\n0 \n"));
	assert_non_null(strstr(out.data, "--aggregator-key k.pub")); /* for ps, all the time */
	buf_fini(&out);
}

static void test_story(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	tell(story, &out);
	assert_non_null(
		strstr(out.data, "CONT 0 \nSTOP 1 evenkeel-agent: error: the agent, process "));
	assert_non_null(
		strstr(out.data, "\nCONT 0 \nTERM 1 evenkeel-agent: error: no agent runs here\n"));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_story),
					   cmocka_unit_test(test_waiting_agent_says_why)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
