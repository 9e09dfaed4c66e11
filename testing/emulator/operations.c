/* The functions that running kernels call: the emulator's side of simt_emulated.h. */
#include <string.h>

#include "emulator/block.h"

static lane_state *running_lane(void)
{
    return (lane_state *)emulated_here;
}

/* ---- meeting ------------------------------------------------------------------------------------------------------------- */

/* A place in the source is nearly always a single literal, but the compiler may duplicate it. */
static bool same_place(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

static const char *operation_name(enum operation operation)
{
    static const char *const names[] = {"barrier()", "wave_barrier()", "a shuffle", "a ballot", "wave_uniform_u32()"};
    return names[operation];
}

/* A barrier needs all threads of the block: none may have ended, and all must be at the same barrier. */
static void check_barrier(lane_state *lane, const char *where)
{
    struct block *block = lane->wave->block;
    if (block->threads_ended > 0)
        lane_fault(lane, "divergent barrier: at %s, but %u threads of the block have ended", file_and_line(where),
                   block->threads_ended);
    if (block->threads_waiting == 0) {
        block->barrier_where = where;
        block->barrier_thread = lane->place.thread;
    } else if (!same_place(block->barrier_where, where)) {
        lane_fault(lane, "divergent barrier: at %s, while thread %u waits at the barrier of %s", file_and_line(where),
                   block->barrier_thread, file_and_line(block->barrier_where));
    }
    block->threads_waiting++;
}

/* Arrives at an operation with a value and returns when it is complete. Returns the index of the buffer with the wave's values.
 * It is inlined into each operation, because after a switch of stacks the processor mispredicts the return address of every
 * function on the way back to the kernel. */
static inline __attribute__((always_inline)) uint32_t lane_meet(lane_state *lane, enum operation operation, const char *where,
                                                                uint64_t value)
{
    struct wave *wave = lane->wave;
    const uint32_t buffer = wave->completed & 1;
    if (wave->arrived == 0) {
        wave->operation = operation;
        wave->where = where;
        wave->first_thread = lane->place.thread;
        wave->present[buffer] = 0;
        wave->ballot[buffer] = 0;
    } else if (wave->operation != operation || !same_place(wave->where, where)) {
        lane_fault(lane, "divergent %s: at %s of %s, while thread %u of the wave waits at %s of %s",
                   operation == OPERATION_BARRIER ? "barrier" : "wave operation", operation_name(operation),
                   file_and_line(where), wave->first_thread, operation_name(wave->operation), file_and_line(wave->where));
    }
    if (operation == OPERATION_BARRIER)
        check_barrier(lane, where);
    const uint64_t bit = (uint64_t)1 << lane->place.lane;
    wave->values[buffer][lane->place.lane] = value;
    wave->present[buffer] |= bit;
    if (value)
        wave->ballot[buffer] |= bit;
    lane->ticket = wave->completed;
    wave->arrived++;
    if (wave->arrived < wave->live || !wave_complete(lane)) {
        lane->waiting = true;
        fiber_leave(&lane->fiber, false);
        lane->waiting = false;
    }
    return buffer;
}

void emulated_barrier(const char *where)
{
    lane_meet(running_lane(), OPERATION_BARRIER, where, 0);
}

void emulated_wave_barrier(const char *where)
{
    lane_meet(running_lane(), OPERATION_WAVE_BARRIER, where, 0);
}

/* A lane that has ended has no value: the reader gets an arbitrary one, different each time. */
uint64_t emulated_shuffle_u64(uint64_t value, uint32_t from, const char *where)
{
    lane_state *lane = running_lane();
    if (from >= lane->place.wave_size)
        lane_fault(lane, "shuffle at %s: lane %u asked of a wave of %u", file_and_line(where), from, lane->place.wave_size);
    const uint32_t buffer = lane_meet(lane, OPERATION_SHUFFLE, where, value);
    const struct wave *wave = lane->wave;
    if (wave->present[buffer] >> from & 1)
        return wave->values[buffer][from];
    return 0xbadc0ffee0ddf00dull ^ (uint64_t)wave->completed * 0x9e3779b97f4a7c15ull;
}

uint32_t emulated_shuffle_u32(uint32_t value, uint32_t from, const char *where)
{
    return (uint32_t)emulated_shuffle_u64(value, from, where);
}

uint64_t emulated_ballot(bool predicate, const char *where)
{
    lane_state *lane = running_lane();
    const uint32_t buffer = lane_meet(lane, OPERATION_BALLOT, where, predicate);
    return lane->wave->ballot[buffer];
}

uint32_t emulated_uniform_u32(uint32_t value, const char *where)
{
    lane_state *lane = running_lane();
    const uint32_t buffer = lane_meet(lane, OPERATION_UNIFORM, where, value);
    const struct wave *wave = lane->wave;
    const uint32_t first = (uint32_t)wave->values[buffer][__builtin_ctzll(wave->present[buffer])];
    if (value != first)
        lane_fault(lane, "wave_uniform_u32 at %s: %u here, %u in the wave's first lane", file_and_line(where), value, first);
    return value;
}

/* ---- shared memory ------------------------------------------------------------------------------------------------------- */

/* On a GPU, new shared memory is undefined, so here it is filled with a byte that depends on the block's number. */
static struct region *region_add(lane_state *lane, const char *site, size_t bytes)
{
    struct block *block = lane->wave->block;
    const size_t dynamic = block->launch->shape.shared_bytes;
    const size_t offset = (block->shared_used + 15) / 16 * 16;
    const bool fits = bytes <= EMULATOR_SHARED_BYTES && offset + bytes + (site ? dynamic : 0) <= EMULATOR_SHARED_BYTES;
    if (!fits || block->region_count == MAX_REGIONS)
        lane_fault(lane, "shared array %s: %zu bytes more than the %zu in use and %zu dynamic; a block has %d bytes, %d arrays",
                   site ? site : "(dynamic)", bytes, block->shared_used, dynamic, (int)EMULATOR_SHARED_BYTES, (int)MAX_REGIONS);
    struct region *region = &block->regions[block->region_count++];
    region->site = site;
    region->bytes = bytes;
    /* The dynamic region is at the end of the memory. */
    region->base = site ? block->shared + offset : block->shared + (EMULATOR_SHARED_BYTES - dynamic) / 16 * 16;
    if (site)
        block->shared_used = offset + bytes;
    memset(region->base, (int)(0x80 | (block->random & 0x7f)), bytes);
    return region;
}

static struct region *region_of_site(lane_state *lane, const char *site, size_t bytes)
{
    struct block *block = lane->wave->block;
    for (uint32_t r = 0; r < block->region_count; r++)
        if (block->regions[r].site == site)
            return &block->regions[r];
    return region_add(lane, site, bytes);
}

void *emulated_shared(const char *site, size_t bytes)
{
    return region_of_site(running_lane(), site, bytes)->base;
}

void *emulated_shared_dynamic(void)
{
    lane_state *lane = running_lane();
    return region_of_site(lane, NULL, lane->wave->block->launch->shape.shared_bytes)->base;
}

void *emulated_shared_at(const void *base, int64_t index, size_t element_bytes, size_t count, const char *where)
{
    lane_state *lane = running_lane();
    const struct block *block = lane->wave->block;
    for (uint32_t r = 0; r < block->region_count; r++) {
        const struct region *region = &block->regions[r];
        const size_t start = (size_t)((uintptr_t)base - (uintptr_t)region->base);
        if (start > region->bytes || (start == region->bytes && region->bytes > 0))
            continue;
        const int64_t bytes_behind = (int64_t)(region->bytes - start);
        int64_t offset = 0, length = 0; /* in bytes, because a division for each access took a third of a kernel's time */
        if (__builtin_mul_overflow(index, (int64_t)element_bytes, &offset) ||
            __builtin_mul_overflow((int64_t)count, (int64_t)element_bytes, &length) || offset < -(int64_t)start ||
            length > bytes_behind || offset > bytes_behind - length)
            lane_fault(lane,
                       "shared access out of bounds at %s: index %lld, %zu elements, in an array of %zu bytes from byte %zu on",
                       file_and_line(where), (long long)index, count, region->bytes, start);
        return region->base + (int64_t)start + offset;
    }
    lane_fault(lane, "shared access out of bounds at %s: the address is in no shared array of the block", file_and_line(where));
}
