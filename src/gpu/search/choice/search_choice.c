/* Chooses a way to search: first excludes what is impossible, then asks the model (search_cost.h). If the model finds both ways
 * close, the times of earlier searches of the same shape on this device decide (search_trials.h). */
#include "gpu/search/choice/search_choice.h"

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/cancel.h"
#include "base/integers.h"
#include "gpu/search/choice/search_cost.h"
#include "gpu/search/screen_plan.h"
#include "gpu/search/search.h"
#include "gpu/search/segment_table.h"
#include "kernels/screen/screen_args.h"

enum { MASK_WORDS = 512 }; /* words of a mask that are sampled to estimate how many rows it admits */

static const double CLOSE = 3.0; /* if the predicted times differ by a smaller factor, both ways are tried */

static bool has_codes(const search_job *job)
{
    for (int64_t i = 0; i < job->segment_count; i++)
        if (job->segments[i].count > 0 && job->segments[i].scales.data == NULL)
            return false;
    return true;
}

/* Estimates the share of words, and of rows, that the mask admits, from evenly spaced words. */
static void look_at_mask(const search_job *job, search_amount *amount)
{
    const int64_t words = min_i64((job->mask_rows + SEARCH_WORD_ROWS - 1) / SEARCH_WORD_ROWS, amount->words);
    const int64_t looks = min_i64(words, MASK_WORDS);
    int64_t some = 0, rows = 0;
    for (int64_t i = 0; i < looks; i++) {
        const uint64_t word = job->mask[i * words / looks];
        some += word != 0;
        rows += __builtin_popcountll(word);
    }
    const double covered = looks > 0 ? (double)words / (double)amount->words / (double)looks : 0.0;
    amount->words_admitted = (double)some * covered;
    amount->rows_admitted = (double)rows / SEARCH_WORD_ROWS * covered;
}

/* log2 in steps of an eighth, from the bits of a float: sizes within a step are the same shape. */
static uint64_t steps_of(double value)
{
    const uint32_t bits = canon_float_bits((float)value + 1e-6f);
    return bits >> (23 - 3);
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t shape_of(const search_job *job, const search_amount *amount, bool range)
{
    uint64_t hash = mixed(1, steps_of((double)amount->words));
    hash = mixed(hash, amount->queries <= SCREEN_SMALL_BATCH_MAX ? (uint64_t)amount->queries
                                                                 : UINT64_C(1) << 32 | steps_of((double)amount->queries));
    hash = mixed(hash, (uint64_t)canon_padded(job->dim));
    hash = mixed(hash, steps_of(job->k));
    hash = mixed(hash, (uint64_t)job->metric << 1 | range);
    hash = mixed(hash, steps_of(amount->words_admitted));
    hash = mixed(hash, steps_of(amount->rows_admitted));
    return hash == 0 ? 1 : hash;
}

/* A single query over rows of another type is faster in a full scan: only f32 rows are so long that the screen saves more time
 * than its launches take. */
static bool can_screen_type(const search_job *job, bool range)
{
    return job->type == ROW_F32 || range || job->query_count > 1 || gpu_search_rows_are_far(job);
}

static bool can_screen(const ww_device *device, const search_job *job, int64_t words)
{
    return job->screen && words >= SCREEN_TILE_WORDS && has_codes(job) && device->tuning.screen != TUNING_NEVER;
}

screen_plan search_screen_plan(const gpu_device *device, const search_job *job, int64_t queries, int32_t capacity)
{
    return screen_plan_make((screen_size){.queries = queries,
                                          .dim = job->dim,
                                          .k = job->k,
                                          .words = segment_table_words(job),
                                          .capacity = capacity,
                                          .host_f32 = job->type == ROW_F32 && !job->queries_on_device,
                                          .watched = job->progress != NULL || cancel_given(),
                                          .sample_buckets = device->constants.screen_sample_buckets,
                                          .sample_tiles = device->constants.screen_sample_tiles});
}

search_choice search_choose(gpu_device *device, const search_job *job, int32_t capacity, bool range)
{
    search_amount amount = {.words = segment_table_words(job),
                            .queries = job->query_count,
                            .dim = job->dim,
                            .k = job->k,
                            .words_admitted = 1,
                            .rows_admitted = 1};
    search_choice choice = {0};
    if (!can_screen(&device->base, job, amount.words) || !can_screen_type(job, range))
        return choice;
    choice.plan = search_screen_plan(device, job, job->query_count, capacity);
    if (!range && choice.plan.sample_tiles * 4 < (uint32_t)job->k) /* no threshold from a sample */
        return choice;
    choice.screen = device->base.tuning.screen == TUNING_ALWAYS || gpu_search_rows_are_far(job);
    if (choice.screen)
        return choice;
    if (job->mask)
        look_at_mask(job, &amount);
    const search_rates rates = search_rates_of(device->base.info.compute_units, device->capabilities.sm_90a_code);
    const double scanned = search_cost_full_scan(&rates, &amount);
    const double screened = search_cost_screened(&rates, &amount, &choice.plan, !range);
    choice.screen = screened < scanned;
    /* What runs only while the caller waits tells nothing by its time. */
    if (!device->driver->kernels_run_unwaited || scanned > CLOSE * screened || screened > CLOSE * scanned)
        return choice;
    const bool trying = search_trials_may_run(&device->trials);
    const uint64_t shape = shape_of(job, &amount, range);
    choice.screen = search_trials_choose(&device->trials, shape, choice.screen, trying);
    choice.trial = trying ? shape : 0;
    return choice;
}

void search_choice_record(gpu_device *device, const search_choice *choice, double microseconds)
{
    if (choice->trial != 0)
        search_trials_record(&device->trials, choice->trial, choice->screen, microseconds);
}
