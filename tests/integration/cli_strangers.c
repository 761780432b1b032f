/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that would move a terminal's cursor, add lines or turn the text around: in a dump, and in
 * the answers of a server. No form of any command's output has them, and the JSON still means them.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/utf8.h"
#include "shared/yaml_json.h"
#include "tests/process.h"
#include "tests/sanitized.h"

#define EVIL                                                                                       \
	"a\033[2J\xc2\x9b"                                                                         \
	"31m\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf\nnode/prod\r\nb\x7f'\"\t\\"

static char *folder, *dump, *asked, *nasty, url[64];

/* The names of EVIL stand where the document has "@". */
static void add_evil(struct buf *out, const char *document)
{
	struct buf quoted = BUF_INIT;
	struct jsonw w;

	jsonw_init(&w, &quoted);
	jsonw_string(&w, EVIL);
	for (; *document; document++)
		if (*document == '@')
			buf_add(out, quoted.data + 1, quoted.len - 2);
		else
			buf_add_char(out, *document);
	buf_fini(&quoted);
}

static const char cluster[] =
	"{'apiVersion':'v1','kind':'List','items':["
	"{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1','labels':{'zone':'@'}},'status':{"
	"'allocatable':{'cpu':'4','memory':'16Gi','pods':'110'},'conditions':[{'type':'Ready',"
	"'status':'True'}]}},"
	"{'apiVersion':'v1','kind':'Node','metadata':{'name':'n@'},'spec':{'taints':[{'key':'@',"
	"'value':'@','effect':'NoSchedule'}]},'status':{'allocatable':{'cpu':'4','memory':'16Gi',"
	"'pods':'110'},'conditions':[{'type':'Ready','status':'True'}]}},"
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'web@','namespace':'shop','uid':'u1',"
	"'ownerReferences':[{'controller':true,'kind':'ReplicaSet','name':'@','uid':'u2'}],"
	"'annotations':{'evenkeel.io/slack':'@'}},'spec':{'nodeName':'n@','containers':[{"
	"'name':'c@','resources':{'requests':{'cpu':'1500m','memory':'6Gi','@':'1'}}}]},"
	"'status':{'qosClass':'@','phase':'Running'}},"
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p2','namespace':'@','uid':'u3'},'spec'"
	":{"
	"'containers':[{'name':'c'}],'nodeSelector':{'@':'@'}}},"
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'bad@','namespace':'@'},'spec':{"
	"'containers':[{'name':'c','resources':{'requests':{'cpu':'@'}}}]}},"
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'plain','namespace':'shop'},'spec':{"
	"'nodeName':'n1','containers':[{'name':'c'}]}},"
	"{'apiVersion':'scheduling.x-k8s.io/"
	"v1alpha1','kind':'ElasticQuota','metadata':{'name':'q@',"
	"'namespace':'@'},'spec':{'min':{'cpu':2,'@':1},'max':{'cpu':4,'@':1}}},"
	"{'apiVersion':'scheduling.x-k8s.io/v1alpha1','kind':'ElasticQuota','metadata':{'name':'q',"
	"'namespace':'shop'},'spec':{'min':{'cpu':2},'max':{'cpu':4}}},"
	/* Two quotas of a namespace, more guaranteed than there is, and names of several words. */
	"{'apiVersion':'scheduling.x-k8s.io/v1alpha1','kind':'ElasticQuota','metadata':{'name':'r',"
	"'namespace':'shop'},'spec':{'min':{'cpu':200},'max':{'cpu':1}}},"
	"{'apiVersion':'scheduling.x-k8s.io/v1alpha1','kind':'ElasticQuota','metadata':{'name':'s',"
	"'namespace':'a/b'},'spec':{'min':{'cpu':20},'max':{'cpu':40}}},"
	"{'apiVersion':'v1','kind':'Node','metadata':{'name':'sp ace'},'status':{'allocatable':{"
	"'cpu':'4','memory':'16Gi','pods':'110'}}},"
	"{'apiVersion':'v1','kind':'Node','metadata':{'name':'a/b'},'status':{'allocatable':{"
	"'cpu':'4','memory':'16Gi','pods':'110'}}},"
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'x/y','namespace':'shop'},'spec':{"
	"'nodeName':'n1','containers':[{'name':'c'}]}},"
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'z','namespace':'shop n1'},'spec':{"
	"'nodeName':'n1','containers':[{'name':'c'}]}}]}";

static const char pod[] =
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'new','namespace':'shop'},'spec':{"
	"'containers':[{'name':'c','resources':{'requests':{'cpu':'3500m','@':'1'}}}]}}";

static void run(char *const words[], struct buf *out, struct buf *err)
{
	buf_clear(out);
	buf_clear(err);
	assert_true(process_run(words, out, err) < 128);
	buf_add_str(out, "");
	buf_add_str(err, "");
}

enum { WORDS_MAX = 16 };

/* words: "nodes -o json"; "@" is the evil name, POD the pod's file. From the dump, or the server. */
static void ask(const char *words, bool server, struct buf *out, struct buf *err)
{
	char *copy = mem_strdup(words), *save,
	     *argv[WORDS_MAX] = {(char *)program_path("evenkeel")};
	size_t n = 1;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[n++] = strcmp(word, "@") == 0     ? nasty
			    : strcmp(word, "POD") == 0 ? asked
						       : word;
	argv[n++] = (char *)(server ? "--server" : "--snapshot");
	argv[n++] = server ? url : dump;
	run(argv, out, err);
	free(copy);
}

/* --- the server: what the dump says, as raw as JSON readers take it --------------------------- */

static void add_raw(struct buf *out, const char *json)
{
	cJSON *doc = cJSON_Parse(json);
	char *text = cJSON_PrintUnformatted(doc), *at = text, *found;

	assert_non_null(text);
	for (; (found = strstr(at, "\\u001b")); at = found + 6) {
		buf_add(out, at, (size_t)(found - at));
		buf_add_char(out, '\033');
	}
	buf_add_str(out, at);
	buf_add_str(out, "\033[2J \xc2\x9b\r"); /* behind the value */
	cJSON_free(text);
	cJSON_Delete(doc);
}

static const struct {
	const char *path, *words; /* of the command whose JSON it answers; NULL: text */
	const char *text;
	unsigned int status;
} paths[] = {
	{"/v1/nodes", "nodes -o json", NULL, 200},
	{"/v1/pods", "pods -o json", NULL, 200},
	{"/v1/scores", "scores -o json", NULL, 200},
	{"/v1/quotas", "quota -o json", NULL, 200},
	{"/v1/quotas/lint", "quota lint -o json", NULL, 200},
	{"/v1/slack", "slack -o json", NULL, 200},
	{"/v1/drain", "drain -o json", NULL, 200},
	{"/v1/names", NULL, "{'nodes':['@','plain'],'namespaces':['@'],'slackClasses':['@']}", 200},
	{"/v1/status", NULL,
	 "{'version':'@','view':{'version':1,'ageSeconds':1},'kubernetes':{'mode':'api','resources'"
	 ":["
	 "{'name':'@','state':'forbidden','message':'@','required':true}]},'agents':{'nodes':1,"
	 "'late':1,'examples':{'late':['@']}},'quarantine':{'values':1,'nodes':[{'name':'@',"
	 "'lastMessage':'@'}]},'refusedPods':{'nudge':'@'},'database':{'state':'@'}}",
	 200},
	{"/v1/drain/history", NULL,
	 "{'error':{'code':'@','message':'@','field':'nodes[@]'},'x':'@'}", 400},
	{"/", NULL, "<html>@", 503},
};

enum { PATHS = sizeof(paths) / sizeof(paths[0]) };

static struct buf answers[PATHS];
static struct MHD_Daemon *httpd;

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *data, size_t *len, void **state)
{
	size_t i = 0;
	struct MHD_Response *response;
	enum MHD_Result result;

	(void)context, (void)method, (void)version, (void)data;
	if (!*state || *len) {
		*state = answers;
		*len = 0;
		return MHD_YES;
	}
	while (i + 1 < PATHS && strcmp(paths[i].path, path) != 0)
		i++;
	response = MHD_create_response_from_buffer(answers[i].len, answers[i].data,
						   MHD_RESPMEM_PERSISTENT);
	result = MHD_queue_response(connection, paths[i].status, response);
	MHD_destroy_response(response);
	return result;
}

