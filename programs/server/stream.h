/* An answer that is written while it is sent: server-sent events. The worker writes, the HTTP library reads; either may end
 * first. */
#ifndef WW_SERVER_STREAM_H
#define WW_SERVER_STREAM_H

#include <microhttpd.h>
#include <stdbool.h>

#include "server/out.h"

typedef struct stream stream;

/* Creates a stream with two references: the worker's and the answer's. NULL if out of memory. */
stream *stream_create(struct MHD_Connection *connection);
void stream_release(stream *s);

/* The worker's side: append text, end the stream, ask whether the client has left. */
void stream_write(stream *s, const out *text);
void stream_end(stream *s);
bool stream_is_left(stream *s);

/* The answer's side. The reader is a MHD_ContentReaderCallback. */
ssize_t stream_read(void *cls, uint64_t position, char *buffer, size_t capacity);
size_t stream_leave(stream *s); /* returns how many bytes were sent */

#endif
