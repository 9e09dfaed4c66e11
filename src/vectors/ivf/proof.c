/* Proves hits by bounds on the scores of rows that were not read.
 *
 * A list stores the worst and the best canonical score of its rows with their centroid c: its farthest and nearest row. For a
 * query q and any row x of the list, true distances and angles satisfy:
 *
 *     l2       |q - x| >= |q - c| - far  and  >= near - |q - c|                               the triangle inequality
 *     dot      q.x <= q.c + |q| far                                                           with far as for l2
 *     cosine   angle(q, x) >= angle(q, c) - far  and  >= near - angle(q, c)                   the same for angles
 * A row is nearer to its own centroid c than to the centroid n of another list, unless a split has changed one of the two. So
 * the plane between c and n separates the row from a query that is nearer to n. f(p) = |p - c|^2 - |p - n|^2 is linear in p:
 *
 *     l2       f(x) >= f(q) - 2 |q - x| |c - n|,  so  |q - x| >= (f(q) - f(x)) / (2 |c - n|);
 *              f(x) <= 0 except for roundings
 *     cosine   the same for vectors of length 1, with f(p) = 2 cos(p, n) - 2 cos(p, c)  and  cos(q, x) = 1 - |q - x|^2 / 2
 * For cosine, cos(a - b) = cos a cos b + sin a sin b, and a sine is the root of 1 - cos^2. So only square roots are needed, and
 * all machines round them the same way.
 * Roundings. S = screen_slack() is more than twice the relative error of a canonical sum plus 115 roundings
 * (arithmetic/screen.h). The error of a canonical score is at most:
 *
 *     l2       S times the distance, plus 2^-64 for squares that underflow
 *     dot      S |q| |x| + 2^-110
 *     cosine   2 S, if both lengths are between 2^-40 and 2^60: S for the product and S for the two lengths. A row that was
 *              divided by its length before it was scored (split.c) has one more rounding per element, an angle of less than
 *              2^-23, and S has room for that
 * Canonical scores say that f(x) <= 0, up to their errors. For l2, |x - c| (1 - S) - V <= |x - n| (1 + S) + V with V = 2^-64.
 * So f(x) <= 8 S (|x - n| + V / S)^2 for S < 2^-6. There |x - n| <= |q - x| + |q - n|, and |q - x| is at most the distance of
 * the worst hit, because farther rows do not matter. For cosine, f(x) <= 4 * 2 S.
 * So a hit is proven if its canonical score is better than the bound by the errors of three scores: those of q and c, of a row
 * and c, and of q and x. The arithmetic here is in double precision. Its own roundings are below 2^-50 of each term, so a
 * factor of 1 + 2^-40, or 2^-40 for cosines, is more than enough. A list with a row for which these bounds do not hold is
 * unbounded. For a query whose length is out of range, everything is unbounded. If a distance is infinite, its square is at
 * least 2^128 (1 - S).
 */
#include <math.h>

#include "arithmetic/canon.h"
#include "arithmetic/screen.h"
#include "vectors/ivf/ivf.h"

static const double VANISHED = 0x1p-64, UNDERFLOW = 0x1p-110, MORE = 1.0 + 0x1p-40, LESS = 1.0 - 0x1p-40;

static const double INFINITE_DISTANCE = 0x1p64;

enum { REACH_STEPS = 20 }; /* steps of bisection, which find the distance to a millionth */

static double length_of(const float *vector, int32_t dim)
{
    double squares = 0.0;
    for (int32_t i = 0; i < dim; i++)
        squares += (double)vector[i] * (double)vector[i];
    return sqrt(squares) * MORE;
}

bool proof_norm_is_wild(const ivf *index, double norm)
{
    return index->assigned == CANON_COSINE && !(norm >= (double)SCREEN_NORM_MIN && norm < (double)SCREEN_NORM_MAX);
}

proof_query proof_query_of(const ivf *index, const float *query)
{
    proof_query made = {.norm = length_of(query, index->dim), .slack = (double)screen_slack(canon_padded(index->dim))};
    made.bounded = made.norm < (double)SCREEN_NORM_MAX && !proof_norm_is_wild(index, made.norm);
    return made;
}

static double min_f64(double a, double b)
{
    return a < b ? a : b;
}

static double max_f64(double a, double b)
{
    return a > b ? a : b;
}

/* Return lower and upper bounds of the true distance whose canonical value is `score`. */
static double distance_min(double score, double slack)
{
    return max_f64(min_f64(score, INFINITE_DISTANCE) * (1.0 - slack) * LESS - VANISHED, 0.0);
}

