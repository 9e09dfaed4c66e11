/* Makes a map of all rows, or updates a kept map by placing the new rows. */
#include "map/making.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"

enum {
    NEIGHBOURS_DEFAULT = 15,
    STEPS_DEFAULT = 2000,
};

ww_status making_begin(making *m)
{
    map_job *job = &m->job;
    const ww_map_config *config = job->config;
    ww_status status = job->collection->operations->map_read(job->collection, &m->kept, &m->epoch);
    if (status == WW_OK)
        status = rows_read(job);
    if (status != WW_OK)
        return status;
    const kept_map *kept = &m->kept;
    const bool has = kept->version != 0 && kept->count > 0;
    job->neighbours = config->neighbours ? config->neighbours : has ? kept->neighbours : NEIGHBOURS_DEFAULT;
    job->seed = config->seed >= 0 ? config->seed : has ? kept->seed : 0;
    job->steps = config->steps ? config->steps : has ? kept->steps : STEPS_DEFAULT;
    m->again =
        !has || config->remake || job->neighbours != kept->neighbours || job->seed != kept->seed || job->steps != kept->steps;
    job->device = job->collection->operations->device(job->collection);
    job->threads = job->device ? job->device->backend->threads(job->device) : NULL;
    return WW_OK;
}

void making_end(making *m)
{
    ww_device_close(m->job.device);
    memory_free(m->changed);
    rows_free(&m->job);
    memory_free(m->kept.points);
}

ww_status map_make(making *m)
{
    map_job *job = &m->job;
    map_start start = {0};
    neighbours near = {0};
    graph edges = {0};
    m->origin = WW_MAP_MADE;
    if (job->count == 0)
        return WW_OK;
    job->total = 2 * job->count; /* half for the search, half for the layout */
    ww_status status = start_learn(job, &start);
    if (status == WW_OK)
        status = neighbours_find(job, (map_list){NULL, job->count}, &start, &near);
    start_free(&start);
    if (status == WW_OK) {
        start_scale(job);
        status = graph_create(job, &near, &edges);
    }
    neighbours_free(&near);
    if (status == WW_OK)
        status = layout_run(job, &edges);
    graph_free(&edges);
    return status;
}

/* ---- growing ------------------------------------------------------------------------------------------------------------- */

/* The rows of the stored map that still exist. */
typedef struct growing {
    making *m;
    bool *placed;
    uint32_t *list; /* rows to check */
    uint32_t *from; /* the stored points of these rows */
    int64_t count;
} growing;

static void keep_point(const growing *g, uint32_t row, const map_point *point)
{
    map_job *job = &g->m->job;
    job->x[row] = point->x;
    job->y[row] = point->y;
    job->hashes[row] = point->hash;
    job->late[row] = point->placed != 0;
    g->placed[row] = true;
}

/* Takes over the points of rows that certainly have not changed. Lists the rows that may have: their number changed, or all
 * rows were renumbered. */
static void take_points(growing *g)
{
    making *m = g->m;
    int64_t found = 0;
    for (int64_t i = 0; i < m->kept.count; i++) {
        const map_point *point = &m->kept.points[i];
        const uint32_t row = rows_find(&m->job, point->handle);
        if (row == NO_ROW)
            continue;
        found++;
        if (m->kept.epoch == m->epoch && m->job.rows[row] == point->row) {
            keep_point(g, row, point);
        } else {
            m->changed[row] = true;
            g->list[g->count] = row;
            g->from[g->count++] = (uint32_t)i;
        }
    }
    if (found < m->kept.count || g->count > 0)
        m->origin = WW_MAP_GROWN;
}

/* Takes over the points of listed rows with the same vector. */
static ww_status compare_vectors(growing *g)
{
    making *m = g->m;
    row_vectors vectors = {0};
    ww_status status = g->count > 0 ? vectors_create(&m->job, &vectors) : WW_OK;
    for (int64_t first = 0; status == WW_OK && first < g->count; first += vectors.capacity) {
        status = vectors_read(&m->job, (map_list){g->list, g->count}, first, &vectors);
        for (int64_t i = 0; status == WW_OK && i < vectors.count; i++) {
            const map_point *point = &m->kept.points[g->from[vectors.places[i]]];
            if (m->job.hashes[vectors.numbers[i]] == point->hash)
                keep_point(g, vectors.numbers[i], point);
        }
    }
    vectors_free(&vectors);
    return status;
}

