/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as the HTTP library tells of them, from their headers to the answer. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_REQUEST_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_REQUEST_H

#include <microhttpd.h>

/* Called by the library, cls being the lane that serves the connection; see MHD's handlers. */
enum MHD_Result request_on_progress(void *lane, struct MHD_Connection *connection, const char *path,
				    const char *method, const char *version, const char *upload,
				    size_t *upload_len, void **state);
void request_on_completed(void *lane, struct MHD_Connection *connection, void **state,
			  enum MHD_RequestTerminationCode how);
void *request_on_target(void *lane, const char *target, struct MHD_Connection *connection);
size_t request_unescape(void *cls, struct MHD_Connection *connection, char *text);

#endif
