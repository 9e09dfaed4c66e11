/* Code that was compiled on this machine, kept on disk for the next time.
 *
 * It lies in $XDG_CACHE_HOME/warpwave, or ~/.cache/warpwave. If anything is wrong with the cache, the
 * entry counts as missing, and a failed write is ignored. Neither changes the thread's error message.
 */
#ifndef WW_GPU_DRIVER_CODE_CACHE_H
#define WW_GPU_DRIVER_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/driver/driver.h"

/* Reads the entry `name` whole into memory that memory_free() takes back, and says in which file it was. False if there is
 * none, or not as it was written. */
bool code_cache_read(const char *name, driver_compiled *out);

/* Writes the entry, so that another process sees all of it or nothing. What other processes left unfinished goes, and of all
 * entries those that were not used longest, if they have more than 256 MiB. */
void code_cache_write(const char *name, const void *bytes, size_t size);

/* Removes an entry. False if there was none. */
bool code_cache_remove(const char *name);

#endif
