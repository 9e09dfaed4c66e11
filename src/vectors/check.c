/* Checks what a device holds: recomputes everything that was derived from a row when it was added, and compares it bit by bit.
 * A certificate cannot detect such damage (docs/design/exactness.md).
 *
 * The device repeats what it did for the add: the rows are read and written to a temporary segment, which computes their norms
 * and codes again. Devices differ in how they arrange rows, so both sides are brought into the same places, the old rows by
 * gathering and the new ones by writing, and compared in words of 64 rows. Single rows are compared only in words that differ.
 */
#include <stdio.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/query/search.h"

enum { PIECE_BYTES = 16 << 20 }; /* of rows at a time */

STRUCT_INIT(ww_damage_report, {.first_row = -1})

/* What a segment keeps for rows, and its name in reports of damage. */
static const struct kept {
    size_t offset;
    uint32_t damage;
    const char *name;
} kept[] = {
    {offsetof(segment, rows), WW_DAMAGE_VECTOR, "vector"},
    {offsetof(segment, norms), WW_DAMAGE_NORM, "norm"},
    {offsetof(segment, codes), WW_DAMAGE_CODES, "codes"},
    {offsetof(segment, scales), WW_DAMAGE_SCALE, "scale"},
    {offsetof(segment, residuals), WW_DAMAGE_RESIDUAL, "residual"},
    {offsetof(segment, highs), WW_DAMAGE_CODES, "codes"},
    {offsetof(segment, high_residuals), WW_DAMAGE_RESIDUAL, "residual"},
    {offsetof(segment, live), WW_DAMAGE_LIVE, "live bit"},
};
enum { KEPT_OF_ROWS = 7, KEPT = 8 }; /* these are computed from the row */

typedef struct checker {
    ww_collection *collection;
    device_stream *stream;
    segment old, made; /* the rows of a piece: as stored, and computed again */
    int64_t capacity;  /* rows that each of them has room for */
    char *rows;        /* host memory: the rows of a piece in the callers' format */
    char *bytes[2];    /* host memory: a part of both segments */
    int64_t *sources;  /* rows of a piece, in their segment */
    uint32_t *damage;  /* of each row of a piece */
    size_t row_bytes;  /* on the host */
    ww_damage_report found;
    ww_progress progress;
    void *user;
} checker;

static buffer *buffer_of(segment *part, int32_t i)
{
    return (buffer *)(void *)((char *)part + kept[i].offset);
}

/* Returns how many bytes the segment has of it for 64 rows; 0 if it does not have it. */
static size_t word_bytes(const segment *part, int32_t i)
{
    const buffer *b = (const buffer *)(const void *)((const char *)part + kept[i].offset);
    return b->data ? b->bytes / (size_t)(part->capacity / PAGE_ROWS) : 0;
}

/* ---- what it needs ------------------------------------------------------------------------------------------------------- */

static void checker_free(checker *k)
{
    ww_device *device = k->collection->device;
    device->backend->segment_destroy(device, &k->old);
    device->backend->segment_destroy(device, &k->made);
    device->backend->stream_destroy(device, k->stream);
    memory_free(k->rows);
    memory_free(k->bytes[0]);
    memory_free(k->bytes[1]);
    memory_free(k->sources);
    memory_free(k->damage);
}

/* Makes the two segments on the group member that holds `part`, because damage must be checked on the device that has it. They
 * are on the device even if the rows are on the host, because host rows have the same arrangement. */
static ww_status segments_make(checker *k, const segment *part)
{
    ww_device *device = k->collection->device;
    segment_plan plan = store_plan(&k->collection->store);
    plan.live = plan.rows_on_host = false;
    plan.member = part->member;
    plan.capacity = k->capacity;
    if (k->old.capacity > 0 && k->old.member == part->member)
        return WW_OK;
    device->backend->segment_destroy(device, &k->old);
    device->backend->segment_destroy(device, &k->made);
    const ww_status status = device->backend->segment_create(device, &plan, &k->old);
    return status == WW_OK ? device->backend->segment_create(device, &plan, &k->made) : status;
}

static ww_status checker_make(checker *k)
{
    const row_store *store = &k->collection->store;
    ww_device *device = k->collection->device;
    const segment *like = &store->segments[0];
    const size_t padded = (size_t)canon_padded(store->dim), element_bytes = word_bytes(like, 0) / (PAGE_ROWS * padded);
    const int64_t fit = (int64_t)(PIECE_BYTES / (element_bytes * padded + 1)) / PAGE_ROWS * PAGE_ROWS;
    const int64_t capacity = max_i64(min_i64(fit, round_up_i64(store->rows_count, PAGE_ROWS)), PAGE_ROWS);
    const size_t rows = (size_t)capacity, compared = word_bytes(like, 0) * (rows / PAGE_ROWS);
    k->row_bytes = (size_t)store->dim * element_bytes;
    k->rows = memory_alloc(rows * k->row_bytes);
    k->bytes[0] = memory_alloc(compared);
    k->bytes[1] = memory_alloc(compared);
    k->sources = memory_alloc(rows * sizeof *k->sources);
    k->damage = memory_alloc(rows * sizeof *k->damage);
    if (!k->rows || !k->bytes[0] || !k->bytes[1] || !k->sources || !k->damage)
        return memory_failed("rows to check", rows * k->row_bytes + 2 * compared);
    k->capacity = capacity;
    return device->backend->stream_create(device, &k->stream);
}

