/* The rounds of reduce.c for one kind. reduce.c includes this once for each: T is the kind's C type, and OF(name) appends the
 * kind to a name.
 */

/* Writes the results of a round, from number `at` on, to the next round or to the job. For a mean, `values` are divided in
 * place first. */
static void OF(put_all)(const reduce_round *r, int64_t at, T *values, int64_t count)
{
    if (r->partial) {
        memcpy((T *)r->partial + at, values, (size_t)count * sizeof *values);
        return;
    }
    for (int64_t i = 0; i < count && r->job->op == REDUCE_MEAN; i++)
        values[i] /= (T)r->job->n;
    r->loops->OF(narrow)(r->job->out_type, (char *)r->job->out + at * type_size(r->job->out_type), values, count);
}

/* Reduces chunk number `chunk` of result `out`. */
static void OF(reduce_row_chunk)(const reduce_round *r, int64_t out, int64_t chunk)
{
    T sums[REDUCE_LANES];
    block space;
    const int64_t first = chunk * REDUCE_CHUNK;
    const int64_t end = min_i64(first + REDUCE_CHUNK, r->n);
    for (int32_t j = 0; j < REDUCE_LANES; j++)
        sums[j] = OF(reduce_neutral)(r->op);
    const char *dense = dense_at(r, out, first);
    const bool joined = dense && OF(join_dense)(r, sums, dense, end - first);
    for (int64_t i = first; i < end && !joined; i += LOOP_BLOCK) {
        const int64_t count = min_i64(end - i, LOOP_BLOCK);
        r->rows->OF(join)(r->op, sums, elements_of(r, out, i, count, &space), count);
    }
    r->rows->OF(fold)(r->op, sums);
    OF(put_all)(r, out * r->chunks + chunk, sums, 1);
}

/* The same for several results whose elements are adjacent, row by row; `sums` has 64 accumulators for each. */
static void OF(reduce_columns_chunk)(const reduce_round *r, int64_t out, int64_t columns, int64_t chunk, T *sums)
{
    T widened_row[COLUMNS_BYTES / sizeof(T)];
    const int32_t size = type_size(r->type);
    const int64_t end = min_i64((chunk + 1) * REDUCE_CHUNK, r->n);
    const char *x = r->x + reduce_place_64(&r->kept, out) * size;
    const int64_t lanes = min_i64(end - chunk * REDUCE_CHUNK, REDUCE_LANES);
    for (int64_t i = 0; i < lanes * columns; i++)
        sums[i] = OF(reduce_neutral)(r->op);
    if (r->reduced.rank == 1 && size == (int32_t)sizeof(T)) {
        const int64_t stride = r->reduced.strides[0], first = chunk * REDUCE_CHUNK;
        r->rows->OF(each_row)(r->op, sums, (const T *)(const void *)x + first * stride, stride, end - first, columns);
    } else if (!OF(columns_direct)(r, sums, x, (row_span){chunk * REDUCE_CHUNK, end}, columns)) {
        for (int64_t i = chunk * REDUCE_CHUNK; i < end; i++) {
            const void *row = x + reduce_place_64(&r->reduced, i) * size;
            r->rows->OF(each)(r->op, sums + i % REDUCE_LANES * columns, OF(widened)(r, widened_row, row, columns), columns);
        }
    }
    /* Lanes that no element was joined to are neutral, so joining them changes nothing. */
    for (int64_t s = REDUCE_LANES / 2; s > 0; s /= 2)
        if (lanes > s)
            r->rows->OF(each)(r->op, sums, sums + s * columns, (lanes < 2 * s ? lanes - s : s) * columns);
    if (r->chunks == 1)
        OF(put_all)(r, out, sums, columns);
    else
        for (int64_t c = 0; c < columns; c++)
            OF(put_all)(r, (out + c) * r->chunks + chunk, sums + c, 1);
}

/* Finds the first best element of a piece of result `out`: finds the best value of each block and, if it is a new best, its
 * place. */
static void OF(best_of)(const reduce_round *r, int64_t out, int64_t first, int64_t end, arg_best *best)
{
    const int32_t extreme = r->job->op == REDUCE_ARGMAX ? REDUCE_MAX : REDUCE_MIN;
    T best_value = 0;
    block space;
    for (int64_t i = first; i < end; i += LOOP_BLOCK) {
        T sums[REDUCE_LANES];
        const int64_t count = min_i64(end - i, LOOP_BLOCK);
        const T *x = elements_of(r, out, i, count, &space);
        for (int32_t j = 0; j < REDUCE_LANES; j++)
            sums[j] = OF(reduce_neutral)(extreme);
        r->rows->OF(join)(extreme, sums, x, count);
        r->rows->OF(fold)(extreme, sums);
        const T block_best = sums[0];
        if (i > first && !OF(reduce_better)(r->job->op, best_value, block_best))
            continue;
        best_value = block_best;
        for (int64_t j = 0; j < count; j++)
            if (!OF(reduce_better)(r->job->op, x[j], block_best)) {
                best->index = i + j;
                break;
            }
    }
    memcpy(&best->value, &best_value, sizeof best_value);
}

/* Returns the first best element from the pieces' best ones, in order. */
static uint32_t OF(best_of_bests)(int32_t op, const arg_best *bests, int64_t count)
{
    T best_value;
    int64_t index = bests[0].index;
    memcpy(&best_value, &bests[0].value, sizeof best_value);
    for (int64_t i = 1; i < count; i++) {
        T next;
        memcpy(&next, &bests[i].value, sizeof next);
        if (OF(reduce_better)(op, best_value, next)) {
            best_value = next;
            index = bests[i].index;
        }
    }
    return (uint32_t)index;
}
