/* The rows of tensor_rows.c for one kind: included once for each, with T the kind's C type and OF(name) what names of it end
 * in. */

/* The rounds after the first: the results of the runs, which are used up. */
static T OF(total)(const row_loops *loops, T *results, int64_t count)
{
    while (count > 1) {
        const int64_t runs = (count + REDUCE_RUN - 1) / REDUCE_RUN;
        for (int64_t run = 0; run < runs; run++) {
            T sums[REDUCE_LANES] = {0};
            const int64_t left = count - run * REDUCE_RUN;
            loops->OF(join)(REDUCE_SUM, sums, results + run * REDUCE_RUN, left < REDUCE_RUN ? left : REDUCE_RUN);
            loops->OF(fold)(REDUCE_SUM, sums);
            results[run] = sums[0];
        }
        count = runs;
    }
    return results[0];
}

/* The first round over a row: joins every block by what `what` says, and keeps what the exponentials were where there is room.
 */
static T OF(sum_row)(const row_work *w, const void *row, int32_t what, T center, T *kept, T *results)
{
    const int64_t n = w->job->n;
    T sums[REDUCE_LANES];
    row_space space;
    T aside[LOOP_BLOCK];
    results[0] = 0;
    for (int64_t i = 0; i < n; i += LOOP_BLOCK) {
        const int64_t count = n - i < LOOP_BLOCK ? n - i : LOOP_BLOCK;
        const T *x = OF(row_block)(w, row, i, count, &space);
        if (i % REDUCE_RUN == 0)
            memset(sums, 0, sizeof sums);
        if (what == SUM_PLAIN)
            w->rows->OF(join)(REDUCE_SUM, sums, x, count);
        else if (what == SUM_SQUARES)
            w->rows->OF(squares)(sums, x, count, center);
        else
            w->rows->OF(exponentials)(kept ? kept + i : aside, sums, x, count, center);
        if ((i + count) % REDUCE_RUN == 0 || i + count == n) {
            w->rows->OF(fold)(REDUCE_SUM, sums);
            results[i / REDUCE_RUN] = sums[0];
        }
    }
    return OF(total)(w->rows, results, (n + REDUCE_RUN - 1) / REDUCE_RUN);
}

static T OF(largest)(const row_work *w, const void *row)
{
    T most[REDUCE_LANES];
    row_space space;
    for (int32_t j = 0; j < REDUCE_LANES; j++)
        most[j] = OF(reduce_neutral)(REDUCE_MAX);
    for (int64_t i = 0; i < w->job->n; i += LOOP_BLOCK) {
        const int64_t count = w->job->n - i < LOOP_BLOCK ? w->job->n - i : LOOP_BLOCK;
        w->rows->OF(join)(REDUCE_MAX, most, OF(row_block)(w, row, i, count, &space), count);
    }
    w->rows->OF(fold)(REDUCE_MAX, most);
    return most[0];
}

/* `kept` has room for a row of exponentials, or is NULL: then they are computed once more. */
static void OF(softmax_row)(const row_work *w, const void *row, void *out, T *results, T *kept)
{
    const int64_t n = w->job->n;
    const bool own = type_size(w->job->type) == (int32_t)sizeof(T);
    T sums[REDUCE_LANES];
    row_space space;
    T aside[LOOP_BLOCK];
    const T most = OF(largest)(w, row);
    kept = own ? out : kept;
    const T by = (T)1 / OF(sum_row)(w, row, SUM_EXPONENTIALS, most, kept, results);
    for (int64_t i = 0; i < n; i += LOOP_BLOCK) {
        const int64_t count = n - i < LOOP_BLOCK ? n - i : LOOP_BLOCK;
        T *scaled = own ? (T *)out + i : aside;
        if (!kept)
            w->rows->OF(exponentials)(aside, sums, OF(row_block)(w, row, i, count, &space), count, most);
        w->rows->OF(scale)(scaled, kept ? kept + i : aside, count, by);
        if (!own)
            w->loops->OF(narrow)(w->job->type, (char *)out + i * type_size(w->job->type), aside, count);
    }
}

static void OF(norm_row)(const row_work *w, const void *row, void *out, T *results)
{
    const rows_job *job = w->job;
    const T n = (T)job->n;
    const bool own = type_size(job->type) == (int32_t)sizeof(T);
    row_space spaces[3];
    T aside[LOOP_BLOCK];
    const T center = job->op == ROW_LAYER_NORM ? OF(sum_row)(w, row, SUM_PLAIN, 0, NULL, results) / n : (T)0;
    const T spread = OF(sum_row)(w, row, SUM_SQUARES, center, NULL, results) / n;
    const T by = OF(canon_rsqrt)(spread + (T)job->eps);
    for (int64_t i = 0; i < job->n; i += LOOP_BLOCK) {
        const int64_t count = job->n - i < LOOP_BLOCK ? job->n - i : LOOP_BLOCK;
        const T *x = OF(row_block)(w, row, i, count, &spaces[0]);
        const T *weight = job->weight ? OF(row_block)(w, job->weight, i, count, &spaces[1]) : NULL;
        const T *bias = job->bias ? OF(row_block)(w, job->bias, i, count, &spaces[2]) : NULL;
        w->rows->OF(normalize)(own ? (T *)out + i : aside, x, count, center, by, weight, bias);
        if (!own)
            w->loops->OF(narrow)(job->type, (char *)out + i * type_size(job->type), aside, count);
    }
}

/* Rotary embedding of one row, in blocks of pairs. */
static void OF(rope_row)(const rope_work *w, const char *row, const char *cosine, const char *sine, char *out)
{
    const rope_job *job = w->job;
    const int64_t size = type_size(job->type);
    const int64_t step = job->interleaved ? 2 : 1;
    const int64_t apart = job->interleaved ? 1 : job->half;
    T a[ROPE_BLOCK], b[ROPE_BLOCK], c[ROPE_BLOCK], s[ROPE_BLOCK];
    for (int64_t i = 0; i < job->half; i += ROPE_BLOCK) {
        const int64_t count = job->half - i < ROPE_BLOCK ? job->half - i : ROPE_BLOCK;
        OF(pick)(w, a, row + i * step * size, step, count);
        OF(pick)(w, b, row + (i * step + apart) * size, step, count);
        OF(pick)(w, c, cosine + i * job->cosine_step * size, job->cosine_step, count);
        OF(pick)(w, s, sine + i * job->sine_step * size, job->sine_step, count);
        w->rows->OF(turn)(a, b, a, b, c, s, count);
        OF(place)(w, out + i * step * size, step, a, count);
        OF(place)(w, out + (i * step + apart) * size, step, b, count);
    }
}