static void make_answers(void)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	for (size_t i = 0; i < PATHS; i++) {
		buf_clear(&out);
		if (paths[i].words) {
			ask(paths[i].words, false, &out, &err);
			add_raw(&answers[i], out.data);
			continue;
		}
		for (const char *p = paths[i].text; *p; p++)
			buf_add_char(&out, (char)(*p == '\'' ? '"' : *p));
		add_evil(&answers[i], out.data);
	}
	buf_fini(&out);
	buf_fini(&err);
}

static void write_document(const char *path, const char *document)
{
	struct buf json = BUF_INIT, text = BUF_INIT;
	FILE *f = fopen(path, "w");

	for (const char *p = document; *p; p++)
		buf_add_char(&json, (char)(*p == '\'' ? '"' : *p));
	add_evil(&text, json.data);
	assert_non_null(f);
	fputs(text.data, f);
	assert_int_equal(fclose(f), 0);
	buf_fini(&json);
	buf_fini(&text);
}

static int start(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)state;
	unsetenv("EVENKEEL_SERVER");
	unsetenv("EVENKEEL_OUTPUT");
	folder = folder_make();
	dump = mem_printf("%s/dump%s", folder, "\xe2\x80\xae.json");
	nasty = mem_printf("n%s", EVIL);
	asked = mem_printf("%s/pod.json", folder);
	write_document(dump, cluster);
	write_document(asked, pod);
	make_answers();
	httpd = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, NULL,
				 MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_END);
	if (!httpd)
		return -1;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d",
		 MHD_get_daemon_info(httpd, MHD_DAEMON_INFO_BIND_PORT)->port);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	MHD_stop_daemon(httpd);
	for (size_t i = 0; i < PATHS; i++)
		buf_fini(&answers[i]);
	folder_remove(folder);
	free(dump);
	free(asked);
	free(nasty);
	return 0;
}