static ww_status place_new(growing *g)
{
    map_job *job = &g->m->job;
    neighbours near = {0};
    g->count = 0;
    for (int64_t i = 0; i < job->count; i++)
        if (!g->placed[i] && !job->gone[i]) {
            g->m->changed[i] = job->late[i] = true;
            g->list[g->count++] = (uint32_t)i;
        }
    if (g->count == 0)
        return WW_OK;
    const map_list list = {g->list, g->count};
    g->m->origin = WW_MAP_GROWN;
    job->total = g->count;
    const ww_status status = neighbours_find(job, list, NULL, &near);
    if (status == WW_OK)
        grow_place(job, list, &near, g->placed);
    neighbours_free(&near);
    return status;
}

ww_status map_grow(making *m)
{
    const size_t count = (size_t)m->job.count;
    growing g = {.m = m};
    m->origin = WW_MAP_KEPT;
    m->changed = memory_alloc_zeroed(count, sizeof *m->changed);
    g.placed = memory_alloc_zeroed(count, sizeof *g.placed);
    g.list = memory_alloc(count * sizeof *g.list);
    g.from = memory_alloc(count * sizeof *g.from);
    ww_status status =
        m->changed && g.placed && g.list && g.from ? WW_OK : memory_failed("the rows of a map", count * 2 * sizeof *g.list);
    if (status == WW_OK) {
        take_points(&g);
        status = compare_vectors(&g);
    }
    if (status == WW_OK)
        status = place_new(&g);
    memory_free(g.from);
    memory_free(g.list);
    memory_free(g.placed);
    return status;
}

/* ---- keeping ------------------------------------------------------------------------------------------------------------- */

static map_point point_of(const map_job *job, uint32_t row)
{
    return (map_point){.handle = job->handles[row],
                       .row = job->rows[row],
                       .x = job->x[row],
                       .y = job->y[row],
                       .hash = job->hashes[row],
                       .placed = job->late[row]};
}

/* Lists the handles of the stored map that are not on the new one; both are sorted by handle. */
static int64_t list_removed(const kept_map *before, const kept_map *now, int64_t *gone)
{
    int64_t count = 0, at = 0;
    for (int64_t i = 0; i < before->count; i++) {
        while (at < now->count && now->points[at].handle < before->points[i].handle)
            at++;
        if (at == now->count || now->points[at].handle != before->points[i].handle)
            gone[count++] = before->points[i].handle;
    }
    return count;
}

ww_status map_keep(const making *m, bool *kept)
{
    const map_job *job = &m->job;
    kept_map now = {
        .version = m->kept.version, .epoch = m->epoch, .seed = job->seed, .neighbours = job->neighbours, .steps = job->steps};
    map_change change = {.map = &now, .whole = m->again};
    now.points = memory_alloc((size_t)job->count * sizeof *now.points);
    int64_t *changed = memory_alloc((size_t)job->count * sizeof *changed);
    int64_t *gone = memory_alloc((size_t)m->kept.count * sizeof *gone);
    ww_status status = now.points && changed && gone ? WW_OK : memory_failed("a map", (size_t)job->count * sizeof *now.points);
    for (int64_t i = 0; status == WW_OK && i < job->count; i++) {
        const uint32_t row = job->by_handle[i];
        if (job->gone[row])
            continue;
        if (m->changed && m->changed[row])
            changed[change.changed_count++] = now.count;
        now.points[now.count++] = point_of(job, row);
    }
    if (status == WW_OK) {
        change.changed = changed;
        change.gone = gone;
        change.gone_count = list_removed(&m->kept, &now, gone);
        status = job->collection->operations->map_write(job->collection, &change, kept);
    }
    memory_free(gone);
    memory_free(changed);
    memory_free(now.points);
    return status;
}
