/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's parser reads the addresses, since libcurl is what will use them. An address may hold a
 * password, so reasons say what is wrong with it, never all of it.
 */
#include "aggregator/edge/kube/config_url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shared/mem.h"

static CURLU *parse(const char *text, const char *example, struct reason *reason)
{
	CURLU *url = curl_url();
	CURLUcode code;

	if (!url)
		mem_exhausted();
	code = curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
	if (code == CURLUE_OK && strstr(text, "://"))
		return url;
	reason_set(reason, "not an address such as %s (%s)", example,
		   code == CURLUE_OK ? "no scheme" : curl_url_strerror(code));
	curl_url_cleanup(url);
	return NULL;
}

/* Owned; NULL when there is no such part. */
static char *part(CURLU *url, CURLUPart which)
{
	char *text = NULL, *copy;

	if (curl_url_get(url, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return NULL;
	copy = mem_strdup(text);
	curl_free(text);
	return copy;
}

static bool has(CURLU *url, CURLUPart which)
{
	char *text = NULL;
	bool there = curl_url_get(url, which, &text, 0) == CURLUE_OK;

	curl_free(text);
	return there;
}

static bool is_scheme(CURLU *url, const char *name)
{
	char *scheme = part(url, CURLUPART_SCHEME);
	bool same = scheme && strcasecmp(scheme, name) == 0;

	free(scheme);
	return same;
}

static bool is_loopback(const char *host)
{
	struct in_addr address;

	return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, &address) == 1 &&
		ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

static int take(struct kube_url *u, CURLU *url, struct reason *reason)
{
	if (!is_scheme(url, "https") && !is_scheme(url, "http")) {
		reason_set(reason, "only https and http are possible");
		return -EINVAL;
	}
	if (has(url, CURLUPART_USER) || has(url, CURLUPART_PASSWORD) || has(url, CURLUPART_QUERY) ||
	    has(url, CURLUPART_FRAGMENT)) {
		reason_set(reason, "has more than host, port and path");
		return -EINVAL;
	}
	u->tls = is_scheme(url, "https");
	u->host = part(url, CURLUPART_HOST);
	u->port = part(url, CURLUPART_PORT);
	u->path = part(url, CURLUPART_PATH);
	if (!u->host || !u->port || !u->path || has(url, CURLUPART_ZONEID)) {
		reason_set(reason, "has no host that can be used");
		return -EINVAL;
	}
	for (size_t len = strlen(u->path); len && u->path[len - 1] == '/'; len--)
		u->path[len - 1] = '\0';
	u->loopback = is_loopback(u->host);
	return 0;
}

int kube_url_parse(struct kube_url *u, const char *text, struct reason *reason)
{
	struct kube_url parsed = {0};
	CURLU *url = parse(text, "https://10.96.0.1:443", reason);
	int rc;

	if (!url)
		return -EINVAL;
	rc = take(&parsed, url, reason);
	curl_url_cleanup(url);
	if (rc)
		kube_url_fini(&parsed);
	else
		*u = parsed;
	return rc;
}

void kube_url_fini(struct kube_url *u)
{
	free(u->host);
	free(u->port);
	free(u->path);
	*u = (struct kube_url){0};
}

char *kube_url_host(const char *name)
{
	bool is_v6 = strchr(name, ':') && name[0] != '[';
	char *host = mem_printf("%s%s%s", is_v6 ? "[" : "", name, is_v6 ? "]" : "");
	char *text = mem_printf("https://%s:443", host);
	struct kube_url url = {0};
	bool whole = kube_url_parse(&url, text, NULL) == 0 && strcasecmp(url.host, host) == 0;

	kube_url_fini(&url);
	free(text);
	if (whole)
		return host;
	free(host);
	return NULL;
}

int kube_url_check_proxy(const char *text, struct reason *reason)
{
	CURLU *url = parse(text, "http://proxy.example:3128", reason);
	bool known;

	if (!url)
		return -EINVAL;
	known = is_scheme(url, "http") || is_scheme(url, "https") || is_scheme(url, "socks5") ||
		is_scheme(url, "socks5h");
	curl_url_cleanup(url);
	if (known)
		return 0;
	reason_set(reason, "only http, https and socks5 are possible");
	return -EINVAL;
}
