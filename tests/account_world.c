/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/account_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

struct world *world_new(void)
{
	struct world *w = mem_zalloc(1, sizeof(*w));

	w->topology = topology_new();
	w->account = account_new();
	w->now_ns = 1000 * WORLD_S;
	w->machine = (struct machine){
		.cpu_capacity_milli = WORLD_CPU_MILLI,
		.mem_total_bytes = 8ULL << 30,
		.mem_available_bytes = 6ULL << 30,
		.boot_id = "11111111-2222-3333-4444-555555555555",
	};
	world_mkdir(w, "/");
	return w;
}

void world_free(struct world *w)
{
	for (size_t i = 0; i < w->path_count; i++)
		free(w->paths[i].path);
	topology_free(w->topology);
	account_free(w->account);
	free(w);
}

int world_setup(void **state)
{
	*state = world_new();
	return 0;
}

int world_teardown(void **state)
{
	world_free(*state);
	return 0;
}

static bool exists(const struct world *w, const char *path)
{
	for (size_t i = 0; i < w->path_count; i++)
		if (!strcmp(w->paths[i].path, path))
			return true;
	return false;
}

static void add_path(struct world *w, const char *path)
{
	if (exists(w, path))
		return;
	if (w->path_count == WORLD_PATHS_MAX)
		abort();
	w->paths[w->path_count].path = mem_strdup(path);
	w->paths[w->path_count].id = ++w->last_id;
	w->path_count++;
}

void world_mkdir(struct world *w, const char *path)
{
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *above = mem_strndup(path, (size_t)(slash - path));

		add_path(w, above);
		free(above);
	}
	add_path(w, path);
}

void world_rmdir(struct world *w, const char *path)
{
	size_t len = strlen(path), kept = 0;

	for (size_t i = 0; i < w->path_count; i++) {
		const char *p = w->paths[i].path;

		if (!strncmp(p, path, len) && (p[len] == '/' || !p[len]))
			free(w->paths[i].path);
		else
			w->paths[kept++] = w->paths[i];
	}
	w->path_count = kept;
}

static int compare_lengths(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return (int)strlen(*x) - (int)strlen(*y);
}

/* The table keeps readings where a cgroup stays, as it does behind a real scan. */
void world_scan(struct world *w)
{
	qsort(w->paths, w->path_count, sizeof(w->paths[0]), compare_lengths);
	topology_begin(w->topology);
	for (size_t i = 0; i < w->path_count; i++)
		if (topology_add(w->topology, HIERARCHY_UNIFIED, w->paths[i].path, w->paths[i].id))
			abort();
	topology_commit(w->topology);
}

void world_start(struct world *w, const char *const *paths)
{
	for (; *paths; paths++)
		world_mkdir(w, *paths);
	world_scan(w);
}

struct reading *world_reading(struct world *w, const char *path)
{
	for (size_t i = 0; i < topology_count(w->topology); i++)
		if (!strcmp(topology_at(w->topology, i)->path, path))
			return &topology_at(w->topology, i)->reading;
	fprintf(stderr, "no cgroup %s\n", path);
	abort();
}

void world_use(struct world *w, const char *path, uint64_t cpu_ns)
{
	struct reading *r = world_reading(w, path);

	r->have |= HAVE_CPU;
	r->cpu_ns += cpu_ns;
}

void world_use_local(struct world *w, const char *path, uint64_t cpu_ns)
{
	world_use(w, path, cpu_ns);
	world_reading(w, path)->have |= HAVE_CPU_LOCAL;
}

static uint64_t find_id(const struct world *w, const char *path, size_t len)
{
	for (size_t i = 0; i < w->path_count; i++)
		if (strlen(w->paths[i].path) == len && !strncmp(w->paths[i].path, path, len))
			return w->paths[i].id;
	fprintf(stderr, "no directory %.*s\n", (int)len, path);
	abort();
}

uint64_t world_id(const struct world *w, const char *path)
{
	return find_id(w, path, strlen(path));
}

struct removal world_removal(const struct world *w, const char *path, uint64_t cpu_ns)
{
	size_t parent_len = (size_t)(strrchr(path, '/') - path);

	return (struct removal){
		.id = world_id(w, path),
		.parent_id = find_id(w, path, parent_len ? parent_len : 1),
		.have = HAVE_CPU,
		.cpu_ns = cpu_ns,
	};
}

void world_remove(struct world *w, int64_t after_ns, const struct removal *list, size_t count)
{
	account_remove(w->account, list, count, w->now_ns + after_ns);
}

void world_tick(struct world *w, int64_t dt_ns, bool slow)
{
	w->now_ns += dt_ns;
	account_tick(w->account, w->topology, &w->machine, w->now_ns, slow);
}

struct interval *world_publish(struct world *w)
{
	const struct account_self self = {
		.tier = TIER_T1,
		.missed_ticks = 3,
		.overflow = 2,
		.pass_ns = 12345,
		.agent_cpu_ns = 678,
	};

	return account_publish(w->account, ++w->sequence, w->now_ns - WORLD_S, w->now_ns, &self);
}

const struct entry *world_entry(const struct interval *interval, const char *path)
{
	const char *name = path[0] == '/' ? path + 1 : path;

	for (size_t i = 0; i < interval->entry_count; i++)
		if (!strcmp(interval->entries[i].entity->name, name))
			return &interval->entries[i];
	return NULL;
}

double world_total(const struct usage *usage)
{
	return (double)usage->cpu_milli.mean * (double)usage->cpu_milli.weight;
}
