/* Memory of the emulated driver: host memory with a list of all pieces, so that every address can be checked. */
#include "emulated/parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGNMENT = 256,
    PINNED = -1 /* instead of a device's index */
};

static const size_t default_bytes = (size_t)4 << 30;

typedef struct piece {
    struct piece *next;
    char *address;
    size_t bytes;
    int32_t index;
    void *pages; /* of a guarded piece, with the page after it */
    size_t pages_bytes;
} piece;

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static piece *ledger;
static size_t used_bytes[EMULATED_CONTEXTS];
static size_t device_bytes; /* 0 means the default */
static bool guarded;

void emulated_set_memory(size_t bytes)
{
    pthread_mutex_lock(&ledger_lock);
    device_bytes = bytes;
    pthread_mutex_unlock(&ledger_lock);
}

void emulated_guard_memory(void)
{
    guarded = true;
}

static size_t total_of_each(void)
{
    return device_bytes != 0 ? device_bytes : default_bytes;
}

static size_t free_of(int32_t index)
{
    const size_t total = total_of_each();
    return used_bytes[index] < total ? total - used_bytes[index] : 0;
}

int emulated_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    int number = EMULATED_OK;
    const emulated_context *here = emulated_here_or("emulatedMemoryInfo", &number);
    if (here == NULL)
        return number;
    pthread_mutex_lock(&ledger_lock);
    *free_bytes = free_of(here->index);
    *total_bytes = total_of_each();
    pthread_mutex_unlock(&ledger_lock);
    return EMULATED_OK;
}

int64_t emulated_memory_total(void)
{
    pthread_mutex_lock(&ledger_lock);
    const size_t total = total_of_each();
    pthread_mutex_unlock(&ledger_lock);
    return (int64_t)total;
}

/* Allocates memory that ends, up to alignment, at an inaccessible page. */
static char *take_guarded(piece *made, size_t bytes)
{
    const size_t page = 4096, body = (bytes + page - 1) / page * page,
                 rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    made->pages_bytes = body + page;
    made->pages = mmap(NULL, made->pages_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made->pages == MAP_FAILED)
        return NULL;
    (void)mprotect((char *)made->pages + body, page, PROT_NONE);
    return (char *)made->pages + body - rounded;
}

/* One allocation holds the record and, unless it is guarded, the aligned memory after it. */
static piece *make_piece(int32_t index, size_t bytes)
{
    const bool apart = guarded && index != PINNED;
    if (bytes > SIZE_MAX - sizeof(piece) - ALIGNMENT)
        return NULL;
    piece *made = malloc(sizeof *made + (apart ? 0 : ALIGNMENT + bytes));
    if (made == NULL)
        return NULL;
    *made = (piece){.bytes = bytes, .index = index};
    char *behind = (char *)(made + 1);
    made->address = apart ? take_guarded(made, bytes) : behind + (ALIGNMENT - (uintptr_t)behind % ALIGNMENT) % ALIGNMENT;
    if (made->address == NULL) {
        free(made);
        return NULL;
    }
    memset(made->address, 0xff, bytes);
    return made;
}

static int take(const char *call, int32_t index, size_t bytes, void **out)
{
    bool fits = true;
    pthread_mutex_lock(&ledger_lock);
    if (index != PINNED) {
        fits = bytes <= free_of(index);
        if (fits)
            used_bytes[index] += bytes;
    }
    pthread_mutex_unlock(&ledger_lock);
    piece *made = fits ? make_piece(index, bytes) : NULL;
    pthread_mutex_lock(&ledger_lock);
    if (made != NULL) {
        made->next = ledger;
        ledger = made;
        *out = made->address;
    } else if (fits && index != PINNED) {
        used_bytes[index] -= bytes;
    }
    pthread_mutex_unlock(&ledger_lock);
    return made != NULL ? EMULATED_OK : emulated_answer(call, EMULATED_OUT_OF_MEMORY, "");
}

static int give(const char *call, bool pinned, const void *address)
{
    pthread_mutex_lock(&ledger_lock);
    piece **link = &ledger;
    while (*link != NULL && ((*link)->address != address || ((*link)->index == PINNED) != pinned))
        link = &(*link)->next;
    piece *found = *link;
    if (found != NULL) {
        *link = found->next;
        if (!pinned)
            used_bytes[found->index] -= found->bytes;
    }
    pthread_mutex_unlock(&ledger_lock);
    if (found != NULL && found->pages != NULL)
        (void)munmap(found->pages, found->pages_bytes);
    free(found);
    return found != NULL ? EMULATED_OK : emulated_answer(call, EMULATED_INVALID_VALUE, "no such memory is alive");
}

int emulated_memory_alloc(size_t bytes, void **out)
{
    int number = EMULATED_OK;
    const emulated_context *here = emulated_here_or("emulatedMemoryTake", &number);
    return here != NULL ? take("emulatedMemoryTake", here->index, bytes, out) : number;
}

int emulated_memory_free(void *address)
{
    return give("emulatedMemoryGive", false, address);
}

int emulated_pinned_alloc(size_t bytes, void **out)
{
    int number = EMULATED_OK;
    return emulated_here_or("emulatedPinnedTake", &number) != NULL ? take("emulatedPinnedTake", PINNED, bytes, out) : number;
}

int emulated_pinned_free(void *host)
{
    return give("emulatedPinnedGive", true, host);
}

bool emulated_lies_inside(int32_t index, const void *address, size_t bytes)
{
    const char *begin = address;
    bool inside = false;
    pthread_mutex_lock(&ledger_lock);
    for (const piece *p = ledger; p != NULL && !inside; p = p->next)
        inside = p->index == index && begin >= p->address && begin < p->address + p->bytes &&
                 bytes <= (size_t)(p->address + p->bytes - begin);
    pthread_mutex_unlock(&ledger_lock);
    return inside;
}

void emulated_count_memory(emulated_counts *out)
{
    pthread_mutex_lock(&ledger_lock);
    for (const piece *p = ledger; p != NULL; p = p->next) {
        out->pinned += p->index == PINNED;
        out->blocks += p->index != PINNED;
        out->bytes += p->index != PINNED ? (int64_t)p->bytes : 0;
    }
    pthread_mutex_unlock(&ledger_lock);
}
