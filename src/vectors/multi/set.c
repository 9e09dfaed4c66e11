/* A set of multivectors on a device: adding rows to its segments (multi.h says how they are kept). */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/integers.h"
#include "base/memory.h"
#include "device/backend.h"
#include "vectors/multi/multi.h"

enum {
    SLOTS_MIN = 8,           /* rows of a new segment */
    SEGMENT_BYTES = 1 << 30, /* of its vectors, unless one row is larger */
    STAGED_BYTES = 1 << 24,  /* copied to the device at a time */
};

ww_status multi_device_check(const ww_device *device)
{
    return device_check_single(device, "multivectors");
}

/* ---- adding -------------------------------------------------------------------------------------------------------------- */

/* The length of the segments for rows with `count` vectors: 1, 2, 3, 4, 6, 8, 12, ... */
static int32_t length_for(int32_t count)
{
    int32_t power = 1;
    while (power < count)
        power *= 2;
    return power >= 4 && power / 4 * 3 >= count ? power / 4 * 3 : power;
}

static void segment_free(multi_segment *s)
{
    ww_tensor_release(&s->vectors);
    memory_free(s->rows);
}

void multi_set_free(multi_set *set)
{
    for (int64_t i = 0; i < set->segment_count; i++)
        segment_free(&set->segments[i]);
    memory_free(set->segments);
    *set = (multi_set){.device = set->device, .dim = set->dim, .metric = set->metric};
}

int64_t multi_set_bytes(const multi_set *set)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < set->segment_count; i++)
        bytes += set->segments[i].capacity * set->segments[i].length * set->dim * (int64_t)sizeof(float);
    return bytes;
}

/* Finds a segment of this length with room, or makes one for up to `wanted` rows. */
static ww_status segment_ready(multi_set *set, int32_t length, int64_t wanted, multi_segment **found)
{
    int64_t slots = SLOTS_MIN;
    for (int64_t i = 0; i < set->segment_count; i++) {
        multi_segment *s = &set->segments[i];
        *found = s;
        if (s->length == length && s->count + s->added < s->capacity)
            return WW_OK;
        slots += s->length == length ? s->capacity : 0;
    }
    const int64_t row_bytes = (int64_t)length * set->dim * (int64_t)sizeof(float);
    slots = min_i64(max_i64(slots, wanted), max_i64(1, SEGMENT_BYTES / row_bytes));
    ww_status status = array_reserve(&set->segments, &set->segment_room, set->segment_count + 1, sizeof *set->segments,
                                     "segments of multivectors");
    if (status != WW_OK)
        return status;
    multi_segment made = {.length = length, .capacity = slots, .rows = memory_alloc((size_t)slots * sizeof *made.rows)};
    status = made.rows ? WW_OK : memory_failed("the numbers of rows", (size_t)slots * sizeof *made.rows);
    if (status == WW_OK)
        status = ww_tensor_empty(set->device, WW_F32, 3, (const int64_t[]){slots, length, set->dim}, &made.vectors);
    if (status != WW_OK) {
        segment_free(&made);
        return status;
    }
    set->segments[set->segment_count] = made;
    *found = &set->segments[set->segment_count++];
    return WW_OK;
}

/* Writes a row as a segment has it. */
static void fill_row(multi_set *set, const ww_multivector *v, int32_t length, float *to)
{
    const size_t dim = (size_t)set->dim;
    multi_prepare(set->metric, v, to);
    for (int32_t i = v->count; i < length; i++)
        memcpy(to + (size_t)i * dim, to, dim * sizeof *to);
    for (int32_t i = 0; i < v->count; i++)
        set->norm_max = fmax(set->norm_max, multi_length(to + (size_t)i * dim, set->dim));
}

/* Copies staged rows behind those of a segment. */
static ww_status append(multi_segment *s, const float *staged, int64_t count)
{
    ww_tensor place = {0};
    ww_status status = ww_tensor_narrow(&s->vectors, 0, s->count + s->added, count, &place);
    if (status == WW_OK)
        status = ww_tensor_write(&place, staged);
    ww_tensor_release(&place);
    if (status == WW_OK)
        s->added += count;
    return status;
}

typedef struct adding {
    const ww_multivector *rows;
    const uint32_t *numbers;
    int64_t count;
    float *staged;
    int64_t staged_numbers; /* room */
} adding;

/* Adds the rows that belong into segments of one length. */
static ww_status add_length(multi_set *set, const adding *a, int32_t length)
{
    const int64_t row_numbers = (int64_t)length * set->dim, at_once = a->staged_numbers / row_numbers;
    int64_t wanted = 0, staged = 0;
    multi_segment *s = NULL;
    ww_status status = WW_OK;
    for (int64_t i = 0; i < a->count; i++)
        wanted += a->rows[i].count > 0 && length_for(a->rows[i].count) == length;
    for (int64_t i = 0; status == WW_OK && wanted > 0 && i < a->count; i++) {
        if (a->rows[i].count == 0 || length_for(a->rows[i].count) != length)
            continue;
        if (staged == 0)
            status = segment_ready(set, length, wanted, &s);
        if (status != WW_OK)
            break;
        fill_row(set, &a->rows[i], length, a->staged + staged * row_numbers);
        s->rows[s->count + s->added + staged++] = a->numbers[i];
        wanted--;
        if (staged < at_once && s->count + s->added + staged < s->capacity && wanted > 0)
            continue;
        status = append(s, a->staged, staged);
        staged = 0;
    }
    return status;
}

ww_status multi_set_add(multi_set *set, const ww_multivector *rows, const uint32_t *numbers, int64_t count)
{
    int64_t longest = 0, all = 0;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i].count > 0 && rows[i].dim != set->dim)
            return multi_wrong_dim("the index", set->dim, rows[i].dim);
        longest = max_i64(longest, rows[i].count > 0 ? length_for(rows[i].count) : 0);
        all += rows[i].count > 0 ? length_for(rows[i].count) : 0;
    }
    if (all == 0)
        return WW_OK;
    adding a = {rows, numbers, count, NULL, 0};
    a.staged_numbers = max_i64(longest, min_i64(all, STAGED_BYTES / (int64_t)sizeof(float) / set->dim)) * set->dim;
    a.staged = memory_alloc((size_t)a.staged_numbers * sizeof *a.staged);
    ww_status status = a.staged ? WW_OK : memory_failed("multivectors", (size_t)a.staged_numbers * sizeof *a.staged);
    for (int32_t n = 1, last = 0; status == WW_OK && n <= WW_MULTI_MAX; n++) {
        if (length_for(n) == last)
            continue;
        last = length_for(n);
        status = add_length(set, &a, last);
    }
    for (int64_t i = 0; i < set->segment_count; i++) {
        multi_segment *s = &set->segments[i];
        set->rows += status == WW_OK ? s->added : 0;
        s->count += status == WW_OK ? s->added : 0;
        s->added = 0;
    }
    memory_free(a.staged);
    return status;
}
