/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evenkeel program against a small server with canned answers: requests, output, messages and
 * exit codes.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

#define FRESH(name)                                                                                \
	"{\"name\":\"" name "\",  \"source\":{\"state\":\"fresh\",\"ageSeconds\":1.50},"           \
	"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":250.000}}}}"
#define LATE(name) "{\"name\":\"" name "\",\"source\":{\"state\":\"late\",\"ageSeconds\":45}}"

/* What the server says to "METHOD PATH?QUERY". */
struct answer {
	const char *request;
	unsigned int status;
	const char *body;
};

struct server {
	struct MHD_Daemon *daemon;
	char url[64];
	const struct answer *answers; /* ended by a NULL request */
	const char *tag; /* of all answers; who has it gets 304; NULL: none */
	pthread_mutex_t lock;
	struct buf log; /* under lock: a line for each request, with its condition, then its body */
};

static struct server server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *key,
				     const char *value)
{
	struct buf *line = context;

	(void)kind;
	buf_printf(line, "%c%s=%s", strchr(line->data, '?') ? '&' : '?', key, value ? value : "");
	return MHD_YES;
}

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned int status,
			     const char *body)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(body), (void *)body, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (server.tag)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, server.tag);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result respond(struct MHD_Connection *connection, const char *line,
			       const char *condition)
{
	for (const struct answer *a = server.answers; a->request; a++) {
		if (strcmp(a->request, line) != 0)
			continue;
		if (server.tag && condition && strcmp(server.tag, condition) == 0)
			return queue(connection, 304, "");
		return queue(connection, a->status, a->body);
	}
	return queue(connection, 404, "<html>nothing here</html>");
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *data, size_t *len, void **state)
{
	const char *condition = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							    MHD_HTTP_HEADER_IF_NONE_MATCH);
	struct buf line = BUF_INIT;
	enum MHD_Result result;

	(void)context;
	(void)version;
	if (!*state) {
		*state = &server;
		return MHD_YES;
	}
	if (*len) {
		pthread_mutex_lock(&server.lock);
		buf_printf(&server.log, "%.*s\n", (int)*len, data);
		pthread_mutex_unlock(&server.lock);
		*len = 0;
		return MHD_YES;
	}
	buf_printf(&line, "%s %s", method, path);
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, &line);
	pthread_mutex_lock(&server.lock);
	buf_printf(&server.log, "%s%s%s\n", line.data, condition ? " unless " : "",
		   condition ? condition : "");
	pthread_mutex_unlock(&server.lock);
	result = respond(connection, line.data, condition);
	buf_fini(&line);
	return result;
}

static void serve_tagged(const struct answer *answers, const char *tag)
{
	pthread_mutex_lock(&server.lock);
	server.answers = answers;
	server.tag = tag;
	buf_clear(&server.log);
	buf_add_str(&server.log, "");
	pthread_mutex_unlock(&server.lock);
}

static void serve(const struct answer *answers)
{
	serve_tagged(answers, NULL);
}

static int start_server(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)state;
	server.daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request,
					 NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_END);
	if (!server.daemon)
		return -1;
	snprintf(server.url, sizeof(server.url), "http://127.0.0.1:%d",
		 MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	setenv("EVENKEEL_SERVER", server.url, 1);
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	MHD_stop_daemon(server.daemon);
	buf_fini(&server.log);
	return 0;
}

enum { ARGS_MAX = 8 };

struct result {
	int code;
	struct buf out, err;
};

static void run_as(struct result *r, const char *program, char *const args[ARGS_MAX])
{
	char *argv[ARGS_MAX + 2] = {(char *)program};

	*r = (struct result){0};
	for (size_t i = 0; i < ARGS_MAX && args[i]; i++)
		argv[i + 1] = args[i];
	r->code = process_run(argv, &r->out, &r->err);
	buf_add_str(&r->out, "");
	buf_add_str(&r->err, "");
}

static void run(struct result *r, char *const args[ARGS_MAX])
{
	run_as(r, program_path("evenkeel"), args);
}

static void result_fini(struct result *r)
{
	buf_fini(&r->out);
	buf_fini(&r->err);
}

