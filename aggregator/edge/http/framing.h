/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request's headers leave no doubt about where it ends and who sends it. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_FRAMING_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_FRAMING_H

#include <microhttpd.h>

/*
 * NULL, or what leaves a doubt, as a sentence; such a request is answered with 400 and its
 * connection closed.
 */
const char *framing_fault(struct MHD_Connection *connection);

#endif
