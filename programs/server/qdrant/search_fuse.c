/* Fusion: the hits of several searches become one list.
 *
 * All hits are sorted by id, so that those of one point are adjacent, and then by the fused score: n log n for n hits. The
 * contributions to a point are added in the order in which they were found, so its score does not depend on the sort.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "server/qdrant/search.h"

/* Mean and deviation of the scores of one search, for SEARCH_DBSF. */
typedef struct distribution {
    double mean;
    double deviation; /* 0: all scores are equal, or there is only one */
} distribution;

static distribution distribution_of(const search *s)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < s->found_count; i++)
        sum += s->found[i].score;
    const double mean = sum / (double)s->found_count;
    for (int64_t i = 0; i < s->found_count; i++)
        squares += (s->found[i].score - mean) * (s->found[i].score - mean);
    return (distribution){mean, s->found_count < 2 ? 0 : sqrt(squares / (double)(s->found_count - 1))};
}

/* What a hit adds to the score of its point: by its rank, counted from 0, or by its score's position in the distribution. */
static double rank_share(const search *s, size_t child, int64_t rank)
{
    const double weight = s->weights ? s->weights[child] : 1;
    return weight <= 0 ? 0 : 1 / ((double)(rank + 1) / weight + s->rank_constant - 1);
}

static double score_share(distribution scores, double score)
{
    if (scores.deviation == 0)
        return 0.5;
    return (score - (scores.mean - 3 * scores.deviation)) / (6 * scores.deviation);
}

/* Puts all hits of the children into `found`, each with its own share; `hit` is the order in which they were found. */
static int64_t gather(search *s)
{
    int64_t count = 0;
    for (size_t c = 0; c < s->child_count; c++) {
        const search *child = &s->children[c];
        const distribution scores = s->kind == SEARCH_DBSF ? distribution_of(child) : (distribution){0};
        for (int64_t i = 0; i < child->found_count; i++, count++)
            s->found[count] = (found_point){.id = child->found[i].id,
                                            .score = s->kind == SEARCH_DBSF ? score_share(scores, child->found[i].score)
                                                                            : rank_share(s, c, i),
                                            .hit = count};
    }
    return count;
}

static int compare_ids(const void *first, const void *second)
{
    const found_point *a = first, *b = second;
    const int ids = strcmp(a->id, b->id);
    return ids != 0 ? ids : (a->hit > b->hit) - (a->hit < b->hit);
}

int compare_found_scores(const void *first, const void *second)
{
    const found_point *a = first, *b = second;
    if (a->score != b->score)
        return (a->score < b->score) - (a->score > b->score);
    return (a->hit > b->hit) - (a->hit < b->hit);
}

/* Merges hits with the same id into one. `count` becomes the number of points. */
static ww_status unite(found_point *found, int64_t *count)
{
    int64_t points = 0;
    const ww_status status = job_sort(found, (size_t)*count, sizeof *found, compare_ids);
    for (int64_t i = 0; status == WW_OK && i < *count; i++) {
        if (points > 0 && strcmp(found[points - 1].id, found[i].id) == 0)
            found[points - 1].score += found[i].score;
        else
            found[points++] = found[i];
    }
    *count = points;
    return status;
}

ww_status search_fuse(search *s)
{
    int64_t total = 0;
    for (size_t c = 0; c < s->child_count; c++)
        total += s->children[c].found_count;
    s->found = memory_alloc((size_t)(total + 1) * sizeof *s->found);
    if (!s->found)
        return memory_failed("hits", (size_t)total * sizeof *s->found);
    int64_t count = gather(s), kept = 0;
    ww_status status = unite(s->found, &count);
    if (status == WW_OK)
        status = job_sort(s->found, (size_t)count, sizeof *s->found, compare_found_scores);
    if (status != WW_OK)
        return status;
    for (int64_t i = s->offset; i < count && i - s->offset < s->limit; i++)
        if (score_is_within(s, s->found[i].score))
            s->found[kept++] = s->found[i];
    s->found_count = kept;
    return WW_OK;
}
