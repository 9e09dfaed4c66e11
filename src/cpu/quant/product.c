/* Products of quantized weights with activations on the CPU. Which way when:
 *
 *   dot    f32, f16 and bf16 weights, and activations that stay floats: rows are decoded once for all columns. Then canonical
 *          dot products are computed for several rows and columns at once, or one by one if columns have experts or do not
 *          consist of whole chunks
 *   gemv   up to quant_set.gemv_columns_max columns per expert on average, or rows so long that a panel would not stay in a
 *          cache (512 KiB): each row of weights is read once, group by group, and memory is the limit (gemv.h)
 *   tiles  more columns: 16 rows of weights are unpacked into a panel and multiplied with tiles of 16 columns (panel.h,
 *          tiles.h)
 *
 * gemv and tiles give the bits of arithmetic/blocks/dot.h. Activations are encoded once, as q8_1 or q8_k, and put into the
 * order that gemv or tiles need. Then all cores process rows of weights, 64 at a time. Columns of the same expert are processed
 * together.
 */
#include "arithmetic/blocks/dot.h"
#include "arithmetic/canon.h"
#include "base/integers.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "cpu/quant/layout.h"
#include "cpu/quant/quant.h"

enum {
    ROWS_TOGETHER = 64,          /* rows that a core processes at a time: as panels, they stay in the second-level cache */
    TILES_TOGETHER = 8,          /* tiles that are multiplied with all these panels; they stay in the cache, too */
    HERE_PRODUCTS = 1 << 16,     /* takes less time than waking the workers */
    CODED_HERE = 1 << 16,        /* the same for encoding activations */
    PANEL_BYTES_MAX = 512 << 10, /* blocks of a row: longer rows use gemv */
    DECODED_BYTES = 128 << 10,   /* rows decoded at once, for the second-level cache */
    SUMS_COLUMNS = 48 /* columns that are multiplied with them at once: a multiple of the three that sums() works best with */
};

/* Used instead of a first row; larger than every row. The results are zeros, or NaN. */
#define SKIPPED   (INT64_MAX - 1)
#define NO_EXPERT INT64_MAX

/* Columns first.. of `places` that use the same rows of the weights. */
typedef struct expert_columns {
    int64_t first, count, first_row;
} expert_columns;

typedef struct product_work {
    const quant_product_job *job;
    const instruction_set *isa;
    const quant_set *set;
    const quant_product *product; /* NULL for plain types, and if weights are decoded */
    const char *weights;
    const float *x;
    float *y;
    int64_t weights_stride, blocks;
    int64_t row_pieces;
    bool gemv;

    const int64_t *first_rows; /* of each column, or NO_EXPERT, SKIPPED; NULL: 0 */
    int64_t columns;           /* columns with an expert */
    int64_t *places;           /* columns in the order of their experts, those without an expert last */
    expert_columns *experts;
    int64_t expert_count;

    char *coded, *prepared;                /* activations */
    int64_t coded_stride, prepared_stride; /* from column to column; for tiles, from tile to tile */
    int64_t *expert_tiles;                 /* number of the first tile of each expert */
    char *scratch;                         /* per worker: a decoded row for plain types, panels and sums for others */
    int64_t scratch_bytes, panel_bytes;
    int64_t decoded_rows; /* rows of plain types decoded at once; 0: one at a time, each with its column */
    atomic_int_least64_t refused;
} product_work;

static int64_t row_bytes(int32_t type, int64_t cols)
{
    return cols / block_length(type) * block_bytes(type);
}

/* ---- columns in experts -------------------------------------------------------------------------------------------------- */

/* Orders columns by the rows they use, then by their numbers. */
static bool before(const product_work *w, int64_t a, int64_t b)
{
    const int64_t *rows = w->first_rows;
    return rows[a] < rows[b] || (rows[a] == rows[b] && a < b);
}

static void sink(const product_work *w, int64_t at, int64_t count)
{
    int64_t *heap = w->places;
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(w, heap[child], heap[child + 1]))
            child++;
        if (!before(w, heap[at], heap[child]))
            return;
        const int64_t kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
    }
}

/* Sorts the places (heap sort: in n log n steps, in place) and finds the experts. */
static void find_experts(product_work *w)
{
    const int64_t count = w->job->columns, *rows = w->first_rows;
    for (int64_t c = 0; c < count; c++)
        w->places[c] = c;
    for (int64_t at = rows ? count / 2 : 0; at-- > 0;)
        sink(w, at, count);
    for (int64_t end = rows ? count - 1 : 0; end > 0; end--) {
        const int64_t last = w->places[end];
        w->places[end] = w->places[0];
        w->places[0] = last;
        sink(w, 0, end);
    }
    for (w->columns = count; rows && w->columns > 0 && rows[w->places[w->columns - 1]] >= SKIPPED;)
        w->columns--;
    for (int64_t c = 0; c < w->columns; c++) {
        const int64_t row = rows ? rows[w->places[c]] : 0;
        if (c == 0 || row != w->experts[w->expert_count - 1].first_row)
            w->experts[w->expert_count++] = (expert_columns){c, 0, row};
        w->experts[w->expert_count - 1].count++;
    }
}

