/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extender that decides nothing: filter passes every node, prioritize ranks none. What a
 * scheduler loses with it, it loses by having an extender, whoever wrote it.
 */
#pragma once

/* Listens on a port of the loopback until the process ends. */
void echo_start(int port);