struct expectation {
	char *args[ARGS_MAX];
	int code;
	const char *out; /* NULL: anything */
	const char *err; /* what standard error begins with */
};

static void check(const struct expectation *e)
{
	struct result r;

	run(&r, e->args);
	if (strncmp(r.err.data, e->err, strlen(e->err)) != 0 || (!e->err[0] && r.err.len))
		assert_string_equal(r.err.data, e->err);
	if (e->out)
		assert_string_equal(r.out.data, e->out);
	assert_int_equal(r.code, e->code);
	result_fini(&r);
}

static void check_all(const struct expectation *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&cases[i]);
}

#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof((cases)[0]))

static const char two_nodes[] = "{\"items\":[" FRESH("a") "," LATE("b") "],\"time\":\"x\"}\n";

static const struct answer nodes[] = {
	{"GET /v1/nodes?limit=500", 200, two_nodes},
	{NULL, 0, NULL},
};

static void shows_nodes(void **state)
{
	static const struct expectation cases[] = {
		{{"nodes", "--no-headers", "a"},
		 0,
		 "a  250m/-  -  -  -  -  -  -  -  -  1s  -\n",
		 ""},
		{{"--no-headers", "nodes", "--", "a"},
		 0,
		 "a  250m/-  -  -  -  -  -  -  -  -  1s  -\n",
		 ""},
		{{"nodes", "-o", "json"}, 0, two_nodes, ""},
		{{"-ojson", "nodes", "b"},
		 4,
		 "{\"items\":[" LATE("b") "],\"time\":\"x\"}\n",
		 "evenkeel: the usage of node \"b\" is late: 45s old\n"},
		{{"nodes", "--strict", "--color=always", "--sort-by=cpu"},
		 4,
		 NULL,
		 "evenkeel: 1 of 2 nodes are not fresh (--strict)\n"},
		{{"nodes", "c"}, 4, NULL, "evenkeel: node \"c\" is not known\n"},
	};
	(void)state;

	serve(nodes);
	CHECK_ALL(cases);
}

static void follows_pages(void **state)
{
	static const struct answer pages[] = {
		{"GET /v1/pods?limit=5000&namespace=a b", 200,
		 "{\"time\":\"1\",\"items\":[{\"name\":\"p1\",\"x\":1.0}],\"continue\":\"t&1\"}\n"},
		{"GET /v1/pods?limit=5000&namespace=a b&continue=t&1", 200,
		 "{\"time\":\"2\",\"items\":[],\"continue\":\"t2\"}\n"},
		{"GET /v1/pods?limit=5000&namespace=a b&continue=t2", 200,
		 "{\"time\":\"3\",\"items\":[{\"name\":\"p2\"},{\"name\":\"p3\"}]}\n"},
		{NULL, 0, NULL},
	};
	static const struct expectation cases[] = {
		{{"-n", "a b", "pods", "-o", "json"},
		 4,
		 "{\"time\":\"3\",\"items\":[{\"name\":\"p1\",\"x\":1.0},{\"name\":\"p2\"},{"
		 "\"name\":\"p3\"}]}\n",
		 "evenkeel: no pod is fresh"},
		{{"pods", "--namespace=a b", "--no-headers", "--limit", "2"},
		 4,
		 "p1  -  -  -  -  -  -  -  -  -  never\np2  -  -  -  -  -  -  -  -  -  never\n",
		 "evenkeel: no pod is fresh"},
	};
	(void)state;

	serve(pages);
	CHECK_ALL(cases);
}

