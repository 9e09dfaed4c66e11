/* The key of the hash, made only once. */
#include "base/tables/hash.h"

#include <pthread.h>
#include <sys/random.h>
#include <time.h>

/* Made once and never changed: all tables share the key, which only makes collisions unpredictable. */
static hash_key process_key;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    if (getrandom(&process_key, sizeof process_key, GRND_NONBLOCK) != (ssize_t)sizeof process_key) {
        struct timespec now = {0};
        clock_gettime(CLOCK_REALTIME, &now);
        process_key.seed = hash_mix((uint64_t)(uintptr_t)&now, (uint64_t)now.tv_nsec | 1);
        process_key.factor = hash_mix((uint64_t)(uintptr_t)&process_key, (uint64_t)now.tv_sec ^ 0x9fb21c651e98df25u);
    }
    process_key.factor |= 1;
}

const hash_key *hash_process_key(void)
{
    pthread_once(&made, make_key);
    return &process_key;
}
