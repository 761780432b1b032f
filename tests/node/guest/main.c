/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test pods run: nothing, or one core as fast as it is let. Alone in its image, so it is
 * static and needs no files.
 *
 *     guest          waits, and reaps what a sandbox's process namespace leaves to it
 *     guest burn     uses CPU until it is told to end
 *     guest done     ends at once
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_SUCCESS);
}

static void reap(int signal_number)
{
	(void)signal_number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(int argc, char **argv)
{
	volatile unsigned long turns = 0;

	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGCHLD, reap);
	if (argc > 1 && strcmp(argv[1], "done") == 0)
		return EXIT_SUCCESS;
	while (argc > 1 && strcmp(argv[1], "burn") == 0)
		turns++;
	for (;;)
		pause();
}