static void asks_for_scores(void **state)
{
	static const char body[] =
		"{\"kind\":\"ScoreList\",\"items\":[{\"node\":\"a\",\"score\":7,"
		"\"plugins\":[{\"name\":\"P\",\"score\":7,\"rung\":\"window 5m\"}]}]}";
	static const struct answer answers[] = {
		{"POST /v1/scores", 200, body},
		{NULL, 0, NULL},
	};
	static const struct answer refusals[] = {
		{"POST /v1/scores", 400,
		 "{\"error\":{\"code\":\"badRequest\",\"message\":\"must be\\n "
		 "text\",\"field\":\"plugins[0]\"}}"},
		{NULL, 0, NULL},
	};
	static const struct answer pod_refused[] = {
		{"POST /v1/scores", 400,
		 "{\"error\":{\"code\":\"badRequest\",\"message\":\"must be text\",\"field\":"
		 "\"pod.spec\"}}"},
		{NULL, 0, NULL},
	};
	static const struct answer no_node[] = {
		{"POST /v1/scores", 400,
		 "{\"error\":{\"code\":\"badRequest\",\"message\":\"unheard\",\"field\":\"nodes[0]"
		 "\"}"
		 "}"},
		{NULL, 0, NULL},
	};
	char *folder = folder_make(), *file = mem_printf("%s/pod.yaml", folder);
	FILE *f = fopen(file, "w");
	const struct expectation by_file = {{"scores", "--pod", file, "-p", "P", "--plugin=Q", "a",
					     "--no-headers"},
					    0,
					    "a  7  7  window 5m\n",
					    ""};
	const struct expectation missing = {
		{"scores", "--pod", "/does/not/exist"},
		1,
		"",
		"evenkeel: --pod: cannot read /does/not/exist: No such file or directory\n"};
	const struct expectation refused = {
		{"scores", "--variant=x"}, 2, "", "evenkeel: plugins[0]: must be? text (says http"};
	const struct expectation bad_pod = {{"scores"}, 1, "", "evenkeel: pod.spec: must be text"};
	const struct expectation unheard = {{"scores", "z"}, 4, "", "evenkeel: nodes[0]: unheard"};
	const struct expectation twice = {
		{"scores", "-w", "--pod", "-"}, 2, "", "evenkeel: --watch cannot read --pod -"};
	(void)state;

	assert_non_null(f);
	fputs("metadata: {name: x}\nspec:\n  cpu: 500m\n", f);
	fclose(f);
	serve(answers);
	check(&by_file);
	assert_string_equal(
		server.log.data,
		"{\"pod\":{\"metadata\":{\"name\":\"x\"},\"spec\":{\"cpu\":\"500m\"}},"
		"\"nodes\":[\"a\"],\"plugins\":[\"P\",\"Q\"],\"fits\":true}\nPOST /v1/scores\n");
	check(&missing);
	check(&twice);
	serve(refusals);
	check(&refused);
	serve(pod_refused);
	check(&bad_pod);
	serve(no_node);
	check(&unheard);
	free(file);
	folder_remove(folder);
}

static void says_what_is_wrong(void **state)
{
	static const struct answer answers[] = {
		{"GET /v1/nodes?limit=500", 200, "surely not JSON"},
		{"GET /v1/pods?limit=5000", 503,
		 "{\"error\":{\"code\":\"notReady\",\"message\":\"still starting\"}}"},
		{NULL, 0, NULL},
	};
	static const struct expectation cases[] = {
		{{"nodes"}, 1, "", "evenkeel: http://127.0.0.1:"},
		{{"pods"}, 1, "", "evenkeel: still starting (says http://127.0.0.1:"},
		{{"scores"}, 1, "", "evenkeel: http://127.0.0.1:"},
		{{"nodes", "-s", "ftp://x"}, 2, "", "evenkeel: --server: \"ftp://x\" is not a URL"},
		{{"nodes", "-s", "http://a b"},
		 1,
		 "",
		 "evenkeel: --server: \"http://a b\" is not a URL"},
		{{"nodes", "-s", ""}, 2, "", "evenkeel: --server: \"\" is not a URL"},
		{{"nods"}, 2, "", "evenkeel: unknown command \"nods\"; did you mean nodes?\n"},
		{{"-o", "nodes"}, 2, NULL, "evenkeel: --output: \"nodes\" is not known"},
		{{"nodes", "--wath"},
		 2,
		 "",
		 "evenkeel: unknown option --wath; did you mean --watch?\n"},
		{{"nodes", "--plugin=x"}, 2, "", "evenkeel: unknown option --plugin"},
		{{"nodes", "--window=7m"}, 2, "", "evenkeel: --window: \"7m\" is not known; it is"},
		{{"nodes", "--timeout=5"}, 2, "", "evenkeel: --timeout: \"5\" needs a unit"},
		{{"nodes", "--snapshot", ""}, 2, "", "evenkeel: --snapshot: the name of the file"},
		{{"nodes", "--snapshot=x", "--usage="}, 2, "", "evenkeel: --usage: the name of"},
		{{"scores", "--blend", ""}, 2, "", "evenkeel: --blend: \"\" is not of the form"},
		{{"version", "x"}, 2, "", "evenkeel: this command takes no arguments"},
		{{NULL}, 2, "", "Usage: evenkeel COMMAND"},
	};
	(void)state;

	serve(answers);
	CHECK_ALL(cases);
}

