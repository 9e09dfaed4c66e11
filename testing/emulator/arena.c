/* Memory for blocks, kept for the next launch. */
#include "emulator/arena.h"

#include <pthread.h>
#include <sys/mman.h>

#include "emulator/emulator.h"
#include "emulator/fiber.h"

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
    KEPT_MAX = 16,
    STACKS_BYTES = (EMULATOR_MAX_THREADS + 1) * FIBER_STACK_STRIDE,
    ARENA_BYTES = STACKS_BYTES + EMULATOR_SHARED_BYTES
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *kept[KEPT_MAX];
static int kept_count;

char *arena_acquire(void)
{
    char *arena = NULL;
    pthread_mutex_lock(&lock);
    if (kept_count > 0)
        arena = kept[--kept_count];
    pthread_mutex_unlock(&lock);
    if (arena != NULL)
        return arena;
    void *made = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made != MAP_FAILED ? made : NULL;
}

char *arena_shared(char *arena)
{
    return arena + STACKS_BYTES;
}

void arena_release(char *arena, bool clean)
{
    if (arena == NULL)
        return;
    pthread_mutex_lock(&lock);
    const bool keep = clean && kept_count < KEPT_MAX;
    if (keep)
        kept[kept_count++] = arena;
    pthread_mutex_unlock(&lock);
    if (keep)
        return;
#ifdef FIBER_ASAN
    __asan_unpoison_memory_region(arena, ARENA_BYTES); /* abandoned fibers left their red zones marked */
#endif
    (void)munmap(arena, ARENA_BYTES);
}
