/* Reading and writing the times of searches (trials_file.h). */
#include "gpu/search/choice/trials_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <warpwave/status.h>

#include "arithmetic/canon.h"
#include "base/memory.h"
#include "base/system/cache.h"
#include "base/tables/hash.h"

/* A line is "DEVICE SHAPE SCAN SCREEN HASH\n" with 16, 16, 8, 8 and 8 digits. */
enum { LINE_BYTES = 16 + 1 + 16 + 1 + 8 + 1 + 8 + 1 + 8 + 1, HASHED_BYTES = LINE_BYTES - 9, LINES_MAX = 8 * TRIALS_KEPT };

static const char file_name[] = "search-times", head[] = "warpwave search times 1\n";
static const size_t file_bytes_max = sizeof head - 1 + (size_t)LINES_MAX * LINE_BYTES;

uint64_t trials_device(const char *name, const char *arch, const char *driver_version)
{
    uint64_t hash = fnv_bytes(FNV_BEGIN, WW_VERSION_TEXT, sizeof WW_VERSION_TEXT);
    hash = fnv_bytes(hash, name, strlen(name) + 1);
    hash = fnv_bytes(hash, arch, strlen(arch) + 1);
    return fnv_bytes(hash, driver_version, strlen(driver_version) + 1);
}

static uint32_t hash_of(const char *line)
{
    const uint64_t hash = fnv_bytes(FNV_BEGIN, line, HASHED_BYTES);
    return (uint32_t)(hash ^ hash >> 32);
}

/* Reads `digits` lower-case hexadecimal digits and what follows them. */
static bool read_word(const char **at, int digits, char end, uint64_t *word)
{
    *word = 0;
    for (int i = 0; i < digits; i++) {
        const char c = *(*at)++;
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        *word = *word << 4 | (uint64_t)digit;
    }
    return *(*at)++ == end;
}

/* Returns false if the line is damaged. */
static bool read_line(const char *line, uint64_t *device, search_trial *trial)
{
    uint64_t times[2], hash;
    const char *at = line;
    if (!read_word(&at, 16, ' ', device) || !read_word(&at, 16, ' ', &trial->shape) || !read_word(&at, 8, ' ', &times[0]) ||
        !read_word(&at, 8, ' ', &times[1]) || !read_word(&at, 8, '\n', &hash))
        return false;
    for (int i = 0; i < 2; i++)
        trial->best[i] = canon_bits_float((uint32_t)times[i]);
    return hash == hash_of(line) && trial->shape != 0 && isfinite(trial->best[0]) && isfinite(trial->best[1]) &&
           trial->best[0] > 0.0f && trial->best[1] > 0.0f;
}

static void write_line(char *line, uint64_t device, const search_trial *trial)
{
    char text[LINE_BYTES + 1];
    snprintf(text, sizeof text, "%016" PRIx64 " %016" PRIx64 " %08" PRIx32 " %08" PRIx32 " ", device, trial->shape,
             canon_float_bits(trial->best[0]), canon_float_bits(trial->best[1]));
    snprintf(text + HASHED_BYTES, sizeof text - HASHED_BYTES, "%08" PRIx32 "\n", hash_of(text));
    memcpy(line, text, LINE_BYTES);
}

/* Returns the first line, and the number of whole lines; 0 for a text of another format. */
static const char *lines_of(const char *text, size_t bytes, size_t *count)
{
    const size_t begin = sizeof head - 1;
    const bool known = bytes >= begin && memcmp(text, head, begin) == 0;
    *count = known ? (bytes - begin) / LINE_BYTES : 0;
    return known ? text + begin : text;
}

void trials_text_read(const char *text, size_t bytes, uint64_t device, search_trials *trials)
{
    size_t count;
    const char *lines = lines_of(text, bytes, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t of;
        search_trial trial = {0};
        if (read_line(lines + i * LINE_BYTES, &of, &trial) && of == device)
            search_trials_settle(trials, &trial);
    }
}

void trials_file_read(uint64_t device, search_trials *trials)
{
    char path[4096];
    size_t bytes;
    char *text = cache_path(file_name, path, sizeof path) ? cache_read(path, file_bytes_max, &bytes) : NULL;
    if (text != NULL)
        trials_text_read(text, bytes, device, trials);
    memory_free(text);
}

/* This device's lines come first, so that those of devices that are gone fall off the end. */
void trials_file_write(uint64_t device, search_trials *trials)
{
    char path[4096];
    size_t bytes, others = 0, count = 0;
    if (!cache_path(file_name, path, sizeof path))
        return;
    char *text = cache_read(path, file_bytes_max, &bytes);
    if (text == NULL && bytes > 0)
        return; /* the lines of other devices would be lost */
    char *lines = memory_alloc((size_t)LINES_MAX * LINE_BYTES);
    const char *old = text == NULL ? NULL : lines_of(text, bytes, &others);
    if (text != NULL) /* what another process measured on this device in the meantime */
        trials_text_read(text, bytes, device, trials);
    for (size_t i = 0; lines != NULL && i < TRIALS_KEPT; i++) {
        search_trial trial;
        if (search_trials_settled(trials, i, &trial))
            write_line(lines + count++ * LINE_BYTES, device, &trial);
    }
    for (size_t i = 0; lines != NULL && old != NULL && i < others && count < LINES_MAX; i++) {
        uint64_t of;
        search_trial trial;
        if (read_line(old + i * LINE_BYTES, &of, &trial) && of != device)
            memcpy(lines + count++ * LINE_BYTES, old + i * LINE_BYTES, LINE_BYTES);
    }
    if (lines != NULL && count > 0)
        cache_write(path, (cache_part[]){{head, sizeof head - 1}, {lines, count * LINE_BYTES}}, 2);
    memory_free(lines);
    memory_free(text);
}
