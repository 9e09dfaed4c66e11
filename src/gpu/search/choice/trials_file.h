/* The times of searches, remembered in one file for all devices of a user (base/system/cache.h): search-times.
 *
 * A file is a line with its format, and a line of fixed length for each shape of search that was measured on a device: the
 * device, the shape, the shortest full scan and the shortest screened search in microseconds (the bits of floats), and a hash
 * of the line, all in hexadecimal. Lines that are damaged are skipped; a file of another format counts as missing.
 */
#ifndef WW_GPU_SEARCH_CHOICE_TRIALS_FILE_H
#define WW_GPU_SEARCH_CHOICE_TRIALS_FILE_H

#include <stddef.h>

#include "gpu/search/choice/search_trials.h"

/* What the times of a device depend on: its name, chip and driver, and this library. */
uint64_t trials_device(const char *name, const char *arch, const char *driver_version);

/* Reads the times of a device, and writes those that are settled, keeping what others wrote meanwhile. If that is not possible,
 * nothing is remembered. */
void trials_file_read(uint64_t device, search_trials *trials);
void trials_file_write(uint64_t device, search_trials *trials);

/* Reads the times of a device in the text of such a file. */
void trials_text_read(const char *text, size_t bytes, uint64_t device, search_trials *trials);

#endif