/* --- what is printed -------------------------------------------------------------------------- */

static const char *const commands[] = {
	"nodes",	   "nodes @",	       "pods",	   "pods --node @",   "scores",
	"scores @",	   "scores --explain", "quota",	   "quota @",	      "quota lint",
	"slack",	   "slack --explain",  "drain",	   "drain --explain", "drain @",
	"drain --history", "doctor",	       "version",  "slack @",	      "scores --sort-by @",
	"advise",	   "advise --explain", "advise @",
};
static const char *const forms[] = {
	"table", "wide",     "json",	    "yaml",	"csv",
	"name",	 "commands", "soft-taints", "balloons", "capacitybuffers",
	"patch", "vpa",	     "scenario"};

enum {
	COMMANDS = sizeof(commands) / sizeof(commands[0]),
	FORMS = sizeof(forms) / sizeof(forms[0])
};

/* Lines of clean text; each of CSV ends with a carriage return. */
static void expect_clean(const char *words, const struct buf *text, bool csv)
{
	char *copy = mem_strdup(text->data);

	assert_int_equal(strlen(copy), text->len);
	for (char *line = copy, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (csv && *line && line[strlen(line) - 1] == '\r')
			line[strlen(line) - 1] = '\0';
		if (!utf8_is_clean(line))
			fail_msg("%s: %s", words, line);
	}
	free(copy);
}

static bool is_object(const char *line, size_t len)
{
	static const char *const objects[] = {"node/n1", "pod/shop/plain", "elasticquota/shop"};

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (strlen(objects[i]) == len && memcmp(objects[i], line, len) == 0)
			return true;
	return len > 6 && memcmp(line, "slack/", 6) == 0;
}

static void expect_objects(const char *words, const char *text)
{
	for (; *text; text += strcspn(text, "\n") + 1)
		if (!is_object(text, strcspn(text, "\n")))
			fail_msg("%s: %s", words, text);
}

static void every_form(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < COMMANDS * FORMS * 2; i++) {
		size_t of = i / 2 / FORMS;
		const char *form = forms[i / 2 % FORMS];
		char *words;

		/* A start takes 30 ms of CPU with sanitizers: dump and server by turns. */
		if (SANITIZED && (i / 2 + of + i) % 2)
			continue;
		words = mem_printf("%s -o %s", commands[of], form);
		ask(words, i % 2, &out, &err);
		expect_clean(words, &out, strcmp(form, "csv") == 0);
		expect_clean(words, &err, false);
		if (strcmp(form, "name") == 0)
			expect_objects(words, out.data);
		free(words);
	}
	buf_fini(&out);
	buf_fini(&err);
}

