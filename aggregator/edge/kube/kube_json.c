/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cJSON allocates each value and string by itself, about 700 for a pod, and frees them before the
 * next object. From the heap, with records that stay allocated in between, that took more than
 * half of the time of a list. So a document lives in blocks that only grow, and its end resets
 * them at once.
 *
 * cJSON has one allocator for a process. Ours checks whether this thread has an open document; all
 * others get the heap.
 *
 * A document of an 8 MiB object may need some hundred MiB; blocks beyond the first are freed with
 * it.
 */
#include "aggregator/edge/kube/kube_feed.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "shared/mem.h"

enum { BLOCK_LEAST = 256 << 10, ALIGNMENT = 16 };

struct kube_json_block {
	struct kube_json_block *next;
	size_t size, used; /* of data */
	_Alignas(ALIGNMENT) char data[];
};

static _Thread_local struct kube_json *open_document;

static struct kube_json_block *add_block(struct kube_json *j, size_t least)
{
	size_t size = least > BLOCK_LEAST ? least : BLOCK_LEAST;
	struct kube_json_block *b = mem_alloc(sizeof(*b) + size);

	b->next = j->blocks;
	b->size = size;
	b->used = 0;
	j->blocks = b;
	return b;
}

static void *take(size_t size)
{
	struct kube_json_block *b;
	void *memory;

	if (!open_document)
		return mem_alloc(size);
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	b = open_document->blocks;
	if (b->size - b->used < size)
		b = add_block(open_document, size);
	memory = b->data + b->used;
	b->used += size;
	return memory;
}

static bool is_of_document(const struct kube_json *j, const void *memory)
{
	uintptr_t at = (uintptr_t)memory;

	for (const struct kube_json_block *b = j->blocks; b; b = b->next)
		if (at >= (uintptr_t)b->data && at < (uintptr_t)b->data + b->size)
			return true;
	return false;
}

static void give(void *memory)
{
	if (!open_document || !is_of_document(open_document, memory))
		free(memory);
}

static void set_hooks(void)
{
	cJSON_Hooks hooks = {.malloc_fn = take, .free_fn = give};

	cJSON_InitHooks(&hooks);
}

void kube_json_init(struct kube_json *j)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_hooks);
	j->blocks = NULL;
	add_block(j, 0);
}

static void free_but_last(struct kube_json *j)
{
	struct kube_json_block *b;

	while ((b = j->blocks)->next) {
		j->blocks = b->next;
		free(b);
	}
}

void kube_json_fini(struct kube_json *j)
{
	if (!j->blocks)
		return;
	free_but_last(j);
	free(j->blocks);
	j->blocks = NULL;
}

cJSON *kube_json_begin(struct kube_json *j, const char *text, size_t len)
{
	assert(!open_document);
	open_document = j;
	return cJSON_ParseWithLength(text, len);
}

void kube_json_end(struct kube_json *j)
{
	assert(open_document == j);
	open_document = NULL;
	free_but_last(j);
	j->blocks->used = 0;
}