static double distance_max(double score, double slack)
{
    return score * (1.0 + slack) * MORE + VANISHED;
}

static double bound_l2(const ivf_list *list, double slack, double score)
{
    const double outside = distance_min(score, slack) - distance_max((double)list->farthest, slack);
    const double inside = distance_min((double)list->nearest, slack) - distance_max(score, slack);
    const double distance = max_f64(max_f64(outside, inside), 0.0);
    return max_f64(distance * (1.0 - slack) * LESS - VANISHED, 0.0);
}

static double bound_dot(const ivf *index, const proof_query *query, int64_t list, double score)
{
    const double length = length_of(index->centroids + list * index->dim, index->dim);
    const double far = distance_max((double)index->lists[list].farthest, query->slack);
    const double product = score + query->slack * query->norm * length + UNDERFLOW; /* an upper bound of q.c */
    const double errors = query->slack * query->norm * (length + far) + UNDERFLOW;  /* for the score of q and x */
    const double sum = product + query->norm * far + errors;
    return sum + 0x1p-40 * (fabs(product) + query->norm * far + errors);
}

/* Returns the sine for a cosine between -1 and 1. Also precise near 1, where 1 - a is exact. */
static double sine_of(double a)
{
    return sqrt((1.0 - a) * (1.0 + a));
}

/* An upper bound of cos(a - b) from the cosines of a and b. */
static double cosine_of_difference(double a, double b)
{
    return a * b + sine_of(a) * sine_of(b) + 0x1p-40;
}

static double bound_cosine(const ivf_list *list, double slack, double score)
{
    const double error = 2.0 * slack + 0x1p-40;
    const double highest = min_f64(score + error, 1.0), lowest = max_f64(score - error, -1.0); /* of cos(q, c) */
    const double far = max_f64((double)list->farthest - error, -1.0), near = min_f64((double)list->nearest + error, 1.0);
    double bound = 1.0;
    if (highest < far) /* the query is outside the cone of the list's rows */
        bound = min_f64(bound, cosine_of_difference(highest, far));
    if (lowest > near) /* all rows are outside a cone around c that contains the query */
        bound = min_f64(bound, cosine_of_difference(lowest, near));
    return bound + error;
}

double proof_bound(const ivf *index, const proof_query *query, int64_t list, float score)
{
    const ivf_list *rows = &index->lists[list];
    const double none = index->metric == CANON_L2 ? INFINITY : -INFINITY;
    if (rows->count == 0)
        return none;
    if (!query->bounded || rows->unbounded)
        return -none;
    if (index->metric == CANON_L2)
        return bound_l2(rows, query->slack, (double)score);
    return index->metric == CANON_DOT ? bound_dot(index, query, list, (double)score)
                                      : bound_cosine(rows, query->slack, (double)score);
}

static proof_extremes find_extremes(const ivf *index)
{
    const bool l2 = index->assigned == CANON_L2;
    proof_extremes found = {.farthest = l2 ? 0.0f : 1.0f};
    for (int64_t i = 0; i < index->nlist; i++) {
        const ivf_list *list = &index->lists[i];
        if (list->count == 0)
            continue;
        found.unbounded = found.unbounded || list->unbounded;
        if (l2 ? list->farthest > found.farthest : list->farthest < found.farthest)
            found.farthest = list->farthest;
    }
    return found;
}

/* Cached in one atomic word, because concurrent searches may all compute and store it: the distance, a bit for `unbounded`, and
 * a bit that says it is known. */
proof_extremes proof_extremes_of(ivf *index)
{
    const uint64_t unbounded = UINT64_C(1) << 32, known = UINT64_C(1) << 33;
    const uint64_t noted = atomic_load_explicit(&index->extremes, memory_order_relaxed);
    if (noted & known)
        return (proof_extremes){canon_bits_float((uint32_t)noted), (noted & unbounded) != 0};
    const proof_extremes found = find_extremes(index);
    atomic_store_explicit(&index->extremes, known | (found.unbounded ? unbounded : 0) | canon_float_bits(found.farthest),
                          memory_order_relaxed);
    return found;
}

double proof_rest_bound(const ivf *index, const proof_query *query, const proof_extremes *extremes, float score)
{
    /* Rows may coincide with their centroid, so only the farthest one gives a bound. */
    const ivf_list any = {.farthest = extremes->farthest, .nearest = index->metric == CANON_L2 ? 0.0f : 1.0f};
    if (index->metric == CANON_DOT || !query->bounded || extremes->unbounded)
        return index->metric == CANON_L2 ? 0.0 : INFINITY;
    return index->metric == CANON_L2 ? bound_l2(&any, query->slack, (double)score)
                                     : bound_cosine(&any, query->slack, (double)score);
}