#define NO_API "{\"error\":{\"code\":\"noData\",\"message\":\"no Kubernetes API is followed\"}}"

static void says_that_there_is_no_api(void **state)
{
	char pod[] = "tests/kube/pod.yaml";
	static const struct answer answers[] = {
		{"GET /v1/quotas", 503, NO_API},	  {"GET /v1/quotas/shop", 503, NO_API},
		{"GET /v1/slack", 503, NO_API},		  {"GET /v1/drain", 503, NO_API},
		{"POST /v1/scores", 503, NO_API},	  {"POST /v1/quotas/admit", 503, NO_API},
		{"POST /v1/quotas/preempt", 503, NO_API}, {NULL, 0, NULL},
	};
	static const char *const commands[][2] = {
		{"quota", NULL},      {"quota", "shop"}, {"quota", "lint"}, {"quota", "admit"},
		{"quota", "preempt"}, {"slack", NULL},	 {"drain", NULL},   {"scores", NULL},
	};
	(void)state;

	serve(answers);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct expectation e = {.code = 4,
					.out = "",
					.err = "evenkeel: no Kubernetes API is followed"};

		e.args[0] = (char *)commands[i][0];
		e.args[1] = (char *)commands[i][1];
		if (e.args[1] &&
		    (strcmp(e.args[1], "admit") == 0 || strcmp(e.args[1], "preempt") == 0)) {
			e.args[2] = "--pod";
			e.args[3] = pod;
		}
		check(&e);
	}
}

