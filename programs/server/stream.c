/* An answer that is written while it is sent. */
#include "server/stream.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

struct stream {
    pthread_mutex_t lock;
    struct MHD_Connection *connection;
    out waiting;
    size_t sent;  /* bytes of `waiting` that were read */
    size_t total; /* bytes that were read at all */
    int references;
    bool suspended, ended, left;
};

stream *stream_create(struct MHD_Connection *connection)
{
    stream *s = memory_alloc_zeroed(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->connection = connection;
    s->references = 2;
    return s;
}

void stream_release(stream *s)
{
    pthread_mutex_lock(&s->lock);
    const bool last = --s->references == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    out_free(&s->waiting);
    pthread_mutex_destroy(&s->lock);
    memory_free(s);
}

/* With the lock. */
static void wake(stream *s)
{
    if (s->suspended && !s->left)
        MHD_resume_connection(s->connection);
    s->suspended = false;
}

void stream_write(stream *s, const out *text)
{
    pthread_mutex_lock(&s->lock);
    if (!s->left)
        out_bytes(&s->waiting, text->bytes, text->length);
    wake(s);
    pthread_mutex_unlock(&s->lock);
}

void stream_end(stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    wake(s);
    pthread_mutex_unlock(&s->lock);
}

bool stream_is_left(stream *s)
{
    pthread_mutex_lock(&s->lock);
    const bool left = s->left || s->waiting.failed;
    pthread_mutex_unlock(&s->lock);
    return left;
}

size_t stream_leave(stream *s)
{
    pthread_mutex_lock(&s->lock);
    wake(s); /* the HTTP library notices that the client has left */
    s->left = true;
    const size_t total = s->total;
    pthread_mutex_unlock(&s->lock);
    return total;
}

ssize_t stream_read(void *cls, uint64_t position, char *buffer, size_t capacity)
{
    stream *s = cls;
    (void)position;
    pthread_mutex_lock(&s->lock);
    const size_t there = s->waiting.length - s->sent;
    const size_t count = there < capacity ? there : capacity;
    ssize_t result = (ssize_t)count;
    if (count > 0)
        memcpy(buffer, s->waiting.bytes + s->sent, count);
    s->sent += count;
    s->total += count;
    if (s->sent == s->waiting.length)
        s->sent = s->waiting.length = 0;
    if (count == 0 && (s->ended || s->left)) {
        result = s->left || s->waiting.failed ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else if (count == 0) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}
