/* The rows of rows.c for one kind. rows.c includes this once for each: T is the kind's C type, and OF(name) appends the kind to
 * a name. */

/* Does the rounds after the first on the results of the chunks, which it overwrites. */
static T OF(total)(const row_loops *loops, T *results, int64_t count)
{
    while (count > 1) {
        const int64_t chunks = divide_up_i64(count, REDUCE_CHUNK);
        for (int64_t chunk = 0; chunk < chunks; chunk++) {
            T sums[REDUCE_LANES] = {0};
            const int64_t left = count - chunk * REDUCE_CHUNK;
            loops->OF(join)(REDUCE_SUM, sums, results + chunk * REDUCE_CHUNK, min_i64(left, REDUCE_CHUNK));
            loops->OF(fold)(REDUCE_SUM, sums);
            results[chunk] = sums[0];
        }
        count = chunks;
    }
    return results[0];
}

/* Does the first round over a row: joins every block as `what` says. Exponentials are stored in `kept` unless that is NULL. */
static T OF(sum_row)(const row_work *w, const void *row, int32_t what, T center, T *kept, T *results)
{
    const int64_t n = w->job->n;
    T sums[REDUCE_LANES];
    row_space space;
    T aside[LOOP_BLOCK];
    results[0] = 0;
    for (int64_t i = 0; i < n; i += LOOP_BLOCK) {
        const int64_t count = min_i64(n - i, LOOP_BLOCK);
        const T *x = OF(row_block)(w, row, i, count, &space);
        if (i % REDUCE_CHUNK == 0)
            memset(sums, 0, sizeof sums);
        if (what == SUM_PLAIN)
            w->rows->OF(join)(REDUCE_SUM, sums, x, count);
        else if (what == SUM_SQUARES)
            w->rows->OF(squares)(sums, x, count, center);
        else
            w->rows->OF(exponentials)(kept ? kept + i : aside, sums, x, count, center);
        if ((i + count) % REDUCE_CHUNK == 0 || i + count == n) {
            w->rows->OF(fold)(REDUCE_SUM, sums);
            results[i / REDUCE_CHUNK] = sums[0];
        }
    }
    return OF(total)(w->rows, results, divide_up_i64(n, REDUCE_CHUNK));
}

static T OF(largest)(const row_work *w, const void *row)
{
    T highest[REDUCE_LANES];
    row_space space;
    for (int32_t j = 0; j < REDUCE_LANES; j++)
        highest[j] = OF(reduce_neutral)(REDUCE_MAX);
    for (int64_t i = 0; i < w->job->n; i += LOOP_BLOCK) {
        const int64_t count = min_i64(w->job->n - i, LOOP_BLOCK);
        w->rows->OF(join)(REDUCE_MAX, highest, OF(row_block)(w, row, i, count, &space), count);
    }
    w->rows->OF(fold)(REDUCE_MAX, highest);
    return highest[0];
}

/* `kept` has room for a row of exponentials; if it is NULL, they are computed again. */
static void OF(softmax_row)(const row_work *w, const void *row, void *out, T *results, T *kept)
{
    const int64_t n = w->job->n;
    const bool own = type_size(w->job->type) == (int32_t)sizeof(T);
    T sums[REDUCE_LANES];
    row_space space;
    T aside[LOOP_BLOCK];
    const T highest = OF(largest)(w, row);
    kept = own ? out : kept;
    const T by = (T)1 / OF(sum_row)(w, row, SUM_EXPONENTIALS, highest, kept, results);
    for (int64_t i = 0; i < n; i += LOOP_BLOCK) {
        const int64_t count = min_i64(n - i, LOOP_BLOCK);
        T *scaled = own ? (T *)out + i : aside;
        if (!kept)
            w->rows->OF(exponentials)(aside, sums, OF(row_block)(w, row, i, count, &space), count, highest);
        w->rows->OF(scale)(scaled, kept ? kept + i : aside, count, by);
        if (!own)
            w->loops->OF(narrow)(w->job->type, (char *)out + i * type_size(w->job->type), aside, count);
    }
}

