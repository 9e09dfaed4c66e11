/* Stopping a call from another thread: the token that the caller gave holds for this thread until the call returns, and
 * whatever takes long looks at it, directly or through progress_tell(). Threads of a pool do not see it; the thread that made
 * the call does, in the job's watch. */
#ifndef WW_BASE_CANCEL_H
#define WW_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <warpwave/status.h>

struct ww_cancel {
    atomic_bool asked;
};

/* Holds a token, which may be NULL, until the end of the block. */
#define CANCEL_BY(token)                                                                                                       \
    const ww_cancel *outer_cancel_ __attribute__((cleanup(cancel_end))) = cancel_begin(token);                                 \
    (void)outer_cancel_

const ww_cancel *cancel_begin(const ww_cancel *token);
void cancel_end(const ww_cancel *const *outer);

/* Does the call on this thread have a token? Was it cancelled? */
bool cancel_given(void);
bool cancel_asked(void);

/* The same as a pool's watch. */
bool cancel_watch(void *context, int64_t done);

#endif
