/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/kube_direct.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "shared/mem.h"

char *kube_direct_write(const struct kube_testbed *bed, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", bed->folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
	return path;
}

static size_t collect(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

long kube_direct_ask(const struct kube_testbed *bed, const char *path,
		     const struct tls_identity *identity, const char *const *headers,
		     struct buf *answer)
{
	char *url = mem_printf("https://" KUBE_DIRECT_NAME ":%d%s", bed->aggregators[0].http_port,
			       path);
	char *ca = mem_printf("%s/ca.crt", bed->folder), *certificate = NULL, *key = NULL;
	struct curl_slist *list = NULL, *here = curl_slist_append(NULL, "::127.0.0.1:");
	CURL *curl = curl_easy_init();
	long status = 0;

	for (; headers && *headers; headers++)
		list = curl_slist_append(list, *headers);
	buf_clear(answer);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_CONNECT_TO, here);
	curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	if (identity) {
		certificate = kube_direct_write(bed, "client.crt", identity->certificate);
		key = kube_direct_write(bed, "client.key", identity->key);
	}
	curl_easy_setopt(curl, CURLOPT_SSLCERT, certificate);
	curl_easy_setopt(curl, CURLOPT_SSLKEY, key);
	if (curl_easy_perform(curl) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	buf_add_str(answer, "");
	curl_slist_free_all(list);
	curl_slist_free_all(here);
	curl_easy_cleanup(curl);
	free(certificate);
	free(key);
	free(ca);
	free(url);
	return status;
}
