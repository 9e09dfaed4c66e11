/* Included by every test: cmocka with the headers that it needs, and checks that print the library's message when they fail. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <warpwave.h>

#define CHECK_OK(call)                                                                                                         \
    do {                                                                                                                       \
        const ww_status check_status_ = (call);                                                                                \
        if (check_status_ != WW_OK)                                                                                            \
            fail_msg("%s: %s: %s", #call, ww_status_name(check_status_), ww_error_message());                                  \
    } while (0)

#define CHECK_FAILS(expected, call)                                                                                            \
    do {                                                                                                                       \
        const ww_status check_status_ = (call);                                                                                \
        if (check_status_ != (expected))                                                                                       \
            fail_msg("%s: %s, not %s: %s", #call, ww_status_name(check_status_), ww_status_name(expected),                     \
                     ww_error_message());                                                                                      \
    } while (0)

#endif
