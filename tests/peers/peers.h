/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of others beside ours, in one table. They are given by path: nothing of them is in this
 * tree.
 */
#pragma once

/* One row; NAN: not told. The ratio is theirs to ours. */
void peers_row(const char *what, const char *unit, double theirs, double ours);
/* A line that says why a comparison is left out. */
void peers_skip(const char *what, const char *why);

/*
 * `evenkeel drain` beside benchmarks of cluster-autoscaler. programs: paths of its compiled
 * benchmarks, separated by spaces. 0, or 1 where one of both sides failed, which is printed.
 */
int peers_scale_down(const char *programs);

/*
 * /v1/scores beside the scores that Trimaran's plugins log in a kube-scheduler, which reads our
 * /watcher. 0, or 1 where one failed, or a score differs by more than one.
 */
int peers_trimaran(const char *scheduler);
