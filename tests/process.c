/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/process.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"

enum { PORT_MIN = 10000 };

char *folder_make(void)
{
	const char *base = getenv("TMPDIR");
	char *path = mem_printf("%s/evenkeel-test-XXXXXX", base ? base : "/tmp");

	if (!mkdtemp(path)) {
		perror(path);
		abort();
	}
	return path;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
	(void)st;
	(void)flag;
	(void)walk;
	return remove(path);
}

void folder_remove(char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(folder);
}

const char *program_path(const char *name)
{
	static char path[256];
	const char *bin = getenv("BIN");

	snprintf(path, sizeof(path), "%s/%s", bin ? bin : "build/bin", name);
	return path;
}

/* The signal only comes for a parent that dies after it was asked for. */
static void become(pid_t parent, char *const argv[], int out, int err)
{
	/* Tests that run in a pod do not follow its cluster. */
	unsetenv("KUBERNETES_SERVICE_HOST");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

pid_t process_start(const char *log, char *const argv[])
{
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	pid_t parent = getpid(), pid = fd < 0 ? -1 : fork();

	if (pid == 0)
		become(parent, argv, fd, fd);
	if (pid < 0)
		perror(log);
	if (fd >= 0)
		close(fd);
	return pid;
}

static int exit_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int process_stop(pid_t pid, int signal_number)
{
	kill(pid, signal_number);
	return exit_status(pid);
}

static void drain(int out, struct buf *out_text, int err, struct buf *err_text)
{
	struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	struct buf *texts[2] = {out_text, err_text};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		poll(fds, 2, -1);
		for (int i = 0; i < 2; i++) {
			char chunk[4096];
			ssize_t got;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			got = read(fds[i].fd, chunk, sizeof(chunk));
			if (got > 0 && texts[i])
				buf_add(texts[i], chunk, (size_t)got);
			if (got <= 0)
				fds[i].fd = -1;
		}
	}
}

int process_run(char *const argv[], struct buf *out, struct buf *err)
{
	int out_pipe[2], err_pipe[2];
	pid_t parent = getpid(), pid;

	if (pipe2(out_pipe, O_CLOEXEC) || pipe2(err_pipe, O_CLOEXEC)) {
		perror("pipe");
		abort();
	}
	pid = fork();
	if (pid == 0)
		become(parent, argv, out_pipe[1], err_pipe[1]);
	close(out_pipe[1]);
	close(err_pipe[1]);
	drain(out_pipe[0], out, err_pipe[0], err);
	close(out_pipe[0]);
	close(err_pipe[0]);
	return exit_status(pid);
}

void stderr_log_begin(struct stderr_log *l)
{
	l->file = tmpfile();
	l->stderr_was = dup(STDERR_FILENO);
	if (!l->file || l->stderr_was < 0) {
		perror("stderr");
		abort();
	}
	dup2(fileno(l->file), STDERR_FILENO);
}

char *stderr_log_end(struct stderr_log *l)
{
	struct buf text = BUF_INIT;
	char chunk[4096];
	size_t got;

	dup2(l->stderr_was, STDERR_FILENO);
	close(l->stderr_was);
	rewind(l->file);
	while ((got = fread(chunk, 1, sizeof(chunk), l->file)))
		buf_add(&text, chunk, got);
	fclose(l->file);
	return buf_take(&text, NULL);
}

/* The first port that the kernel gives to those who connect. */
static int first_ephemeral_port(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	int first = 0;

	if (!file || fscanf(file, "%d", &first) != 1) {
		perror("ip_local_port_range");
		abort();
	}
	fclose(file);
	return first;
}

static bool bind_port(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool bound = fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address));

	if (fd >= 0)
		close(fd);
	return bound;
}

struct process_cpu process_cpu(pid_t pid)
{
	char *folder = mem_printf("/proc/%d/task", (int)pid);
	DIR *tasks = opendir(folder);
	struct process_cpu sum = {0};
	struct dirent *task;

	while (tasks && (task = readdir(tasks))) {
		char *path = mem_printf("%s/%s/schedstat", folder, task->d_name);
		/* ../schedstat is the first thread's again. */
		FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
		unsigned long long ran_ns, waited_ns;

		if (file && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) == 2) {
			sum.ran_s += (double)ran_ns / NS_PER_SEC;
			sum.waited_s += (double)waited_ns / NS_PER_SEC;
		}
		if (file)
			fclose(file);
		free(path);
	}
	if (tasks)
		closedir(tasks);
	free(folder);
	return sum;
}

/*
 * Any port the kernel would name is one that it may give, before it is used, to somebody who
 * connects. Below those it gives none; tests that run at the same time begin to look at places of
 * their own, and go on behind the last port, which may not be in use yet.
 */
int free_port(void)
{
	int ports = first_ephemeral_port() - PORT_MIN;
	static uint32_t at;

	if (ports <= 0 || (!at && getrandom(&at, sizeof(at), 0) != sizeof(at))) {
		fprintf(stderr, "free port: no port below the ephemeral ones\n");
		abort();
	}
	for (int i = 0; i < ports; i++) {
		int port = PORT_MIN + (int)(at++ % (uint32_t)ports);

		if (bind_port(port))
			return port;
	}
	perror("free port");
	abort();
}

static size_t collect(char *data, size_t size, size_t count, void *ctx)
{
	buf_add(ctx, data, size * count);
	return size * count;
}

struct curl_slist *http_json_headers(void)
{
	static struct curl_slist headers = {(char *)"Content-Type: application/json", NULL};

	return &headers;
}

static long request(const char *url, const char *json, struct buf *body)
{
	CURL *curl = curl_easy_init();
	long status = 0;

	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	if (json) {
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http_json_headers());
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json);
	}
	if (curl_easy_perform(curl) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	return status;
}

long http_get(const char *url, struct buf *body)
{
	return request(url, NULL, body);
}

long http_post(const char *url, const char *json, struct buf *body)
{
	return request(url, json, body);
}

cJSON *http_get_json(const char *url)
{
	struct buf body = BUF_INIT;
	cJSON *json = NULL;

	if (http_get(url, &body) == 200 && body.data)
		json = cJSON_Parse(body.data);
	buf_fini(&body);
	return json;
}

double scaled_s(double seconds)
{
	const char *times = getenv("TEST_TIME_SCALE");

	return times ? seconds * strtod(times, NULL) : seconds;
}

bool await(bool (*done)(void *ctx), void *ctx, double seconds)
{
	int64_t until = clock_mono_ns() + (int64_t)(scaled_s(seconds) * NS_PER_SEC);

	while (!done(ctx)) {
		if (clock_mono_ns() >= until)
			return done(ctx);
		poll(NULL, 0, 50);
	}
	return true;
}