static void says_when_nobody_answers(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char url[64], want[256];
	struct expectation e = {
		.args = {"nodes", "--server", url}, .code = 1, .out = "", .err = want};
	(void)state;

	snprintf(url, sizeof(url), "127.0.0.1:%d", free_port());
	snprintf(want, sizeof(want),
		 "evenkeel: cannot reach http://%s (Connection refused); start evenkeel-aggregator "
		 "there, or name another with --server or EVENKEEL_SERVER\n",
		 url);
	check(&e);

	/* The kernel accepts, nobody reads. */
	assert_int_equal(bind(silent, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(silent, 8), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&address, &len), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
	snprintf(want, sizeof(want),
		 "evenkeel: no answer from http://127.0.0.1:%d within 0.1s; see --timeout\n",
		 ntohs(address.sin_port));
	e.args[3] = "--timeout=100ms";
	check(&e);
	close(silent);
}

/* The canned server plays the proxy: nothing but the requested URL tells who was to be asked. */
static void asks_only_loopback_past_the_proxy(void **state)
{
	static const struct {
		const char *server;
		bool direct;
	} cases[] = {
		{"http://localhost.example.com:1", false},
		{"http://127.example.com:1", false},
		{"http://localhost@example.com:1", false},
		{"http://localhost:1", true},
		{"http://LOCALHOST:1", true},
		{"http://127.0.0.2:1", true},
		{"http://[::1]:1", true},
	};
	static const struct answer none[] = {{0}};
	(void)state;

	setenv("http_proxy", server.url, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *args[ARGS_MAX] = {"nodes", "--server", (char *)cases[i].server};
		struct result r;

		serve(none);
		run(&r, args);
		if ((strlen(server.log.data) == 0) != cases[i].direct)
			fail_msg("%s: the proxy was asked \"%s\"", cases[i].server,
				 server.log.data);
		assert_int_equal(r.code, 1);
		result_fini(&r);
	}
	unsetenv("http_proxy");
}

static void tells_versions(void **state)
{
	static const struct answer answers[] = {
		{"GET /v1/status", 200, "{\"version\":\"9.8.7\"}"},
		{NULL, 0, NULL},
	};
	static const struct expectation cases[] = {
		{{"version", "-ojson"},
		 0,
		 "{\"client\":\"" EVENKEEL_VERSION "\",\"server\":\"9.8.7\"}\n",
		 ""},
		{{"--version"}, 0, "evenkeel " EVENKEEL_VERSION "\n", ""},
		{{"version", "-s127.0.0.1:1", "-ojson"},
		 0,
		 "{\"client\":\"" EVENKEEL_VERSION "\"}\n",
		 "evenkeel: cannot reach"},
	};
	(void)state;

	serve(answers);
	CHECK_ALL(cases);
}

#define STATUS(fresh)                                                                              \
	"{\"version\":\"" EVENKEEL_VERSION "\",\"kubernetes\":{\"mode\":\"standalone\"},"          \
	"\"agents\":{\"nodes\":2,\"fresh\":" fresh ",\"late\":1,\"examples\":{\"late\":[\"b\"]}}," \
	"\"view\":{\"version\":3,\"ageSeconds\":1}}"

static void doctor_tells_by_its_exit_code(void **state)
{
	static const struct answer warned[] = {{"GET /v1/status", 200, STATUS("1")},
					       {NULL, 0, NULL}};
	static const struct answer failed[] = {{"GET /v1/status", 200, STATUS("0")},
					       {NULL, 0, NULL}};
	static const struct answer strange[] = {{"GET /v1/status", 200, "[]"}, {NULL, 0, NULL}};
	static const struct expectation warns[] = {
		{{"doctor"}, 0, NULL, ""},
		{{"doctor", "--strict"}, 3, NULL, ""},
		{{"doctor", "x"}, 2, "", "evenkeel: this command takes no arguments"},
	};
	static const struct expectation fails[] = {{{"doctor", "-ojson"}, 3, NULL, ""}};
	static const struct expectation unreached[] = {
		{{"doctor"}, 3, NULL, ""},
		{{"doctor", "-s127.0.0.1:1", "-ojson"}, 3, NULL, ""},
	};
	(void)state;

	serve(warned);
	CHECK_ALL(warns);
	serve(failed);
	CHECK_ALL(fails);
	serve(strange);
	CHECK_ALL(unreached);
}

static void selects_by_label(void **state)
{
	static const struct answer answers[] = {
		{"GET "
		 "/v1/nodes?limit=500&unlimited=requests&labelSelector=a=b,c in (d)",
		 200, two_nodes},
		{"GET /v1/pods?limit=5000&namespace=n&labelSelector=!x", 200, "{\"items\":[]}"},
		{"GET /v1/pods?limit=5000&node=a&peaks=true", 200, "{\"items\":[]}"},
		{"GET /v1/drain?explain=true&node=a&labelSelector=b", 404,
		 "{\"error\":{\"code\":\"notFound\",\"message\":\"odd\"}}"},
		{"GET /v1/pods?limit=5000&labelSelector=a b", 400,
		 "{\"error\":{\"code\":\"badRequest\",\"message\":\"odd\",\"field\":"
		 "\"labelSelector\"}}"},
		{NULL, 0, NULL},
	};
	static const struct expectation cases[] = {
		{{"nodes", "-l", "a=b,c in (d)", "--unlimited=requests", "-ojson"},
		 0,
		 two_nodes,
		 ""},
		{{"pods", "-l", "a b"}, 2, "", "evenkeel: labelSelector: odd (says http"},
		{{"pods", "--node", "a", "--sort-by=p95"},
		 4,
		 NULL,
		 "evenkeel: no pod is known on node a\n"},
		{{"drain", "a", "--explain", "-l", "b"}, 4, "", "evenkeel: odd"},
		{{"drain", "--history", "-l", "b"},
		 2,
		 "",
		 "evenkeel: --history knows no labels; name nodes\n"},
		{{"pods", "--selector=!x", "-n", "n"},
		 0,
		 NULL,
		 "evenkeel: no pod with labels !x in namespace n\n"},
	};
	(void)state;

	serve(answers);
	CHECK_ALL(cases);
}

/* Completion is silent about what it does not find. */
static void completes_names_of_the_server(void **state)
{
	static const struct answer answers[] = {
		{"GET /v1/names", 200,
		 "{\"nodes\":[\"alpha\",\"bravo\"],\"namespaces\":[\"shop\"],\"slackClasses\":["
		 "\"shop/Deployment/web\",\"un\\tit\",7]}"},
		{NULL, 0, NULL},
	};
	static const struct answer strange[] = {{"GET /v1/names", 200, "[]"}, {NULL, 0, NULL}};
	static const struct expectation found[] = {
		{{"__complete", "nodes", "a"}, 0, "alpha\n:4\n", ""},
		{{"__complete", "drain", "-o", "wide", "alpha", "b"}, 0, "bravo\n:4\n", ""},
		{{"__complete", "pods", "--node", ""}, 0, "alpha\nbravo\n:4\n", ""},
		{{"__complete", "pods", "--node=b"}, 0, "--node=bravo\n:4\n", ""},
		{{"__complete", "pods", "-n", ""}, 0, "shop\n:4\n", ""},
		{{"__complete", "quota", "s"}, 0, "shop\n:4\n", ""},
		{{"__complete", "quota", "admit", "s"}, 0, ":4\n", ""},
		{{"__complete", "slack", ""}, 0, "shop/Deployment/web\n:4\n", ""},
		{{"__complete", "--no-such", "nodes", "a"}, 0, "alpha\n:4\n", ""},
		{{"__complete", "--snapshot", "x", "nodes", "a"}, 0, ":4\n", ""},
		{{"__complete", "-s", "127.0.0.1:1", "nodes", "a"}, 0, ":4\n", ""},
	};
	static const struct expectation nothing[] = {{{"__complete", "nodes", ""}, 0, ":4\n", ""}};
	(void)state;

	serve(answers);
	CHECK_ALL(found);
	serve(strange);
	CHECK_ALL(nothing);
}

static bool asked_twice(void *context)
{
	const char *first, *second = NULL;

	(void)context;
	pthread_mutex_lock(&server.lock);
	first = strstr(server.log.data, "GET /v1/nodes");
	if (first)
		second = strstr(first + 1, "GET /v1/nodes");
	pthread_mutex_unlock(&server.lock);
	return second != NULL;
}

/* Reads a file from its start; the caller frees it. */
static char *read_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char text[4096];
	size_t len;

	if (!f)
		return mem_strdup("");
	len = fread(text, 1, sizeof(text), f);
	fclose(f);
	return mem_strndup(text, len);
}

