/* Counts for performance.py what an executed kernel requests from the chip: for every access to global memory, the cache lines
 * it touches and the bytes it uses of them; for every access to LDS, the cycles that its banks take; for every wait, how many
 * loads are pending. access_t describes the instruction at an address of code; performance.py makes these from the disassembly.
 * Loads return in the order in which they were issued, as on the chips. */
#ifndef CODEOBJECTS_COUNT_H
#define CODEOBJECTS_COUNT_H

#include <stdint.h>

enum { ACCESS_NONE, ACCESS_LOAD, ACCESS_STORE, ACCESS_ATOMIC, ACCESS_LDS, ACCESS_WAIT, ACCESS_KINDS };
enum { LANES_MAX = 64, BANKS_MAX = 64, IN_FLIGHT_MAX = 64, LINES_MAX = 256, NO_SCALAR = 255, READS_128 = 8 };
typedef struct {
    uint8_t kind;
    uint8_t vaddr, saddr; /* saddr: the first of two scalar registers, or NO_SCALAR: the address is in two vector registers */
    uint8_t bytes;        /* of a lane, of each access */
    uint8_t twice;        /* LDS: the instruction accesses two places, `offset` and `second` */
    uint8_t swizzled;     /* LDS: 16 bytes are read by lanes 0-3 and 20-23, 4-7 and 16-19, and so on: CDNA */
    uint8_t left;         /* ACCESS_WAIT: loads that may still be pending */
    uint8_t counted;      /* stores: they are waited for as loads are (CDNA) */
    int32_t offset, second;
} access_t;

/* A cache line that was touched: by how many blocks and groups of them, and whether it was read (1) and written (2). */
typedef struct {
    uint64_t number; /* plus one; 0: no line */
    uint32_t block, blocks, group, groups, how, pad;
} line_t;

typedef struct {
    const access_t *access; /* indexed by code address, in words */
    uint64_t *lanes;        /* indexed in the same way: active lanes, added up */
    line_t *table;          /* a hash table of `table_size` places, a power of two */
    uint64_t table_size, table_used;
    uint64_t line_bytes, block, group, banks;
    uint64_t accesses[ACCESS_KINDS], lines[ACCESS_KINDS], used[ACCESS_KINDS], asked[ACCESS_KINDS];
    uint64_t first_level_cycles, first_level_bytes; /* a cycle for each line, or for a certain number of bytes */
    uint64_t lds_cycles, lds_cycles_min;
    uint64_t waits, retired_bytes;
    double weighted_bytes; /* bytes in flight, each time weighted with the bytes that were waited for */
} counter_t;

/* For one wave: the bytes of the pending loads, oldest first. */
typedef struct {
    counter_t *counter; /* NULL: nothing is counted */
    uint32_t in_flight[IN_FLIGHT_MAX];
    uint32_t count, pad;
} loading_t;

typedef struct {
    uint64_t number, used[2]; /* bit i: byte i of the line */
} touched_t;

static void count_line(counter_t *c, uint64_t number, uint32_t how)
{
    uint64_t at = (number * 0x9e3779b97f4a7c15ull) >> 20 & (c->table_size - 1);
    while (c->table[at].number != 0 && c->table[at].number != number + 1)
        at = (at + 1) & (c->table_size - 1);
    line_t *line = &c->table[at];
    if (line->number == 0) {
        if (2 * c->table_used >= c->table_size) /* performance.py checks that it is not full */
            return;
        c->table_used++;
        *line = (line_t){.number = number + 1, .block = ~0u, .group = ~0u};
    }
    if (line->block != (uint32_t)c->block) {
        line->block = (uint32_t)c->block;
        line->blocks++;
    }
    if (line->group != (uint32_t)c->group) {
        line->group = (uint32_t)c->group;
        line->groups++;
    }
    line->how |= how;
}

static uint64_t bits_of(uint64_t from, uint64_t count)
{
    return (count >= 64 ? ~0ull : (1ull << count) - 1) << from;
}

/* Bytes `from` to `from + count` of a line of at most 128. */
static void use_bytes(touched_t *line, uint64_t from, uint64_t count)
{
    if (from < 64)
        line->used[0] |= bits_of(from, count);
    if (from + count > 64)
        line->used[1] |= from >= 64 ? bits_of(from - 64, count) : bits_of(0, from + count - 64);
}

static int touch(touched_t *lines, int count, uint64_t number)
{
    for (int i = count - 1; i >= 0; i--)
        if (lines[i].number == number)
            return i;
    lines[count] = (touched_t){.number = number};
    return count;
}