/* ---- some rows ----------------------------------------------------------------------------------------------------------- */

/* Writes zeros where there is no row. */
static ww_status clear(checker *k, int64_t words)
{
    ww_device *device = k->collection->device;
    ww_status status = WW_OK;
    for (int32_t i = 0; i < 2 * KEPT_OF_ROWS && status == WW_OK; i++) {
        segment *part = i < KEPT_OF_ROWS ? &k->old : &k->made;
        const int32_t what = i % KEPT_OF_ROWS;
        if (word_bytes(part, what) > 0)
            status = device->backend->fill(device, k->stream,
                                           (buffer_range){buffer_of(part, what), 0, word_bytes(part, what) * (size_t)words}, 0);
    }
    return status == WW_OK ? device->backend->stream_synchronize(device, k->stream) : status;
}

/* Copies `count` rows of `part`, listed in k->sources, to both segments: the stored ones to one, and those made from k->rows +
 * at to the other. A row that an add would refuse becomes zeros, and so differs. */
static ww_status lay_out(checker *k, const segment *part, int64_t at, int64_t count)
{
    ww_device *device = k->collection->device;
    const int32_t dim = k->collection->store.dim;
    void *rows = k->rows + (size_t)at * k->row_bytes;
    int64_t refused = -1;
    ww_status status = clear(k, divide_up_i64(count, PAGE_ROWS));
    if (status == WW_OK)
        status = device->backend->rows_gather(device, (row_range){&k->old, 0, count, dim}, part, k->sources + at);
    do {
        if (refused >= 0)
            memset((char *)rows + (size_t)refused * k->row_bytes, 0, k->row_bytes);
        if (status == WW_OK)
            status = device->backend->rows_write(device, (row_range){&k->made, 0, count, dim}, rows, dim, &refused);
    } while (status == WW_OK && refused >= 0);
    return status;
}

/* Sets bits in k->damage of each word's first row for everything that differs, for `words` words. */
static ww_status compare(checker *k, int64_t words, uint32_t *damage)
{
    ww_device *device = k->collection->device;
    ww_status status = WW_OK;
    for (int32_t i = 0; i < KEPT_OF_ROWS; i++) {
        const size_t each = word_bytes(&k->old, i), bytes = each * (size_t)words;
        if (each == 0)
            continue;
        if (status == WW_OK)
            status = device->backend->copy_out(device, k->stream, k->bytes[0], (buffer_range){buffer_of(&k->old, i), 0, bytes});
        if (status == WW_OK)
            status =
                device->backend->copy_out(device, k->stream, k->bytes[1], (buffer_range){buffer_of(&k->made, i), 0, bytes});
        for (int64_t w = 0; status == WW_OK && w < words; w++)
            if (memcmp(k->bytes[0] + (size_t)w * each, k->bytes[1] + (size_t)w * each, each) != 0)
                damage[w * PAGE_ROWS] |= kept[i].damage;
    }
    return status;
}

/* Finds the rows of a word that differ, and what differs in each of them. */
static ww_status look_at_rows(checker *k, const segment *part, int64_t first, int64_t end)
{
    ww_status status = WW_OK;
    for (int64_t at = first; status == WW_OK && at < end; at++) {
        k->damage[at] = 0;
        status = lay_out(k, part, at, 1);
        if (status == WW_OK)
            status = compare(k, 1, k->damage + at);
    }
    return status;
}

/* Compares rows with the host's copy. */
static void compare_with_copy(checker *k, const segment *part, int64_t first, int64_t count)
{
    const row_store *store = &k->collection->store;
    const char *copy = store->keep_copy ? (const char *)store_copy_of(store, part->first_row + first) : NULL;
    for (int64_t r = 0; copy && r < count; r++)
        if (memcmp(copy + (size_t)r * k->row_bytes, k->rows + (size_t)r * k->row_bytes, k->row_bytes) != 0)
            k->damage[r] |= WW_DAMAGE_VECTOR;
}

/* The device's live bits are a copy of the host's. */
static ww_status compare_live(checker *k, int64_t number, int64_t first, int64_t count)
{
    ww_device *device = k->collection->device;
    const row_store *store = &k->collection->store;
    const uint64_t *truth = store->shelves[number].live + first / PAGE_ROWS;
    uint64_t *words = (uint64_t *)(void *)k->bytes[0]; /* a word takes 8 bytes per 64 rows; rows take more */
    const size_t bytes = (size_t)divide_up_i64(count, PAGE_ROWS) * sizeof *words;
    const ww_status status = device->backend->copy_out(
        device, k->stream, words,
        (buffer_range){&store->segments[number].live, (size_t)(first / PAGE_ROWS) * sizeof *words, bytes});
    for (int64_t r = 0; status == WW_OK && r < count; r++)
        if ((words[r / PAGE_ROWS] ^ truth[r / PAGE_ROWS]) >> (r % PAGE_ROWS) & 1)
            k->damage[r] |= WW_DAMAGE_LIVE;
    return status;
}

