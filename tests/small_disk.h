/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that can be filled: a small tmpfs, in a mount namespace of this process and those it
 * starts.
 */
#pragma once

struct small_disk {
	char *path, *filler; /* owned; NULL: there can be no disk here */
	const char *why; /* there is none; NULL */
};

/* Below that folder. */
void small_disk_init(struct small_disk *d, const char *folder);
void small_disk_fini(struct small_disk *d);
/* Skips the test where there is none, and says why. */
void small_disk_need(const struct small_disk *d);
/* With all that is left of it. */
void small_disk_fill(const struct small_disk *d);
void small_disk_free_up(const struct small_disk *d);
void small_disk_make_read_only(const struct small_disk *d);
void small_disk_make_writable(const struct small_disk *d);
