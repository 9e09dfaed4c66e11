/* Code that was compiled on this machine, kept on disk.
 *
 * It is in $XDG_CACHE_HOME/warpwave, or ~/.cache/warpwave. If anything is wrong with the cache, the entry counts as missing,
 * and a failed write is ignored. Neither changes the thread's error message.
 */
#ifndef WW_GPU_DRIVER_CODE_CACHE_H
#define WW_GPU_DRIVER_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/driver/driver.h"

/* Reads the whole entry `name` into memory (memory_free()), and the path of its file. False if there is none, or it is
 * damaged. */
bool code_cache_read(const char *name, driver_compiled *out);

/* Writes the entry atomically: another process sees all of it or nothing. Removes unfinished files that other processes left
 * and, if all entries have more than 256 MiB, the least recently used ones. */
void code_cache_write(const char *name, const void *bytes, size_t size);

/* Removes an entry. False if there was none. */
bool code_cache_remove(const char *name);

#endif