static void watches_until_interrupted(void **state)
{
	char *folder = folder_make(), *log = mem_printf("%s/log", folder);
	char *argv[] = {(char *)program_path("evenkeel"),
			"-w=3s",
			"nodes",
			"-w=300ms",
			"--no-headers",
			"a",
			NULL};
	static const char row[] = "a  250m/-  -  -  -  -  -  -  -  -  1s  -\n";
	char *text;
	pid_t pid;
	(void)state;

	serve(nodes);
	pid = process_start(log, argv);
	assert_true(pid > 0);
	assert_true(await(asked_twice, NULL, 20));
	assert_int_equal(process_stop(pid, SIGINT), 0);
	text = read_text(log);
	/* The second picture may or may not have been written when the signal came. */
	assert_memory_equal(text, row, strlen(row));
	assert_true(!text[strlen(row)] || text[strlen(row)] == '\n');
	free(text);
	free(log);
	folder_remove(folder);
}

struct picture {
	const char *log, *wanted;
};

static bool is_drawn(void *context)
{
	const struct picture *p = context;
	char *text = read_text(p->log);
	bool drawn = strstr(text, p->wanted) != NULL;

	free(text);
	return drawn;
}

/* What stays as it is is not sent again, but grows older. */
static void watching_asks_only_for_changes(void **state)
{
	static const char page[] =
		"{\"items\":[" FRESH("a") "],\"time\":\"x\",\"continue\":\"c\"}\n";
	static const char last[] = "{\"items\":[" LATE("b") "],\"time\":\"x\"}\n";
	static const struct answer same[] = {
		{"GET /v1/nodes?limit=500", 200, page},
		{"GET /v1/nodes?limit=500&continue=c", 200, last},
		{NULL, 0, NULL},
	};
	static const struct answer changed[] = {
		{"GET /v1/nodes?limit=500", 200, last},
		{NULL, 0, NULL},
	};
	static const char asked[] = "GET /v1/nodes?limit=500\n"
				    "GET /v1/nodes?limit=500&continue=c\n"
				    "GET /v1/nodes?limit=500 unless W/\"1\"\n"
				    "GET /v1/nodes?limit=500&continue=c unless W/\"1\"\n";
	char *folder = folder_make(), *log = mem_printf("%s/log", folder);
	char *argv[] = {(char *)program_path("evenkeel"), "nodes", "-w=1s", "--no-headers", NULL};
	struct picture first = {log, "a  250m/-  -  -  -  -  -  -  -  -  1s        -\n"
				     "b       -  -  -  -  -  -  -  -  -  45s late  -\n"};
	/* A blank line stands before each table but the first. */
	struct picture second = {log, "\n\na  250m/-  -  -  -  -  -  -  -  -  "};
	struct picture third = {log, "\nb  -  -  -  -  -  -  -  -  -  45s late  -\n"};
	char *text;
	pid_t pid;
	(void)state;

	serve_tagged(same, "W/\"1\"");
	pid = process_start(log, argv);
	assert_true(pid > 0);
	assert_true(await(is_drawn, &first, 20));
	assert_true(await(is_drawn, &second, 20));
	text = read_text(log);
	assert_in_range(strtol(strstr(text, second.wanted) + strlen(second.wanted), NULL, 10), 2,
			20);
	free(text);
	pthread_mutex_lock(&server.lock);
	assert_memory_equal(server.log.data, asked, strlen(asked));
	pthread_mutex_unlock(&server.lock);
	serve_tagged(changed, "W/\"2\"");
	assert_true(await(is_drawn, &third, 20));
	serve_tagged(changed, "W/\"2\"");
	assert_true(await(asked_twice, NULL, 20));
	assert_non_null(strstr(server.log.data, " unless W/\"2\"\n"));
	assert_int_equal(process_stop(pid, SIGINT), 0);
	free(log);
	folder_remove(folder);
}

