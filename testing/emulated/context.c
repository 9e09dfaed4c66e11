/* The contexts of the emulated driver, which one a thread is in, and what its last call said. */
#include "emulated/parts.h"

#include <stdlib.h>

#include "base/text.h"

static emulated_context contexts[EMULATED_CONTEXTS] = {{.index = 0, .wave_size = 32}, {.index = 1, .wave_size = 64}};

static _Thread_local emulated_context *current;
static _Thread_local const char *failed_call = "";
static _Thread_local char failed_detail[EMULATED_DETAIL_BYTES];

int emulated_answer(const char *call, int number, const char *detail)
{
    failed_call = call;
    text_copy(failed_detail, sizeof failed_detail, detail);
    return number;
}

emulated_context *emulated_here_or(const char *call, int *number)
{
    if (current == NULL || atomic_load(&current->users) == 0)
        *number = emulated_answer(call, EMULATED_NO_CONTEXT, "no context is current on this thread");
    else if (atomic_load(&current->broken) != 0)
        *number = emulated_answer(call, atomic_load(&current->broken), "the context is broken");
    else
        return current;
    return NULL;
}

void emulated_failure(driver_failure *out)
{
    *out = (driver_failure){.call = failed_call, .detail = failed_detail};
}

int64_t emulated_contexts_alive(void)
{
    int64_t alive = 0;
    for (int32_t i = 0; i < EMULATED_CONTEXTS; i++)
        alive += atomic_load(&contexts[i].users);
    return alive;
}

uint32_t emulated_wave_size(int32_t index)
{
    return contexts[index].wave_size;
}

void emulated_set_wave_size(int32_t index, uint32_t wave_size)
{
    contexts[index].index = index;
    contexts[index].wave_size = wave_size;
}

static bool is_context(int32_t index)
{
    return index >= 0 && index < EMULATED_CONTEXTS && contexts[index].wave_size != 0;
}

int emulated_context_create(int32_t index, driver_context *out)
{
    if (!is_context(index))
        return emulated_answer("emulatedContextCreate", EMULATED_INVALID_DEVICE, "");
    if (atomic_fetch_add(&contexts[index].users, 1) == 0) {
        const char *seed = getenv("WARPWAVE_EMULATOR_SEED");
        contexts[index].seed = seed != NULL ? strtoull(seed, NULL, 0) : 0;
        atomic_store(&contexts[index].broken, 0);
        (void)emulated_launch_limits(0, &contexts[index].limits);
    }
    *out = (driver_context)&contexts[index];
    return EMULATED_OK;
}

int emulated_context_destroy(int32_t index, driver_context context)
{
    if (!is_context(index) || (emulated_context *)context != &contexts[index] || atomic_load(&contexts[index].users) < 1)
        return emulated_answer("emulatedContextDestroy", EMULATED_INVALID_HANDLE, "no such context is alive");
    atomic_fetch_sub(&contexts[index].users, 1);
    return EMULATED_OK;
}

void emulated_lose(void)
{
    for (int32_t index = 0; index < EMULATED_CONTEXTS; index++)
        atomic_fetch_add(&contexts[index].losses, 1);
}

int emulated_context_swap(driver_context context, driver_context *previous)
{
    *previous = (driver_context)current;
    current = (emulated_context *)context;
    return EMULATED_OK;
}