/* Finds first rows from the ids of the job. */
static void find_first_rows(const quant_product_job *job, int64_t *first_rows)
{
    for (int64_t c = 0; c < job->columns; c++) {
        int64_t id = 0, largest = INT64_MAX;
        if (job->id_bytes == 8) {
            id = ((const int64_t *)job->ids)[c];
        } else {
            id = job->id_bytes == 4 ? (int64_t)((const uint32_t *)job->ids)[c] : ((const uint8_t *)job->ids)[c];
            largest = job->id_bytes == 4 ? UINT32_MAX : UINT8_MAX;
        }
        first_rows[c] = id == largest ? SKIPPED : id >= 0 && id < job->experts ? id * job->rows : NO_EXPERT;
    }
}

/* Writes the results of columns without an expert. */
static void put_none(const product_work *w)
{
    for (int64_t i = w->columns; i < w->job->columns; i++) {
        const int64_t c = w->places[i], rows = w->job->rows;
        for (int64_t r = 0; r < rows; r++)
            w->y[c * rows + r] = w->first_rows[c] == SKIPPED ? 0.0f : __builtin_nanf("");
    }
}

/* ---- activations --------------------------------------------------------------------------------------------------------- */

/* Encodes column `item` of the places. */
static void code_column(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    product_work *w = context;
    const int32_t type = dot_activations(w->job->type);
    const int64_t blocks = w->job->cols / block_length(type), column = w->places[item];
    char *coded = w->coded + item * w->coded_stride;
    int64_t failed = blocks;
    if (w->job->coded) /* already encoded, as in a matrix */
        w->set->coders[type].restore((const char *)w->x + column * w->coded_stride, coded, blocks);
    else
        failed = w->set->coders[type].encode(w->x + column * w->job->cols, coded, blocks);
    int64_t first = atomic_load(&w->refused);
    while (failed < blocks && column * blocks + failed < first &&
           !atomic_compare_exchange_weak(&w->refused, &first, column * blocks + failed))
        continue;
    if (w->gemv)
        w->product->gemv_prepare(coded, blocks, w->prepared + item * w->prepared_stride);
}

