/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies into body_decode_ack(); what is accepted must be within its ranges and fit for a log. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ack ack, again;
	struct buf out = BUF_INIT;
	struct error error = {""};

	if (body_decode_ack(data, size, &ack, &error)) {
		assert(error.text[0] != '\0');
		return 0;
	}
	assert(ack.status >= ACK_APPLIED && ack.status <= ACK_REFUSED);
	assert(ack.interval_ms == 0 || (ack.interval_ms >= 1000 && ack.interval_ms <= 15000));
	assert(ack.wait_ms <= 60000);
	assert(strlen(ack.reason) < sizeof(ack.reason));
	assert(!strpbrk(ack.reason, "\n\r\x1b"));
	body_encode_ack(&ack, &out);
	assert(!body_decode_ack(out.data, out.len, &again, NULL));
	assert(again.resend_from == ack.resend_from && !strcmp(again.reason, ack.reason));
	buf_fini(&out);
	return 0;
}
