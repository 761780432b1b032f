/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/drain_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/model_fixture.h"

struct object *drain_fixture_object(enum object_kind kind, const char *quoted)
{
	char *text = mem_strdup(quoted);
	struct object *o;

	for (char *at = text; *at; at++)
		if (*at == '\'')
			*at = '"';
	o = model_fixture_object(kind, text);
	free(text);
	return o;
}

struct kube_pod *drain_fixture_pod(const char *name, const char *owner, const char *metadata,
				   const char *spec, const char *status)
{
	struct buf text = BUF_INIT;
	struct object *o;

	buf_printf(&text, "{'metadata':{'name':'%s','namespace':'shop','labels':{'app':'web'}",
		   name);
	buf_printf(&text, ",'ownerReferences':[%s]",
		   owner ? owner
			 : "{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web','uid':'web',"
			   "'controller':true}");
	buf_printf(&text, "%s%s},'spec':{'containers':[{'name':'c'}]%s%s},", *metadata ? "," : "",
		   metadata, *spec ? "," : "", spec);
	buf_printf(&text, "'status':{%s}}",
		   *status ? status
			   : "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]");
	o = drain_fixture_object(OBJECT_POD, text.data);
	buf_fini(&text);
	return (struct kube_pod *)o;
}

const char *drain_fixture_outcome(enum drain_outcome o)
{
	static const char *const names[] = {
		[DRAIN_POD_UNDEFINED] = "Undefined",	[DRAIN_POD_OK] = "DrainOk",
		[DRAIN_POD_BLOCK] = "BlockDrain",	[DRAIN_POD_SKIP] = "SkipDrain",
		[DRAIN_POD_WAIT] = "WaitForCompletion",
	};

	return names[o];
}
