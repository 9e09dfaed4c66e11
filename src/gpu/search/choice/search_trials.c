/* Times of searches by shape, in a small table in which a new shape replaces an old one. */
#include "gpu/search/choice/search_trials.h"

#include "base/clock.h"

/* The first run of a way may load code and allocate memory; of two more, one is hardly ever disturbed. */
enum { RUNS_WANTED = 3, RUNS_MAX = 200 };

static const int64_t quiet_ns = 1000000000; /* without trials, after a device was opened */

void search_trials_begin(search_trials *trials)
{
    trials->begins_ns = clock_nanoseconds() + quiet_ns;
}

bool search_trials_may_run(const search_trials *trials)
{
    return clock_nanoseconds() >= trials->begins_ns;
}

static bool is_settled(const search_trial *trial)
{
    return trial->runs[0] >= RUNS_WANTED && trial->runs[1] >= RUNS_WANTED;
}

static search_trial *lock_trial(search_trials *trials, uint64_t shape)
{
    while (atomic_flag_test_and_set_explicit(&trials->busy, memory_order_acquire))
        continue; /* held for a few instructions */
    return &trials->kept[shape % TRIALS_KEPT];
}

static void unlock_trial(search_trials *trials)
{
    atomic_flag_clear_explicit(&trials->busy, memory_order_release);
}

bool search_trials_choose(search_trials *trials, uint64_t shape, bool guess, bool trying)
{
    bool screened = guess;
    const search_trial *trial = lock_trial(trials, shape);
    if (trial->shape == shape) {
        const int plain_runs = trial->runs[0], screened_runs = trial->runs[1];
        if (is_settled(trial))
            screened = trial->best[1] < trial->best[0];
        else if (trying && plain_runs != screened_runs)
            screened = screened_runs < plain_runs;
    }
    unlock_trial(trials);
    return screened;
}

void search_trials_record(search_trials *trials, uint64_t shape, bool screened, double microseconds)
{
    search_trial *trial = lock_trial(trials, shape);
    if (trial->shape != shape)
        *trial = (search_trial){.shape = shape};
    if (trial->runs[screened] == 0 || (float)microseconds < trial->best[screened])
        trial->best[screened] = (float)microseconds;
    const bool was_settled = is_settled(trial);
    if (trial->runs[screened] < RUNS_MAX)
        trial->runs[screened]++;
    trials->changed = trials->changed || (is_settled(trial) && !was_settled);
    unlock_trial(trials);
}

void search_trials_settle(search_trials *trials, const search_trial *settled)
{
    search_trial *trial = lock_trial(trials, settled->shape);
    if (trial->shape == 0)
        *trial = (search_trial){
            .shape = settled->shape, .best = {settled->best[0], settled->best[1]}, .runs = {RUNS_WANTED, RUNS_WANTED}};
    unlock_trial(trials);
}

bool search_trials_settled(search_trials *trials, size_t i, search_trial *settled)
{
    *settled = *lock_trial(trials, i);
    unlock_trial(trials);
    return settled->shape != 0 && is_settled(settled);
}