/* Bisects an interval from a distance that may still hold better rows to one that is too far. The result was tested and is too
 * far. The true bound never decreases with the distance, so everything farther is too far, too. */
static float reach_l2(const ivf *index, const proof_query *query, const proof_extremes *extremes, float worst)
{
    float near = 0.0f, far = worst + extremes->farthest;
    if (!(far < 0x1p120f))
        return INFINITY;
    for (far = fmaxf(far, 0x1p-60f); !proof_holds(CANON_L2, worst, proof_rest_bound(index, query, extremes, far));
         far *= 2.0f) {
        if (far >= 0x1p120f)
            return INFINITY;
        near = far;
    }
    for (int i = 0; i < REACH_STEPS; i++) {
        const float middle = near + (far - near) / 2.0f;
        if (proof_holds(CANON_L2, worst, proof_rest_bound(index, query, extremes, middle)))
            far = middle;
        else
            near = middle;
    }
    return far;
}

static float reach_cosine(const ivf *index, const proof_query *query, const proof_extremes *extremes, float worst)
{
    float near = 1.0f, far = -1.0f;
    if (!proof_holds(CANON_COSINE, worst, proof_rest_bound(index, query, extremes, far)))
        return -INFINITY;
    for (int i = 0; i < REACH_STEPS; i++) {
        const float middle = far + (near - far) / 2.0f;
        if (proof_holds(CANON_COSINE, worst, proof_rest_bound(index, query, extremes, middle)))
            far = middle;
        else
            near = middle;
    }
    return far;
}

float proof_reach(const ivf *index, const proof_query *query, const proof_extremes *extremes, float worst)
{
    if (index->metric == CANON_DOT || !query->bounded || extremes->unbounded || !isfinite(worst))
        return ivf_all_lists(index);
    return index->metric == CANON_L2 ? reach_l2(index, query, extremes, worst) : reach_cosine(index, query, extremes, worst);
}

static double plane_bound_l2(double slack, double near, double far, double between, double worst)
{
    const double to_near = distance_max(near, slack), to_far = distance_min(far, slack);
    const double reach = distance_max(worst, slack) * 2.0; /* farther rows are worse than the worst hit */
    const double widest = reach + to_near + VANISHED / slack;
    const double rounded = 8.0 * slack * widest * widest;
    const double separated = to_far * to_far * LESS - to_near * to_near * MORE - rounded * MORE;
    const double distance = separated > 0.0 ? separated / (2.0 * between) * LESS : 0.0;
    return max_f64(min_f64(distance, reach) * (1.0 - slack) * LESS - VANISHED, 0.0);
}

static double plane_bound_cosine(double slack, double near, double far, double between)
{
    const double error = 2.0 * slack + 0x1p-40;
    const double separated = 2.0 * (near - far - 2.0 * error) - 4.0 * error;
    const double distance = separated > 0.0 ? separated / (2.0 * (between + 0x1p-20)) * LESS
                                            : 0.0; /* 2^-20: the lengths of centroids are rounded */
    return 1.0 - min_f64(distance, 2.0) * min_f64(distance, 2.0) / 2.0 + error;
}

double proof_plane_bound(const ivf *index, const proof_query *query, proof_list near, proof_list far, float worst)
{
    const double none = index->metric == CANON_L2 ? 0.0 : INFINITY;
    const ivf_list *rows = &index->lists[far.list];
    const float *n = index->centroids + near.list * index->dim, *c = index->centroids + far.list * index->dim;
    if (index->metric == CANON_DOT || !query->bounded || rows->unbounded || rows->was_split ||
        index->lists[near.list].was_split)
        return none;
    const double between = sqrt(ivf_squares_between(n, c, index->dim)) * MORE;
    const bool known = isfinite(near.score) && isfinite(far.score) && isfinite(worst) && between > 0.0;
    if (!known)
        return none;
    if (index->metric == CANON_L2)
        return plane_bound_l2(query->slack, (double)near.score, (double)far.score, between, (double)worst);
    const bool unit = length_of(n, index->dim) > 0.5 && length_of(c, index->dim) > 0.5; /* a centroid may have no direction */
    return unit ? plane_bound_cosine(query->slack, (double)near.score, (double)far.score, between) : none;
}

bool proof_holds(int32_t metric, float score, double bound)
{
    return metric == CANON_L2 ? (double)score < bound : (double)score > bound;
}
