/* Files that this library keeps for later processes of the same user, in $XDG_CACHE_HOME/warpwave, or ~/.cache/warpwave.
 *
 * Nothing depends on them: if anything is wrong with the folder or a file, the file counts as missing, and a failed write is
 * ignored. Neither changes the thread's error message.
 */
#ifndef WW_BASE_SYSTEM_CACHE_H
#define WW_BASE_SYSTEM_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the folder's path, and creates the folder if needed. Returns false if there is none that belongs to this user alone.
 */
bool cache_folder(char *path, size_t capacity);

/* The path of a file in it. */
bool cache_path(const char *name, char *path, size_t capacity);

/* Reads a whole file (memory_free()) of 1 to `bytes_max` bytes, and marks it as used. NULL if there is none, or if another user
 * could have written it, and then `bytes` is 0; NULL with its size if there is no memory for it or reading failed. */
char *cache_read(const char *path, size_t bytes_max, size_t *bytes);

typedef struct cache_part {
    const void *data;
    size_t bytes;
} cache_part;

/* Replaces a file by `count` parts, one after the other: another process sees all of the old file or all of the new one. The
 * temporary file's name is the path with a dot and six characters. */
void cache_write(const char *path, const cache_part *parts, int count);

#endif
