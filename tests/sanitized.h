/* SPDX-License-Identifier: Apache-2.0 */
/* What tests must know of sanitizers. */
#pragma once

/* Whether the address sanitizer keeps what is freed: no test can tell then what is given back. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/*
 * Of so many random cases, and of what they must have shown: with sanitizers a fifth. The decisions
 * of the rest are checked without; a case takes ten times as long with them.
 */
#define RANDOM_CASES(count) (SANITIZED ? (count) / 5 : (count))