static void watching_json_asks_for_all(void **state)
{
	char *argv[] = {(char *)program_path("evenkeel"), "nodes", "-w=300ms", "-ojson", NULL};
	pid_t pid;
	(void)state;

	serve_tagged(nodes, "W/\"1\"");
	pid = process_start("/dev/null", argv);
	assert_true(pid > 0);
	assert_true(await(asked_twice, NULL, 20));
	assert_int_equal(process_stop(pid, SIGINT), 0);
	assert_null(strstr(server.log.data, "unless"));
}

static void watching_ends_when_nobody_was_ever_there(void **state)
{
	static const struct expectation e = {
		{"nodes", "-w", "-s", "127.0.0.1:1"}, 1, "", "evenkeel: cannot reach"};
	(void)state;

	check(&e);
}

static void watching_ends_when_it_cannot_write(void **state)
{
	char *args[ARGS_MAX] = {(char *)"-c", (char *)"exec \"$0\" nodes -w >/dev/full",
				mem_strdup(program_path("evenkeel"))};
	struct result r;
	(void)state;

	serve(nodes);
	run_as(&r, "/bin/sh", args);
	assert_int_equal(r.code, 1);
	assert_string_equal(r.err.data, "evenkeel: cannot write: No space left on device\n");
	result_fini(&r);
	free(args[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_nodes),
		cmocka_unit_test(follows_pages),
		cmocka_unit_test(asks_for_scores),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(says_that_there_is_no_api),
		cmocka_unit_test(says_when_nobody_answers),
		cmocka_unit_test(asks_only_loopback_past_the_proxy),
		cmocka_unit_test(tells_versions),
		cmocka_unit_test(doctor_tells_by_its_exit_code),
		cmocka_unit_test(completes_names_of_the_server),
		cmocka_unit_test(selects_by_label),
		cmocka_unit_test(watches_until_interrupted),
		cmocka_unit_test(watching_asks_only_for_changes),
		cmocka_unit_test(watching_json_asks_for_all),
		cmocka_unit_test(watching_ends_when_nobody_was_ever_there),
		cmocka_unit_test(watching_ends_when_it_cannot_write),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