static void names_that_are_left_out_are_counted(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (int server = 0; server < 2; server++) {
		ask("nodes -o name", server, &out, &err);
		assert_string_equal(out.data, "node/n1\n");
		assert_non_null(strstr(err.data, "evenkeel: 3 left out: "));
		ask("pods -o name", server, &out, &err);
		assert_string_equal(out.data, "pod/shop/plain\n");
		assert_non_null(strstr(err.data, "evenkeel: 4 left out: "));
		/* Each quota's namespace once; what a finding says of the cluster is no object's. */
		ask("quota -o name", server, &out, &err);
		assert_string_equal(out.data, "elasticquota/shop\n");
		assert_non_null(strstr(err.data, "evenkeel: 2 left out: "));
		ask("quota lint -o wide", server, &out, &err);
		assert_non_null(strstr(out.data, "sumMinOverCapacity"));
		ask("quota lint -o name", server, &out, &err);
		assert_string_equal(out.data, "elasticquota/shop\n");
	}
	buf_fini(&out);
	buf_fini(&err);
}

/* A verdict's rows are resources; victims are pods, that of the other namespace no name's. */
static void names_of_what_is_asked(void **state)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	ask("quota admit --pod POD -o csv", false, &out, &err);
	assert_non_null(strstr(out.data, "cpu"));
	ask("quota admit --pod POD -o name", false, &out, &err);
	assert_string_equal(out.data, "");
	assert_non_null(strstr(err.data, "-o name goes with lists of objects"));
	ask("quota preempt --pod POD -o name", false, &out, &err);
	expect_objects("quota preempt", out.data);
	buf_fini(&out);
	buf_fini(&err);
}

static bool has_name(const cJSON *doc, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, cJSON_GetObjectItem(doc, "items")) {
		const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, "name"));

		if (text && strcmp(text, name) == 0)
			return true;
	}
	return false;
}

static void json_and_yaml_lose_nothing(void **state)
{
	static const struct yaml_json_limits limits = {.depth = 100, .bytes = 1 << 20};
	struct buf out = BUF_INIT, err = BUF_INIT, back = BUF_INIT;
	struct error error = {""};
	size_t documents;

	(void)state;
	for (int server = 0; server < 2; server++) {
		cJSON *doc;

		ask("nodes -o json", server, &out, &err);
		doc = cJSON_Parse(out.data);
		assert_true(has_name(doc, nasty));
		cJSON_Delete(doc);
		ask("nodes -o yaml", server, &out, &err);
		buf_clear(&back);
		assert_int_equal(yaml_json_convert("yaml", out.data, out.len, &limits, &back,
						   &documents, &error),
				 0);
		doc = cJSON_Parse(back.data);
		assert_true(has_name(doc, nasty));
		cJSON_Delete(doc);
	}
	buf_fini(&out);
	buf_fini(&err);
	buf_fini(&back);
}

static void words_of_the_command_line(void **state)
{
	static char *cases[][4] = {{NULL, (char *)EVIL},
				   {NULL, (char *)"nodes", (char *)"--" EVIL},
				   {NULL, (char *)"nodes", (char *)"--server=" EVIL},
				   {NULL, (char *)"__completion", (char *)EVIL},
				   {NULL, (char *)"nodes", (char *)"--output=" EVIL}};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cases[i][0] = (char *)program_path("evenkeel");
		run(cases[i], &out, &err);
		assert_true(err.len > 0);
		expect_clean(EVIL, &out, false);
		expect_clean(EVIL, &err, false);
	}
	buf_fini(&out);
	buf_fini(&err);
}

static void completed_names(void **state)
{
	char *argv[] = {(char *)program_path("evenkeel"), (char *)"__complete", (char *)"nodes",
			(char *)"", NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	setenv("EVENKEEL_SERVER", url, 1);
	run(argv, &out, &err);
	unsetenv("EVENKEEL_SERVER");
	assert_non_null(strstr(out.data, "plain"));
	assert_null(strstr(out.data, "prod"));
	buf_fini(&out);
	buf_fini(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form),
		cmocka_unit_test(names_that_are_left_out_are_counted),
		cmocka_unit_test(names_of_what_is_asked),
		cmocka_unit_test(json_and_yaml_lose_nothing),
		cmocka_unit_test(words_of_the_command_line),
		cmocka_unit_test(completed_names),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
