/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page in a browser reaches every server that its user reaches. The defences:
 *
 *	Host	DNS rebinding: a name of the page's owner resolves to our address, so the page may
 *		read every answer; the Host header still has the owner's name
 *	Origin	pages of other servers send it with every request but a plain GET, and the browser
 *		keeps the answer of that from them
 *	JSON	without a CORS preflight, which this server does not answer, a page sends forms and
 *		plain text only
 */
#include "aggregator/edge/http/auth.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

/* "", or a colon and a number. */
static bool is_port(const char *text, size_t len)
{
	if (!len)
		return true;
	for (size_t i = 1; i < len; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return *text == ':' && len > 1 && len <= 6;
}

static bool take_name(const char *text, size_t len, struct host_name *name)
{
	if (len && text[len - 1] == '.')
		len--;
	if (!len || len > HOST_NAME_MAX_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		name->text[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
	name->text[len] = '\0';
	return true;
}

bool host_parse(const char *text, size_t len, struct host_name *name)
{
	const char *end = memchr(text, ']', len);
	struct in6_addr six;
	size_t at;

	if (len && *text == '[')
		return end && is_port(end + 1, len - (size_t)(end + 1 - text)) &&
		       take_name(text + 1, (size_t)(end - text - 1), name) &&
		       inet_pton(AF_INET6, name->text, &six) == 1;
	end = memchr(text, ':', len);
	at = end ? (size_t)(end - text) : len;
	return is_port(text + at, len - at) && take_name(text, at, name) &&
	       !name->text[strspn(name->text, "abcdefghijklmnopqrstuvwxyz0123456789-._")];
}

/* The last four bytes of an address of IPv4 in either family's form, or NULL. */
static const uint8_t *four_of(const struct in6_addr *six)
{
	return IN6_IS_ADDR_V4MAPPED(six) ? six->s6_addr + 12 : NULL;
}

/* An address as IPv6 has it; false: the name is none. */
static bool address_of(const char *name, struct in6_addr *six)
{
	struct in_addr four;

	if (inet_pton(AF_INET6, name, six) == 1)
		return true;
	if (inet_pton(AF_INET, name, &four) != 1)
		return false;
	*six = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
	memcpy(six->s6_addr + 12, &four, sizeof(four));
	return true;
}

static bool is_loopback(const struct in6_addr *six)
{
	const uint8_t *four = four_of(six);

	return four ? four[0] == 127 : IN6_IS_ADDR_LOOPBACK(six);
}

bool host_is_loopback(const struct sockaddr *at)
{
	if (at->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == 127;
	return at->sa_family == AF_INET6 &&
	       is_loopback(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

static bool is_address(const struct in6_addr *six, const struct sockaddr *local)
{
	const uint8_t *four = four_of(six);

	if (!local)
		return false;
	if (local->sa_family == AF_INET)
		return four && !memcmp(four, &((const struct sockaddr_in *)local)->sin_addr, 4);
	return local->sa_family == AF_INET6 &&
	       !memcmp(six, &((const struct sockaddr_in6 *)local)->sin6_addr, sizeof(*six));
}

static bool is_same(const struct host_name *name, const char *text)
{
	struct host_name other;

	return host_parse(text, strlen(text), &other) && !strcmp(name->text, other.text);
}

bool host_is_ours(const struct host_name *name, const char *listen, const struct option_list *more,
		  const struct sockaddr *local)
{
	struct in6_addr six;

	if (address_of(name->text, &six) && (is_loopback(&six) || is_address(&six, local)))
		return true;
	for (size_t i = 0; more && i < more->count; i++)
		if (is_same(name, more->items[i]))
			return true;
	return !strcmp(name->text, "localhost") || is_same(name, listen);
}

bool host_is_address(const struct host_name *name)
{
	struct in6_addr six;

	return address_of(name->text, &six);
}

/* The text behind "http://", or NULL. */
static const char *authority_of(const char *origin)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (!strncasecmp(origin, schemes[i], strlen(schemes[i])))
			return origin + strlen(schemes[i]);
	return NULL;
}

bool origin_is_own(const char *origin, const char *host)
{
	const char *authority = authority_of(origin);

	return authority && host && !strcasecmp(authority, host);
}

bool media_is_json(const char *type)
{
	static const char json[] = "application/json";
	size_t len = sizeof(json) - 1;

	if (!type || strncasecmp(type, json, len) != 0)
		return false;
	len += strspn(type + len, " \t");
	return !type[len] || type[len] == ';';
}
