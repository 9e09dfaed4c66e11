/* Splits a list that is too large, by 2-means among its own rows.
 *
 * Rows are sorted by how much nearer they are to one new centroid than to the other, and the list is cut where that changes
 * sign, but the smaller part always gets at least an eighth of the rows, so lists always become smaller. Other lists stay as
 * they are. The two lists, the centroids and their store are made beside the index and swapped in when they are complete.
 */
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

enum {
    ITERATIONS = 6,
    SMALLER_PART = 8, /* the smaller list gets at least 1/8 of the rows */
};

typedef struct sided_row {
    double side;    /* squared distance to the first centroid minus that to the second */
    int64_t number; /* index in the list */
} sided_row;

typedef struct split {
    ivf *index;
    const ww_collection *collection;
    ivf_list *list;
    int64_t count;
    int64_t *rows;
    float *vectors;
    sided_row *sided;
    float *centers; /* two */
    double *sums;   /* dim */
    ivf_list parts[2];
    ivf_list *lists;  /* all lists, with the new one last */
    float *centroids; /* of all lists */
    row_store store;
} split;

static ww_status take_memory(split *s)
{
    const size_t count = (size_t)s->count, dim = (size_t)s->index->dim, lists = (size_t)s->index->nlist + 1;
    s->rows = memory_alloc(count * sizeof *s->rows);
    s->vectors = memory_alloc(count * dim * sizeof *s->vectors);
    s->sided = memory_alloc(count * sizeof *s->sided);
    s->centers = memory_alloc(2 * dim * sizeof *s->centers);
    s->sums = memory_alloc(dim * sizeof *s->sums);
    s->lists = memory_alloc(lists * sizeof *s->lists);
    s->centroids = memory_alloc(lists * dim * sizeof *s->centroids);
    if (s->rows && s->vectors && s->sided && s->centers && s->sums && s->lists && s->centroids)
        return WW_OK;
    return memory_failed("splitting a list of an index",
                         count * dim * sizeof *s->vectors + lists * (sizeof *s->lists + dim * sizeof *s->centroids));
}

static void free_memory(split *s)
{
    store_destroy(&s->store);
    ivf_list_free(&s->parts[0]);
    ivf_list_free(&s->parts[1]);
    memory_free(s->centroids);
    memory_free(s->lists);
    memory_free(s->sums);
    memory_free(s->centers);
    memory_free(s->sided);
    memory_free(s->vectors);
    memory_free(s->rows);
}

static const float *farthest_from(const split *s, const float *from)
{
    const int32_t dim = s->index->dim;
    const float *farthest = s->vectors;
    double squares_max = -1.0;
    for (int64_t i = 0; i < s->count; i++) {
        const double squares = ivf_squares_between(s->vectors + i * dim, from, dim);
        if (squares > squares_max) {
            squares_max = squares;
            farthest = s->vectors + i * dim;
        }
    }
    return farthest;
}

static void measure_sides(const split *s)
{
    const int32_t dim = s->index->dim;
    for (int64_t i = 0; i < s->count; i++) {
        const float *row = s->vectors + i * dim;
        s->sided[i] =
            (sided_row){ivf_squares_between(row, s->centers, dim) - ivf_squares_between(row, s->centers + dim, dim), i};
    }
}

/* Computes the mean of the rows sided[first .. end - 1], in that order. */
static void center_of(const split *s, int64_t first, int64_t end, float *center)
{
    const int32_t dim = s->index->dim;
    memset(s->sums, 0, (size_t)dim * sizeof *s->sums);
    for (int64_t i = first; i < end; i++) {
        const float *row = s->vectors + s->sided[i].number * dim;
        for (int32_t d = 0; d < dim; d++)
            s->sums[d] += (double)row[d];
    }
    for (int32_t d = 0; d < dim; d++)
        center[d] = (float)(s->sums[d] / (double)(end - first));
    ivf_make_unit(s->index, center, 1);
}

