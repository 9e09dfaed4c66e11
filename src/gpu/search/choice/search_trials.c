/* Times of searches by shape, in a small table in which a new shape replaces an old one. */
#include "gpu/search/choice/search_trials.h"

/* The first run of a way may load code and allocate memory; of two more, one is hardly ever disturbed. */
enum { RUNS_WANTED = 3, RUNS_MAX = 200 };

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

bool search_trials_choose(search_trials *trials, uint64_t shape, bool guess)
{
    bool screened = guess;
    const search_trial *trial = lock_trial(trials, shape);
    if (trial->shape == shape) {
        const int plain_runs = trial->runs[0], screened_runs = trial->runs[1];
        if (plain_runs >= RUNS_WANTED && screened_runs >= RUNS_WANTED)
            screened = trial->best[1] < trial->best[0];
        else if (plain_runs != screened_runs)
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
    if (trial->runs[screened] < RUNS_MAX)
        trial->runs[screened]++;
    unlock_trial(trials);
}
