/* Looking after the store's file, its disk and the sizes of collections. */
#include "server/health.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/system/threads.h"
#include "base/text.h"
#include "server/qdrant/collections/layout.h"
#include "server/reserve.h"
#include "server/state.h"

enum { HEADER_BYTES = 100 }; /* of a file of SQLite */

static uint32_t big_endian(const unsigned char *bytes, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Is the file as long as its header says, and is it a database? Checkpoints write the header before later pages, so a file that
 * is too short is looked at again. */
static bool check_length(health *h, const char *path, char failure[HEALTH_BYTES])
{
    unsigned char head[HEADER_BYTES];
    struct stat file;
    for (int attempt = 0; attempt < 3; attempt++) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t count = fd >= 0 ? pread(fd, head, sizeof head, 0) : -1;
        const bool known = fd >= 0 && fstat(fd, &file) == 0;
        if (fd >= 0)
            close(fd);
        if (known && file.st_size == 0 && !h->seen)
            return true; /* everything is still in the log */
        h->seen = h->seen || count == HEADER_BYTES;
        if (count < 0 || !known || (count == HEADER_BYTES && memcmp(head, "SQLite format 3", 16) != 0)) {
            snprintf(failure, HEALTH_BYTES, count < 0 || !known ? "%s cannot be read" : "%s is malformed: it is not a database",
                     path);
            return false;
        }
        const uint32_t page = big_endian(head + 16, 2), pages = big_endian(head + 28, 4);
        if (count == HEADER_BYTES && (uint64_t)file.st_size >= (uint64_t)(page == 1 ? 65536 : page) * pages)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    snprintf(failure, HEALTH_BYTES, "%s was truncated: it has only %lld bytes", path, (long long)file.st_size);
    return false;
}

static bool check_file(server *s, char failure[HEALTH_BYTES])
{
    struct stat file;
    const char *path = s->config.store;
    if (stat(path, &file) != 0)
        snprintf(failure, HEALTH_BYTES, errno == ENOENT ? "%s was removed" : "%s cannot be reached", path);
    else if (file.st_dev != s->health.device || file.st_ino != s->health.file)
        snprintf(failure, HEALTH_BYTES, "%s was replaced by another file; start the server again", path);
    else
        return check_length(&s->health, path, failure);
    return false;
}

static bool check_disk(server *s, char failure[HEALTH_BYTES])
{
    struct statvfs disk;
    if (statvfs(s->config.store, &disk) != 0)
        return true; /* check_file() says what is wrong */
    const int64_t bytes = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    atomic_store(&s->health.disk_free_bytes, bytes);
    reserve_keep(s, bytes);
    if (bytes >= s->config.disk_reserve_bytes)
        return true;
    snprintf(failure, HEALTH_BYTES, "the disk of %s is full: %lld MiB are free, and --disk-reserve is %lld MiB",
             s->config.store, (long long)(bytes >> 20), (long long)(s->config.disk_reserve_bytes >> 20));
    return false;
}

/* Can SQLite read the list of collections? */
static bool check_store(server *s, char failure[HEALTH_BYTES])
{
    ww_results *list = NULL;
    ww_store_info info = ww_store_info_default();
    ww_status status = ww_store_list(s->store, &list);
    ww_results_destroy(list);
    if (status == WW_OK)
        status = ww_store_describe(s->store, &info);
    atomic_store(&s->health.memory_bytes, info.bytes_memory);
    if (status == WW_OK)
        atomic_store(&s->health.file_bytes, info.bytes_file + info.bytes_wal);
    else
        snprintf(failure, HEALTH_BYTES, "%s: %.300s", s->config.store, ww_error_message());
    return status == WW_OK;
}

static void look(server *s)
{
    char failure[HEALTH_BYTES] = "";
    (void)(check_file(s, failure) && check_disk(s, failure) && check_store(s, failure));
    pthread_mutex_lock(&s->lock);
    text_copy(s->health.failure, HEALTH_BYTES, failure);
    pthread_mutex_unlock(&s->lock);
}

/* Notes rows and bytes of all collections, for the figures. */
static void measure(server *s)
{
    for (entry *e = entry_next(s, NULL); e; e = entry_next(s, e)) {
        ww_collection_info info = ww_collection_info_default();
        if (ww_collection_describe(e->collection, &info) == WW_OK) {
            atomic_store(&e->rows, info.rows_live);
            atomic_store(&e->bytes, info.bytes_rows + info.bytes_screen + info.bytes_ids + info.bytes_payloads +
                                        info.bytes_handles + info.bytes_host_copy + info.bytes_rows_host);
        }
    }
}

static void *watch_health(void *argument)
{
    server *s = argument;
    for (int64_t turn = 0;; turn++) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        look(s);
        layout_look(s);
        if (turn % 10 == 0)
            measure(s);
        pthread_mutex_lock(&s->lock);
        while (!s->health.stopping && pthread_cond_timedwait(&s->health.stop, &s->lock, &until) == 0) {
        }
        const bool stop = s->health.stopping;
        pthread_mutex_unlock(&s->lock);
        if (stop)
            return NULL;
    }
}

ww_status health_start(server *s)
{
    struct stat file;
    pthread_condattr_t monotonic;
    if (stat(s->config.store, &file) != 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", s->config.store);
    s->health.device = file.st_dev;
    s->health.file = file.st_ino;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->health.stop, &monotonic);
    pthread_condattr_destroy(&monotonic);
    look(s);
    const int code = thread_start(&s->health.thread, "ww-health", watch_health, s);
    s->health.running = code == 0;
    return code == 0 ? WW_OK : ww_fail_errno(WW_IO_ERROR, code, "the thread that looks after the store could not be started");
}

void health_stop(server *s)
{
    if (!s->health.running)
        return;
    pthread_mutex_lock(&s->lock);
    s->health.stopping = true;
    pthread_cond_signal(&s->health.stop);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->health.thread, NULL);
    pthread_cond_destroy(&s->health.stop);
    s->health.running = false;
}

void health_failure(server *s, char failure[HEALTH_BYTES])
{
    pthread_mutex_lock(&s->lock);
    text_copy(failure, HEALTH_BYTES, s->health.failure);
    pthread_mutex_unlock(&s->lock);
}
