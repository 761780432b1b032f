/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the answer about drains, each appended to cli->out. */
#pragma once

#include "aggregator/cli/answer.h"

/* Keys of --sort-by, for cli_options.sort. */
enum drain_sort { DRAIN_BY_VERDICT, DRAIN_BY_REQUESTS, DRAIN_BY_USE, DRAIN_BY_NAME };

/* --- drain_answer.c */

/* Nodes were named, or their labels: the answer is a part of the plan. */
bool drain_is_part(const struct cli *cli);

/* --- drain_table.c */

/* One row for each item of the answer. */
void drain_print_nodes(struct cli *cli, const cJSON *doc);
/*
 * Where the pods of the nodes of a list go, from the first; of one alone: with one true. Nothing
 * where none moves.
 */
void drain_print_moves(struct cli *cli, const cJSON *first, bool one);
/* The tables of a wave: moves, use of its destinations now and later, costs for budgets and owners. */
void drain_print_wave(struct cli *cli, const cJSON *wave);

/* --- drain_commands.c */

/* And this node of the wave is in no answer of a part. */
bool drain_is_left_out(const struct cli *cli, const cJSON *doc, const cJSON *node);
void drain_print_commands(struct cli *cli, const cJSON *doc);
/* That give candidates the soft taint, and take it from others. */
void drain_print_soft_taints(struct cli *cli, const cJSON *doc);