/* Rows first .. first + count - 1 of a segment; `first` is a multiple of 64. */
static ww_status check_piece(checker *k, int64_t number, int64_t first, int64_t count)
{
    ww_device *device = k->collection->device;
    const row_store *store = &k->collection->store;
    const segment *part = &store->segments[number];
    const int64_t words = divide_up_i64(count, PAGE_ROWS);
    memset(k->damage, 0, (size_t)k->capacity * sizeof *k->damage);
    for (int64_t r = 0; r < count; r++)
        k->sources[r] = first + r;
    ww_status status = device->backend->rows_read(device, (row_range){part, first, count, store->dim}, (void *)k->rows);
    if (status == WW_OK)
        status = lay_out(k, part, 0, count);
    if (status == WW_OK)
        status = compare(k, words, k->damage);
    for (int64_t w = 0; status == WW_OK && w < words; w++)
        if (k->damage[w * PAGE_ROWS] != 0)
            status = look_at_rows(k, part, w * PAGE_ROWS, min_i64((w + 1) * PAGE_ROWS, count));
    if (status == WW_OK)
        status = compare_live(k, number, first, count);
    if (status == WW_OK)
        compare_with_copy(k, part, first, count);
    for (int64_t r = 0; status == WW_OK && r < count; r++) {
        if (k->damage[r] != 0 && k->found.rows_damaged++ == 0) {
            k->found.first_row = part->first_row + first + r;
            k->found.first_damage = k->damage[r];
        }
        k->found.damage |= k->damage[r];
    }
    k->found.rows_checked += count;
    return status;
}

/* ---- all rows ------------------------------------------------------------------------------------------------------------ */

static ww_status told(const checker *k)
{
    const int64_t total = k->collection->store.rows_count;
    if (!progress_tell(k->progress, k->user, k->found.rows_checked, total))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': check cancelled after %lld of %lld rows", k->collection->name,
                   (long long)k->found.rows_checked, (long long)total);
}

static ww_status check_all(checker *k)
{
    const row_store *store = &k->collection->store;
    ww_status status = told(k);
    for (int64_t s = 0; s < store_segments_used(store); s++)
        for (int64_t first = 0; status == WW_OK && first < store->segments[s].count; first += k->capacity) {
            status = segments_make(k, &store->segments[s]);
            if (status == WW_OK)
                status = check_piece(k, s, first, min_i64(k->capacity, store->segments[s].count - first));
            if (status == WW_OK)
                status = told(k);
        }
    return status;
}

/* "norm, codes" */
static const char *names_of(uint32_t damage, char text[64])
{
    size_t length = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < KEPT; i++)
        if (damage & kept[i].damage)
            length += (size_t)snprintf(text + length, 64 - length, "%s%s", length > 0 ? ", " : "", kept[i].name);
    return text;
}

static ww_status say(const checker *k)
{
    char first[64], all[64];
    if (k->found.rows_damaged == 0)
        return WW_OK;
    return ww_fail(WW_DAMAGED,
                   "collection '%s': row %lld on %s is damaged: %s; %lld of %lld rows are (%s). Its memory has changed since "
                   "the row was written; add the rows anew, and have the memory tested",
                   k->collection->name, (long long)k->found.first_row, k->collection->device->info.id,
                   names_of(k->found.first_damage, first), (long long)k->found.rows_damaged, (long long)k->found.rows_checked,
                   names_of(k->found.damage, all));
}

ww_status memory_check(ww_collection *c, ww_damage_report *report, ww_progress progress, void *user)
{
    ww_status status = search_lock(c);
    if (status != WW_OK)
        return status;
    checker k = {.collection = c, .found = ww_damage_report_default(), .progress = progress, .user = user};
    if (c->store.rows_count > 0) {
        status = checker_make(&k);
        if (status == WW_OK)
            status = check_all(&k);
        checker_free(&k);
    }
    if (status == WW_OK)
        status = say(&k);
    collection_unlock(c);
    if (report && (status == WW_OK || status == WW_DAMAGED))
        (void)struct_write(report, &k.found, sizeof k.found, "ww_collection_check", "ww_damage_report");
    return status;
}

ww_status ww_collection_check(ww_collection *collection, ww_damage_report *report, ww_progress progress, void *user)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_check");
    if (status == WW_OK && report)
        status = struct_check(report, "ww_collection_check", "ww_damage_report");
    return status == WW_OK ? collection->operations->check(collection, report, progress, user) : status;
}