static void count_global(counter_t *c, const access_t *a, const uint32_t *sg, const uint32_t *vg, uint64_t active, int ws,
                         loading_t *loading)
{
    touched_t lines[LINES_MAX];
    int count = 0;
    uint64_t lanes = 0, used = 0;
    const uint32_t *low = vg + (uint64_t)a->vaddr * ws;
    for (int l = 0; l < ws; l++) {
        if (!(active >> l & 1))
            continue;
        uint64_t base = a->saddr == NO_SCALAR ? (uint64_t)low[ws + l] << 32 : sg[a->saddr] | (uint64_t)sg[a->saddr + 1] << 32;
        uint64_t address = base + low[l] + (int64_t)a->offset, left = a->bytes;
        lanes++;
        while (left > 0 && count < LINES_MAX - 1) {
            uint64_t from = address % c->line_bytes, some = c->line_bytes - from < left ? c->line_bytes - from : left;
            int at = touch(lines, count, address / c->line_bytes);
            count += at == count;
            use_bytes(&lines[at], from, some);
            address += some;
            left -= some;
        }
    }
    for (int i = 0; i < count; i++) {
        used += (uint64_t)__builtin_popcountll(lines[i].used[0]) + (uint64_t)__builtin_popcountll(lines[i].used[1]);
        count_line(c, lines[i].number, a->kind == ACCESS_LOAD ? 1 : a->kind == ACCESS_STORE ? 2 : 3);
    }
    const uint64_t by_bytes = (lanes * a->bytes + c->first_level_bytes - 1) / c->first_level_bytes;
    c->accesses[a->kind]++;
    c->lines[a->kind] += (uint64_t)count;
    c->used[a->kind] += used;
    c->asked[a->kind] += lanes * a->bytes;
    c->first_level_cycles += by_bytes > (uint64_t)count ? by_bytes : (uint64_t)count;
    if ((a->kind != ACCESS_STORE || a->counted) && loading->count < IN_FLIGHT_MAX)
        loading->in_flight[loading->count++] = a->kind == ACCESS_STORE ? 0 : (uint32_t)((uint64_t)count * c->line_bytes);
}

/* Returns the lane that is served as number `i`. */
static int served_lane(const access_t *a, int i)
{
    static const int of_32[32] = {0, 1, 2,  3,  20, 21, 22, 23, 4,  5,  6,  7,  16, 17, 18, 19,
                                  8, 9, 10, 11, 28, 29, 30, 31, 12, 13, 14, 15, 24, 25, 26, 27};
    return a->swizzled ? (i & 32) + of_32[i & 31] : i;
}

/* One place of each lane: a bank gives one word a cycle, to all lanes that ask for that very word. */
static void count_banks(counter_t *c, const access_t *a, const uint32_t *addresses, int32_t offset, uint64_t active, int ws)
{
    const int words = a->bytes < 4 ? 1 : a->bytes / 4, banks = (int)c->banks,
              together = words == 1   ? banks
                         : words == 2 ? banks / 2
                                      : banks / 4;
    for (int first = 0; first < ws; first += together) {
        uint32_t wanted[BANKS_MAX][LANES_MAX];
        int depth[BANKS_MAX] = {0}, deepest = 0;
        for (int i = first; i < first + together; i++) {
            const int lane = served_lane(a, i);
            if (!(active >> lane & 1))
                continue;
            for (int w = 0; w < words; w++) {
                const uint32_t word = (addresses[lane] + (uint32_t)offset) / 4 + (uint32_t)w, bank = word % (uint32_t)banks;
                int known = 0;
                while (known < depth[bank] && wanted[bank][known] != word)
                    known++;
                if (known == depth[bank] && known < LANES_MAX)
                    wanted[bank][depth[bank]++] = word;
                deepest = depth[bank] > deepest ? depth[bank] : deepest;
            }
        }
        c->lds_cycles += (uint64_t)deepest;
        c->lds_cycles_min += deepest > 0;
    }
}

static void count_wait(counter_t *c, const access_t *a, loading_t *loading)
{
    uint64_t all = 0, retired = 0;
    if (loading->count <= a->left)
        return;
    const uint32_t gone = loading->count - a->left;
    for (uint32_t i = 0; i < loading->count; i++) {
        all += loading->in_flight[i];
        retired += i < gone ? loading->in_flight[i] : 0;
        if (i >= gone)
            loading->in_flight[i - gone] = loading->in_flight[i];
    }
    loading->count = a->left;
    c->waits++;
    c->retired_bytes += retired;
    c->weighted_bytes += (double)retired * (double)all;
}

static void count_instruction(loading_t *loading, uint64_t place, const uint32_t *sg, const uint32_t *vg, int ws)
{
    counter_t *c = loading->counter;
    const access_t *a = &c->access[place];
    const uint64_t active = sg[126] | (ws == 64 ? (uint64_t)sg[127] << 32 : 0);
    c->lanes[place] += (uint64_t)__builtin_popcountll(active);
    if (a->kind == ACCESS_NONE)
        return;
    if (a->kind == ACCESS_WAIT)
        count_wait(c, a, loading);
    else if (a->kind == ACCESS_LDS) {
        c->accesses[ACCESS_LDS]++;
        count_banks(c, a, vg + (uint64_t)a->vaddr * ws, a->offset, active, ws);
        if (a->twice)
            count_banks(c, a, vg + (uint64_t)a->vaddr * ws, a->second, active, ws);
    } else
        count_global(c, a, sg, vg, active, ws, loading);
}

#endif
