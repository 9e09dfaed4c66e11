/* The frame of a collective call: who may make it, and the memory that MPI uses. */
#include "mpi/cluster.h"

#include <string.h>

#include "base/memory.h"

/* Is stored in front of the memory itself, so that abandoning it needs no memory. */
struct call_block {
    call_block *next;
    size_t bytes;
    max_align_t memory[];
};

/* MPI cannot cancel abandoned operations. Their memory is kept, reachable for leak checkers, until the process ends. */
static call_block *abandoned;
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;

call_block *block_take(size_t bytes)
{
    size_t all;
    if (__builtin_add_overflow(bytes, sizeof(call_block), &all))
        return NULL;
    call_block *block = memory_alloc(all);
    if (block)
        *block = (call_block){.bytes = bytes};
    return block;
}

void *block_memory(call_block *block)
{
    return block->memory;
}

call_block *block_of(void *memory)
{
    return (call_block *)((char *)memory - offsetof(call_block, memory));
}

void memory_abandon(call_block *block)
{
    pthread_mutex_lock(&abandoned_lock);
    block->next = abandoned;
    abandoned = block;
    pthread_mutex_unlock(&abandoned_lock);
}

ww_status mpi_usable(const char *function)
{
    int begun = 0, ended = 0, level = MPI_THREAD_SINGLE, is_main = 0;
    MPI_Initialized(&begun);
    if (!begun)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: MPI is not initialised; call MPI_Init_thread() first", function);
    MPI_Finalized(&ended);
    if (ended)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: MPI is finalised already", function);
    if (MPI_Query_thread(&level) != MPI_SUCCESS || MPI_Is_thread_main(&is_main) != MPI_SUCCESS)
        return ww_fail(WW_DRIVER_ERROR, "%s: MPI does not say which threads may use it", function);
    if (level < MPI_THREAD_SERIALIZED && !is_main)
        return ww_fail(WW_UNSUPPORTED,
                       "%s: MPI was initialised for calls of the main thread alone; ask MPI_Init_thread() for "
                       "MPI_THREAD_SERIALIZED or more to call from other threads",
                       function);
    return WW_OK;
}

const char *call_name(int64_t kind)
{
    static const char *const names[] = {[CALL_CREATE] = "ww_cluster_create",
                                        [CALL_DESCRIBE] = "ww_cluster_describe",
                                        [CALL_SEARCH] = "ww_cluster_search",
                                        [CALL_COLLECT] = "warpwave-mpi dedup"};
    return kind > 0 && kind < (int64_t)(sizeof names / sizeof *names) ? names[kind] : NULL;
}

ww_status call_begin(cluster_call *call, ww_cluster *cluster, collective_call kind)
{
    const char *function = call_name(kind);
    *call = (cluster_call){.cluster = cluster, .function = function, .report = {.call = kind}};
    if (!cluster)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: cluster is NULL", function);
    ww_status status = process_check(cluster->process, "cluster");
    if (status == WW_OK)
        status = mpi_usable(function);
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&cluster->lock);
    if (!cluster->lost)
        return WW_OK;
    status = ww_fail(cluster->lost_status, "%s: this cluster can only be destroyed: %s", function, cluster->why_lost);
    pthread_mutex_unlock(&cluster->lock);
    return status;
}

void call_end(cluster_call *call)
{
    while (call->blocks) {
        call_block *block = call->blocks;
        call->blocks = block->next;
        if (call->cluster->lost)
            memory_abandon(block);
        else
            memory_free(block);
    }
    pthread_mutex_unlock(&call->cluster->lock);
}

void *call_memory(cluster_call *call, size_t bytes)
{
    call_block *block = block_take(bytes);
    if (!block)
        return NULL;
    block->next = call->blocks;
    call->blocks = block;
    return block->memory;
}

ww_status call_array(cluster_call *call, int64_t count, size_t element_bytes, const char *what, void *to)
{
    size_t bytes;
    void *taken = NULL;
    if (!size_multiply((size_t)count, element_bytes, &bytes))
        return memory_failed(what, SIZE_MAX / 2);
    taken = call_memory(call, bytes);
    memcpy(to, &taken, sizeof taken);
    return taken ? WW_OK : memory_failed(what, bytes);
}
