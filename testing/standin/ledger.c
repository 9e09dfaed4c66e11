/* Live objects of the stand-in for libamdhip64, injected failures, and each thread's current device. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin/hip_parts.h"

enum { VERSION = STANDIN_ROCM == 5 ? 50221153 : STANDIN_ROCM == 6 ? 60342131 : 70051831 };

/* ---- faults and misuse --------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the static variables below */
static bool configured;
static long calls, failing_calls;
static int lost; /* the number that everything answers with */
static const char *victim;
static char misuse[160];
static char given_back[8192]; /* the calls that freed something, each followed by a space */
static long other_handles;
static _Thread_local int last_error;

static bool is_loss(int number)
{
    return number == AMD_ERROR_DEINITIALIZED || number == AMD_ERROR_ECC_NOT_CORRECTABLE ||
           number == AMD_ERROR_ILLEGAL_ADDRESS || number == AMD_ERROR_LAUNCH_TIMEOUT ||
           number == AMD_ERROR_CONTEXT_IS_DESTROYED || number == AMD_ERROR_ASSERT || number == AMD_ERROR_LAUNCH_FAILURE;
}

static void configure_locked(const char *text)
{
    standin_read_settings(text != NULL ? text : getenv("WARPWAVE_STANDIN"), VERSION);
    emulated_set_memory(standin_set.memory_bytes);
    for (int i = 0; i < standin_set.devices; i++)
        emulated_set_wave_size(i, (uint32_t)standin_set.chips[i]->wave_size);
    calls = failing_calls = 0;
    lost = 0;
    victim = NULL;
    misuse[0] = '\0';
    given_back[0] = '\0';
    configured = true;
}

/* Functions that destroy something that other objects may depend on. */
static bool gives_back(const char *call)
{
    return strstr(call, "estroy") != NULL || strstr(call, "Unload") != NULL || strcmp(call, "hipFree") == 0 ||
           strcmp(call, "hipHostFree") == 0;
}

int standin_judge(const char *call)
{
    pthread_mutex_lock(&lock);
    if (!configured)
        configure_locked(NULL);
    calls++;
    if (gives_back(call) && strlen(given_back) + strlen(call) + 2 < sizeof given_back) {
        strcat(given_back, call);
        strcat(given_back, " ");
    }
    int number = lost;
    if (standin_set.fail_at > 0 && (strcmp(standin_set.fail_call, "any") == 0 || strcmp(standin_set.fail_call, call) == 0) &&
        ++failing_calls == standin_set.fail_at) {
        number = standin_set.fail_number;
        victim = call;
        lost = is_loss(number) ? number : lost;
        if (lost != 0)
            emulated_lose(); /* a lost device does not do its queued work */
    }
    pthread_mutex_unlock(&lock);
    last_error = number != 0 ? number : last_error;
    return number;
}

void standin_misused(const char *what)
{
    pthread_mutex_lock(&lock);
    if (misuse[0] == '\0')
        snprintf(misuse, sizeof misuse, "%s", what);
    pthread_mutex_unlock(&lock);
}

const char *standin_misuse(void)
{
    return misuse[0] != '\0' ? misuse : NULL;
}

const char *standin_given_back(void)
{
    return given_back;
}

long standin_calls(void)
{
    return calls;
}

bool standin_is_lost(void)
{
    return lost != 0;
}

const char *standin_victim(void)
{
    return victim;
}

void standin_count_handle(int change)
{
    pthread_mutex_lock(&lock);
    other_handles += change;
    pthread_mutex_unlock(&lock);
}

int standin_result(int number)
{
    if (number != AMD_SUCCESS)
        last_error = number;
    return number;
}

int standin_last_error(void)
{
    const int number = last_error;
    last_error = AMD_SUCCESS;
    return number;
}

int standin_give(const char *call, int number)
{
    const int judged = standin_judge(call);
    return standin_result(judged != 0 ? judged : number);
}

/* ---- handles ------------------------------------------------------------------------------------------------------------- */

typedef struct handle {
    struct handle *next;
    handle_kind kind;
    int device;
    const void *value;
} handle;

static handle *handles;
static int64_t handle_counts[HANDLE_KINDS];

void standin_add_handle(handle_kind kind, int device, const void *value)
{
    handle *made = malloc(sizeof *made);
    *made = (handle){.kind = kind, .device = device, .value = value};
    pthread_mutex_lock(&lock);
    made->next = handles;
    handles = made;
    handle_counts[kind]++;
    pthread_mutex_unlock(&lock);
}

static handle **find(handle_kind kind, const void *value)
{
    handle **link = &handles;
    while (*link != NULL && ((*link)->kind != kind || (*link)->value != value))
        link = &(*link)->next;
    return link;
}

static int device_or_misuse(const char *call, handle_kind kind, int device)
{
    static const char *const names[] = {"stream", "event", "module", "function"};
    char what[160];
    if (device < 0 && call != NULL) {
        snprintf(what, sizeof what, "%s was given a %s that is not alive", call, names[kind]);
        standin_misused(what);
    }
    return device;
}

int standin_find_handle(const char *call, handle_kind kind, const void *value)
{
    pthread_mutex_lock(&lock);
    const handle *found = *find(kind, value);
    const int device = found != NULL ? found->device : -1;
    pthread_mutex_unlock(&lock);
    return device_or_misuse(call, kind, device);
}

int standin_remove_handle(const char *call, handle_kind kind, const void *value)
{
    pthread_mutex_lock(&lock);
    handle **link = find(kind, value);
    handle *found = *link;
    const int device = found != NULL ? found->device : -1;
    if (found != NULL) {
        *link = found->next;
        handle_counts[kind]--;
    }
    pthread_mutex_unlock(&lock);
    free(found);
    return device_or_misuse(call, kind, device);
}

/* ---- the device of a thread ---------------------------------------------------------------------------------------------- */

_Thread_local int standin_current;
static driver_context contexts[STANDIN_DEVICES_MAX];

bool standin_is_device(int device)
{
    return device >= 0 && device < standin_set.devices;
}

int standin_enter(int device)
{
    driver_context ignored = NULL;
    int number = AMD_SUCCESS;
    if (!standin_is_device(device))
        return standin_result(AMD_ERROR_INVALID_DEVICE);
    pthread_mutex_lock(&lock);
    if (contexts[device] == NULL)
        number = emulated_driver.context_create(device, &contexts[device]);
    pthread_mutex_unlock(&lock);
    return standin_result(number != AMD_SUCCESS ? number : emulated_driver.context_swap(contexts[device], &ignored));
}

/* ---- for tests ----------------------------------------------------------------------------------------------------------- */

void standin_configure(const char *text)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
        if (contexts[i] != NULL)
            (void)emulated_driver.context_destroy(i, contexts[i]);
    memset(contexts, 0, sizeof contexts);
    configure_locked(text);
    pthread_mutex_unlock(&lock);
}

void standin_count(standin_counts *out)
{
    emulated_counts emulated;
    emulated_count(&emulated);
    *out = (standin_counts){.blocks = emulated.blocks,
                            .bytes = emulated.bytes,
                            .pinned = emulated.pinned,
                            .streams = handle_counts[HANDLE_STREAM],
                            .events = handle_counts[HANDLE_EVENT],
                            .modules = handle_counts[HANDLE_MODULE],
                            .handles = other_handles};
}
