/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the address sanitizer keeps what is freed: no test can tell then what is given back. */
#ifndef EVENKEEL_TESTS_SANITIZED_H
#define EVENKEEL_TESTS_SANITIZED_H

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

#endif