static int by_side(const void *a, const void *b)
{
    const sided_row *x = a, *y = b;
    if (x->side != y->side)
        return x->side < y->side ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Sorts the rows and returns how many belong to the first part; 0: all rows are equal. */
static int64_t divide(const split *s)
{
    const int32_t dim = s->index->dim;
    const int64_t count_min = max_i64(s->count / SMALLER_PART, 1);
    const float *centroid = s->index->centroids + (s->list - s->index->lists) * dim;
    const float *first = farthest_from(s, centroid), *second = farthest_from(s, first);
    int64_t cut = 0;
    if (ivf_squares_between(first, second, dim) == 0.0)
        return 0;
    memcpy(s->centers, first, (size_t)dim * sizeof *s->centers);
    memcpy(s->centers + dim, second, (size_t)dim * sizeof *s->centers);
    for (int32_t i = 0; i < ITERATIONS; i++) {
        measure_sides(s);
        qsort(s->sided, (size_t)s->count, sizeof *s->sided, by_side);
        for (cut = 0; cut < s->count && s->sided[cut].side < 0.0; cut++)
            continue;
        cut = max_i64(count_min, min_i64(cut, s->count - count_min));
        center_of(s, 0, cut, s->centers);
        center_of(s, cut, s->count, s->centers + dim);
    }
    return cut;
}

static int by_number(const void *a, const void *b)
{
    const sided_row *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Makes one of the two new lists from the rows sided[first .. end - 1]. */
static ww_status make_part(split *s, int32_t part, int64_t first, int64_t end)
{
    const int32_t dim = s->index->dim;
    const ww_metric metric = s->index->assigned == CANON_COSINE ? WW_COSINE : WW_L2;
    const float *center = s->centers + (int64_t)part * dim;
    ww_status status = ivf_list_reserve(&s->parts[part], end - first);
    qsort(s->sided + first, (size_t)(end - first), sizeof *s->sided, by_number);
    for (int64_t i = first; status == WW_OK && i < end; i++) {
        const float *row = s->vectors + s->sided[i].number * dim;
        ivf_place place = {.unbounded = s->list->unbounded};
        status = ww_score(metric, row, center, dim, &place.score);
        if (status == WW_OK)
            ivf_list_append(s->index, &s->parts[part], s->list->rows[s->sided[i].number], &place);
    }
    return status;
}

/* Makes the whole index with the two lists instead of one. */
static ww_status make_index(split *s)
{
    const ivf *index = s->index;
    const size_t dim = (size_t)index->dim, nlist = (size_t)index->nlist, at = (size_t)(s->list - index->lists);
    memcpy(s->lists, index->lists, nlist * sizeof *s->lists);
    memcpy(s->centroids, index->centroids, nlist * dim * sizeof *s->centroids);
    memcpy(s->centroids + at * dim, s->centers, dim * sizeof *s->centroids);
    memcpy(s->centroids + nlist * dim, s->centers + dim, dim * sizeof *s->centroids);
    return centroids_create(&s->store, index->store.device, index->store.stream, s->centroids,
                            (ivf_size){index->nlist + 1, index->dim});
}

static void commit(split *s)
{
    ivf *index = s->index;
    const int64_t at = s->list - index->lists;
    ivf_list_free(s->list);
    s->lists[at] = s->parts[0];
    s->lists[index->nlist] = s->parts[1];
    s->lists[at].was_split = s->lists[index->nlist].was_split = true;
    s->parts[0] = s->parts[1] = (ivf_list){0};
    ivf_list *const lists = index->lists;
    float *const centroids = index->centroids;
    const row_store store = index->store;
    index->lists = s->lists;
    index->centroids = s->centroids;
    index->store = s->store;
    index->nlist++;
    index->lists_split++;
    s->lists = lists;
    s->centroids = centroids;
    s->store = store;
}

ww_status ivf_split_list(ivf *index, const ww_collection *c, ivf_list *list)
{
    split s = {.index = index, .collection = c, .list = list, .count = list->count};
    int64_t cut = 0;
    ww_status status = take_memory(&s);
    for (int64_t i = 0; status == WW_OK && i < s.count; i++)
        s.rows[i] = list->rows[i];
    if (status == WW_OK)
        status = ivf_read_rows(c, s.rows, s.count, s.vectors);
    if (status == WW_OK) {
        ivf_make_unit(index, s.vectors, s.count);
        cut = divide(&s);
        list->equal_rows = cut == 0 ? s.count : 0;
    }
    if (status == WW_OK && cut > 0)
        status = make_part(&s, 0, 0, cut);
    if (status == WW_OK && cut > 0)
        status = make_part(&s, 1, cut, s.count);
    if (status == WW_OK && cut > 0)
        status = make_index(&s);
    if (status == WW_OK && cut > 0)
        commit(&s);
    free_memory(&s);
    return status;
}

/* Returns true if a list is too large and was not found to consist of equal rows. */
static bool is_large(const ivf *index, const ivf_list *list)
{
    return list->count > 1 && list->count >= 2 * list->equal_rows &&
           list->count * index->nlist > IVF_LIST_GROWTH * index->rows && index->nlist < WW_IVF_LISTS_MAX;
}

ivf_list *ivf_list_to_split(const ivf *index)
{
    ivf_list *found = NULL;
    for (int64_t i = 0; i < index->nlist; i++) {
        ivf_list *list = &index->lists[i];
        if (is_large(index, list) && (!found || list->count > found->count))
            found = list;
    }
    return found;
}

ww_status ivf_split_large(ivf *index, const ww_collection *c)
{
    ww_status status = WW_OK;
    for (ivf_list *list = ivf_list_to_split(index); status == WW_OK && list; list = ivf_list_to_split(index))
        status = ivf_split_list(index, c, list);
    return status;
}