/* Returns row i of some columns; prefetches a later row, which hardware prefetchers would not find. */
static const T *OF(columns_row)(const columns_work *w, const char *x, int64_t i, int64_t columns, row_space *space)
{
    const int64_t size = type_size(w->job->type), row_bytes = w->job->inner * size;
    for (int64_t at = 0; at < columns * size && i + ROWS_AHEAD < w->job->n; at += 64)
        __builtin_prefetch(x + (i + ROWS_AHEAD) * row_bytes + at);
    return OF(widened)(w, x + i * row_bytes, columns, space);
}

/* Computes the inverse sums of the exponentials of some columns, in the canonical order. */
static void OF(columns_sums)(const columns_work *w, const char *x, int64_t columns, const T *highest, T *kept, T *by)
{
    T sums[REDUCE_LANES * COLUMNS_MAX], totals[REDUCE_LANES * COLUMNS_MAX] = {0}, aside[COLUMNS_MAX];
    row_space space;
    const int64_t n = w->job->n;
    for (int64_t first = 0; first < n; first += REDUCE_CHUNK) {
        memset(sums, 0, sizeof sums);
        for (int64_t i = first; i < n && i < first + REDUCE_CHUNK; i++) {
            T *to = kept ? kept + i * columns : aside;
            const T *from = kept ? to : OF(columns_row)(w, x, i, columns, &space);
            w->rows->OF(exponentials_each)(to, sums + i % REDUCE_LANES * columns, from, columns, highest);
        }
        for (int64_t s = REDUCE_LANES / 2; s > 0; s /= 2)
            w->rows->OF(each)(REDUCE_SUM, sums, sums + s * columns, s * columns);
        w->rows->OF(each)(REDUCE_SUM, totals + first / REDUCE_CHUNK % REDUCE_LANES * columns, sums, columns);
    }
    for (int64_t s = REDUCE_LANES / 2; s > 0 && n > REDUCE_CHUNK; s /= 2)
        w->rows->OF(each)(REDUCE_SUM, totals, totals + s * columns, s * columns);
    for (int64_t c = 0; c < columns; c++)
        by[c] = (T)1 / totals[c];
}

/* `kept` has room for the columns, row by row. If it is NULL, elements are read three times, and their exponentials computed
 * twice. */
static void OF(softmax_columns)(const columns_work *w, const char *x, char *out, int64_t columns, T *kept)
{
    const int64_t n = w->job->n, row_bytes = w->job->inner * type_size(w->job->type);
    const bool own = type_size(w->job->type) == (int32_t)sizeof(T);
    T highest[COLUMNS_MAX], by[COLUMNS_MAX], aside[COLUMNS_MAX], unused[COLUMNS_MAX] = {0};
    row_space space;
    for (int64_t c = 0; c < columns; c++)
        highest[c] = OF(reduce_neutral)(REDUCE_MAX);
    for (int64_t i = 0; i < n; i++) {
        const T *row = OF(columns_row)(w, x, i, columns, &space);
        w->rows->OF(each)(REDUCE_MAX, highest, row, columns);
        if (kept)
            memcpy(kept + i * columns, row, (size_t)columns * sizeof *row);
    }
    OF(columns_sums)(w, x, columns, highest, kept, by);
    for (int64_t i = 0; i < n; i++) {
        T *to = own ? (T *)(void *)(out + i * row_bytes) : aside;
        if (!kept)
            w->rows->OF(exponentials_each)(aside, unused, OF(columns_row)(w, x, i, columns, &space), columns, highest);
        w->rows->OF(scale_each)(to, kept ? kept + i * columns : aside, columns, by);
        if (!own)
            w->loops->OF(narrow)(w->job->type, out + i * row_bytes, aside, columns);
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
        const int64_t count = min_i64(job->n - i, LOOP_BLOCK);
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
        const int64_t count = min_i64(job->half - i, ROPE_BLOCK);
        OF(pick)(w, a, row + i * step * size, step, count);
        OF(pick)(w, b, row + (i * step + apart) * size, step, count);
        OF(pick)(w, c, cosine + i * job->cosine_step * size, job->cosine_step, count);
        OF(pick)(w, s, sine + i * job->sine_step * size, job->sine_step, count);
        w->rows->OF(rope)(a, b, a, b, c, s, count);
        OF(unpick)(w, out + i * step * size, step, a, count);
        OF(unpick)(w, out + (i * step + apart) * size, step, b, count);
    }
}
