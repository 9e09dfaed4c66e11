/* The memory of a screen on the CPU: the size is computed, then allocated in one piece before the first row is read.
 */
#include "base/memory.h"
#include "base/status.h"
#include "cpu/search/screen_state.h"

enum { UNIT_CACHED_BYTES = 32 << 10 }; /* codes that stay in the first-level cache for all queries */

int64_t screen_query_bytes(const scan *s)
{
    const int64_t per_worker = (int64_t)sizeof(screen_limits) / GROUP + (int64_t)sizeof(uint32_t) + 2;
    return (int64_t)(s->padded + LEAD_CODES) * (1 + screen_products_choose(s->isa)->code_bytes) + s->workers * per_worker +
           (int64_t)(sizeof(screen_vector) + sizeof(uint32_t) + sizeof(float) + sizeof(bool));
}

/* Divides memory into pieces that start on a cache line; if there is no memory, it only counts the bytes. */
typedef struct cutter {
    char *memory;
    size_t used;
} cutter;

static void *cut(cutter *c, int64_t count, size_t element_bytes)
{
    char *piece = c->memory ? c->memory + c->used : NULL;
    c->used += ((size_t)count * element_bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    return piece;
}

static void cut_all(const scan *s, screen *sc, cutter *c)
{
    const int64_t groups = (s->round_queries + GROUP - 1) / GROUP, queries = groups * GROUP;
    sc->codes = cut(c, queries, (size_t)s->padded);
    sc->packed = cut(c, groups, (size_t)sc->group_bytes);
    /* With AMX, the whole products take less time than this test. */
    if (s->padded >= LEAD_MIN && s->isa->filter_leads && !sc->products->groups_filtered)
        sc->lead_packed = cut(c, groups, (size_t)packed_group_bytes(sc->products, LEAD_CODES));
    sc->vectors = cut(c, queries, sizeof *sc->vectors);
    sc->rests = cut(c, queries, sizeof *sc->rests);
    if (row_type_offset(s->job->type) != 0)
        sc->offsets = cut(c, queries, sizeof *sc->offsets);
    sc->failed = cut(c, queries, sizeof *sc->failed);
    sc->shared_thresholds = cut(c, queries, sizeof *sc->shared_thresholds);
    screen_worker *workers = cut(c, s->workers, sizeof *workers);
    sc->workers = workers;
    for (int32_t i = 0; i < s->workers; i++) {
        screen_worker w = {.limits = cut(c, groups, sizeof *w.limits),
                           .thresholds = cut(c, queries, sizeof *w.thresholds),
                           .fallback = cut(c, queries, sizeof *w.fallback),
                           .pause = cut(c, groups, sizeof *w.pause),
                           .wait = cut(c, groups, sizeof *w.wait),
                           .without_threshold = cut(c, groups, sizeof *w.without_threshold),
                           .products = cut(c, (int64_t)GROUPS_MAX * UNIT_ROWS * GROUP, sizeof *w.products),
                           .kept = cut(c, KEPT_MAX, sizeof *w.kept),
                           .lead = cut(c, 1, sizeof *w.lead),
                           .excluded = cut(c, groups, sizeof *w.excluded)};
        if (sc->products->prepare)
            w.prepared = cut(c, (int64_t)UNIT_ROWS * s->padded, (size_t)sc->products->code_bytes);
        if (workers)
            workers[i] = w;
    }
}

ww_status screen_create(scan *s)
{
    screen *sc = memory_alloc_zeroed(1, sizeof *sc);
    if (!sc)
        return memory_failed("the screen of a search on cpu", sizeof *sc);
    sc->products = screen_products_choose(s->isa);
    sc->group_bytes = packed_group_bytes(sc->products, s->padded);
    sc->unit_rows = UNIT_ROWS;
    while (sc->unit_rows > SCREEN_STRIP && (int64_t)sc->unit_rows * s->padded > UNIT_CACHED_BYTES)
        sc->unit_rows /= 2;
    cutter c = {0};
    cut_all(s, sc, &c);
    const size_t bytes = c.used;
    c = (cutter){.memory = memory_alloc_aligned(bytes)};
    if (!c.memory) {
        memory_free(sc);
        return memory_failed("the screen of a search on cpu", bytes);
    }
    cut_all(s, sc, &c);
    sc->memory = c.memory;
    s->screen = sc;
    return WW_OK;
}

void screen_destroy(scan *s)
{
    if (s->screen)
        memory_free(s->screen->memory);
    memory_free(s->screen);
    s->screen = NULL;
}