static void prepare_tiles(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const product_work *w = context;
    int64_t g = 0; /* the expert that tile `item` belongs to */
    for (int64_t high = w->expert_count - 1; g < high;) {
        const int64_t middle = (g + high + 1) / 2;
        if (w->expert_tiles[middle] <= item)
            g = middle;
        else
            high = middle - 1;
    }
    const int64_t first = (item - w->expert_tiles[g]) * TILE_SIDE;
    w->product->tile_prepare(w->coded + (w->experts[g].first + first) * w->coded_stride, w->coded_stride,
                             min_i64(w->experts[g].count - first, TILE_SIDE), w->blocks,
                             w->prepared + item * w->prepared_stride);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static void multiply_gemv(const product_work *w, const expert_columns *expert, int64_t row, int64_t rows)
{
    quant_gemv piece = {.weights = w->weights + (expert->first_row + row) * w->weights_stride,
                        .weights_stride = w->weights_stride,
                        .rows = rows,
                        .blocks = w->blocks,
                        .activations_stride = w->prepared_stride,
                        .out = w->y + row,
                        .out_stride = w->job->rows};
    for (int64_t c = 0; c < expert->count; c += GEMV_COLUMNS) {
        piece.places = w->places + expert->first + c;
        piece.activations = w->prepared + (expert->first + c) * w->prepared_stride;
        piece.columns = min_i64(expert->count - c, GEMV_COLUMNS);
        w->product->gemv(&piece);
    }
}

static void fill_panels(const product_work *w, int64_t first_row, int64_t rows, char *panels)
{
    for (int64_t r = 0; r < rows; r += TILE_SIDE, panels += w->panel_bytes) {
        const char *sources[TILE_SIDE];
        for (int64_t i = 0; i < TILE_SIDE; i++) /* past the last row, the last one is computed again and not written */
            sources[i] = w->weights + (first_row + min_i64(r + i, rows - 1)) * w->weights_stride;
        w->product->panel(sources, w->blocks, panels);
    }
}

static void multiply_tiles(const product_work *w, int64_t expert, int64_t row, int64_t rows, char *scratch)
{
    const expert_columns *g = &w->experts[expert];
    const char *tiles = w->prepared + w->expert_tiles[expert] * w->prepared_stride;
    enum { COLUMNS = TILES_TOGETHER * TILE_SIDE };
    fill_panels(w, g->first_row + row, rows, scratch);
    quant_tiles piece = {.blocks = w->blocks,
                         .sums = (float *)(void *)(scratch + (ROWS_TOGETHER / TILE_SIDE) * w->panel_bytes),
                         .out_stride = w->job->rows};
    for (int64_t c = 0; c < g->count; c += COLUMNS) {
        piece.tiles = tiles + c / TILE_SIDE * w->prepared_stride;
        piece.columns = min_i64(g->count - c, COLUMNS);
        piece.places = w->places + g->first + c;
        for (int64_t r = 0; r < rows; r += TILE_SIDE) {
            piece.panel = scratch + r / TILE_SIDE * w->panel_bytes;
            piece.rows = min_i64(rows - r, TILE_SIDE);
            piece.out = w->y + row + r;
            w->product->tiles(&piece);
        }
    }
}

static void multiply_plain(const product_work *w, int64_t row, float *decoded)
{
    const quant_product_job *job = w->job;
    int64_t decoded_row = -1;
    for (int64_t i = 0; i < w->columns; i++) {
        const int64_t c = w->places[i], source = (w->first_rows ? w->first_rows[c] : 0) + row;
        if (source != decoded_row)
            w->set->coders[job->type].decode(w->weights + source * w->weights_stride, decoded, w->blocks);
        decoded_row = source;
        w->y[c * job->rows + row] = w->isa->dot(decoded, w->x + c * job->cols, job->cols);
    }
}

/* Multiplies rows with all columns, decoded_rows at a time. */
static void multiply_decoded(const product_work *w, int64_t row, int64_t rows, float *decoded)
{
    const quant_product_job *job = w->job;
    float *sums = decoded + w->decoded_rows * job->cols;
    for (int64_t r = row; r < row + rows; r += w->decoded_rows) {
        const int64_t count = min_i64(row + rows - r, w->decoded_rows);
        for (int64_t i = 0; i < count; i++)
            w->set->coders[job->type].decode(w->weights + (r + i) * w->weights_stride, decoded + i * job->cols, w->blocks);
        for (int64_t c = 0; c < w->columns; c += SUMS_COLUMNS) {
            const int64_t columns = min_i64(w->columns - c, SUMS_COLUMNS);
            w->isa->sums(&(sums_job){.metric = CANON_DOT,
                                     .queries = w->x + c * job->cols,
                                     .rows = decoded,
                                     .query_count = (int32_t)columns,
                                     .row_count = (int32_t)count,
                                     .padded = (int32_t)job->cols,
                                     .sums = sums});
            for (int64_t k = 0; k < columns; k++)
                memcpy(w->y + (c + k) * job->rows + r, sums + k * SUMS_ROWS_MAX, (size_t)count * sizeof *sums);
        }
    }
}

/* Multiplies some rows of one expert; for plain types, of all. */
static void multiply_piece(void *context, int64_t item, int32_t worker)
{
    const product_work *w = context;
    const int64_t expert = item / w->row_pieces, row = item % w->row_pieces * ROWS_TOGETHER;
    const int64_t rows = min_i64(w->job->rows - row, ROWS_TOGETHER);
    char *scratch = w->scratch + worker * w->scratch_bytes;
    if (!w->product && w->decoded_rows > 0) {
        multiply_decoded(w, row, rows, (float *)(void *)scratch);
        return;
    }
    if (!w->product) {
        for (int64_t r = row; r < row + rows; r++)
            multiply_plain(w, r, (float *)(void *)scratch);
        return;
    }
    if (w->gemv) {
        multiply_gemv(w, &w->experts[expert], row, rows);
        return;
    }
    if (w->set->tiles_begin)
        w->set->tiles_begin(w->job->type);
    multiply_tiles(w, expert, row, rows, scratch);
    if (w->set->tiles_end)
        w->set->tiles_end();
}

/* ---- a product ----------------------------------------------------------------------------------------------------------- */

static void run_items(cpu_device *cpu, bool here, int64_t items, pool_work work, product_work *w)
{
    if (here || items == 1)
        pool_run_here(items, work, w);
    else
        pool_run(cpu->pool, items, work, NULL, w);
}

/* See the top of this file. */
static bool is_for_gemv(const product_work *w)
{
    const int64_t columns_max =
        block_elements(w->job->type) == BLOCK32_ELEMENTS ? w->set->gemv_columns_max : w->set->gemv_columns_max_kblock;
    return w->columns / w->expert_count <= columns_max || w->blocks * w->product->panel_bytes > PANEL_BYTES_MAX;
}

/* Computes how much memory the activations and each worker need. Counts the tiles of experts. */
static int64_t plan(product_work *w)
{
    const int64_t cols = w->job->cols;
    if (!w->product) {
        const int64_t row = cols * (int64_t)sizeof(float);
        if (!w->first_rows && w->columns > 1 && cols % CANON_LANES == 0 && cols <= INT32_MAX)
            w->decoded_rows = max_i64(1, min_i64(min_i64(SUMS_ROWS_MAX, w->job->rows), DECODED_BYTES / row));
        w->scratch_bytes = round_up_i64(max_i64(w->decoded_rows, 1) * row, CACHE_LINE_BYTES);
        if (w->decoded_rows > 0)
            w->scratch_bytes += (int64_t)SUMS_COLUMNS * SUMS_ROWS_MAX * (int64_t)sizeof(float);
        return 0;
    }
    w->coded_stride = row_bytes(dot_activations(w->job->type), cols);
    w->gemv = is_for_gemv(w);
    if (w->gemv) {
        w->prepared_stride = divide_up_i64(w->blocks, BLOCK_GROUP) * w->product->gemv_bytes;
        return w->columns;
    }
    int64_t tiles = 0;
    for (int64_t g = 0; g < w->expert_count; g++) {
        w->expert_tiles[g] = tiles;
        tiles += divide_up_i64(w->experts[g].count, TILE_SIDE);
    }
    w->prepared_stride = w->blocks * w->product->tile_bytes;
    w->panel_bytes = w->blocks * w->product->panel_bytes;
    w->scratch_bytes = ROWS_TOGETHER / TILE_SIDE * w->panel_bytes + TILES_TOGETHER * TILE_SUMS * (int64_t)sizeof(float);
    return tiles;
}

static ww_status take(int64_t bytes, const char *what, char **out)
{
    *out = memory_alloc_aligned((size_t)bytes);
    return *out ? WW_OK : memory_failed(what, (size_t)bytes);
}

static void multiply_all(cpu_device *cpu, product_work *w, int64_t prepared)
{
    const quant_product_job *job = w->job;
    const bool here = job->rows * job->cols <= HERE_PRODUCTS / w->columns;
    if (w->product)
        run_items(cpu, here || job->cols <= CODED_HERE / w->columns, w->columns, code_column, w);
    if (atomic_load(&w->refused) != INT64_MAX) {
        *job->refused = atomic_load(&w->refused);
        return;
    }
    if (w->product && !w->gemv)
        run_items(cpu, here, prepared, prepare_tiles, w);
    run_items(cpu, here, (w->product ? w->expert_count : 1) * w->row_pieces, multiply_piece, w);
}

ww_status quant_product_with(cpu_device *cpu, const quant_set *set, const quant_product_job *job)
{
    product_work w = {.job = job,
                      .isa = cpu->isa,
                      .set = set,
                      .product = dot_activations(job->type) < 0 || job->decoded ? NULL : &set->products[job->type],
                      .weights = (const char *)job->weights->data + job->weights_offset,
                      .x = (const float *)(const void *)((const char *)job->x->data + job->x_offset),
                      .y = job->y->data,
                      .weights_stride = row_bytes(job->type, job->cols),
                      .blocks = job->cols / block_length(job->type),
                      .row_pieces = divide_up_i64(job->rows, ROWS_TOGETHER)};
    const int64_t list_bytes = (int64_t)sizeof(int64_t), expert_bytes = (int64_t)sizeof(expert_columns);
    char *lists = NULL;
    atomic_init(&w.refused, INT64_MAX);
    *job->refused = -1;
    ww_status status = take(job->columns * (3 * list_bytes + expert_bytes), "columns of a product", &lists);
    if (status != WW_OK)
        return status;
    w.experts = (expert_columns *)(void *)lists;
    w.places = (int64_t *)(void *)(w.experts + job->columns);
    w.expert_tiles = w.places + job->columns;
    if (job->ids) {
        find_first_rows(job, w.expert_tiles + job->columns);
        w.first_rows = w.expert_tiles + job->columns;
    }
    find_experts(&w);
    const int64_t prepared = w.columns > 0 ? plan(&w) : 0;
    status = take(pool_threads(cpu->pool) * w.scratch_bytes, "rows of a product", &w.scratch);
    if (status == WW_OK)
        status = take(w.columns * w.coded_stride, "activations of a product", &w.coded);
    if (status == WW_OK)
        status = take(prepared * w.prepared_stride, "activations of a product", &w.prepared);
    if (status == WW_OK && w.columns > 0)
        multiply_all(cpu, &w, prepared);
    if (status == WW_OK)
        put_none(&w);
    memory_free(w.prepared);
    memory_free(w.coded);
    memory_free(w.scratch);
    memory_free(lists);
    return status;
}

ww_status cpu_quant_product(ww_device *device, const quant_product_job *job)
{
    cpu_device *cpu = (cpu_device *)device;
    return quant_product_with(cpu, quant_set_choose(cpu->isa), job);
}
