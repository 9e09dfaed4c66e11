/* Graphs of the stand-in for libcuda: work queued on a stream while it records is stored and done when the graph is launched.
 * Copies and fills then move bytes; kernels are counted, as they are without a graph.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "standin/cuda_parts.h"

/* Recorded work. A graph that was made ready to be launched is a copy of it. */
typedef struct graph {
    stream_work *work;
    size_t count, capacity;
    bool made;
} graph;

typedef struct stream {
    graph *recorded; /* while it records */
    bool spoiled;
} stream;

static atomic_long launched;

long standin_launched(void)
{
    return atomic_load(&launched);
}

size_t standin_stream_bytes(void)
{
    return sizeof(stream);
}

static void do_work(const stream_work *work)
{
    if (work->kind == WORK_COPY)
        memcpy(work->to, work->from, work->bytes);
    for (size_t i = 0; work->kind == WORK_FILL && i < work->bytes; i += sizeof work->pattern)
        memcpy((char *)work->to + i, &work->pattern, sizeof work->pattern);
    if (work->kind == WORK_LAUNCH)
        atomic_fetch_add(&launched, 1);
}

int standin_work(void *on, const stream_work *work)
{
    const stream *s = on;
    if (s == NULL || standin_here() != NV_SUCCESS)
        return s == NULL ? INVALID_VALUE : INVALID_CONTEXT;
    graph *g = s->recorded;
    if (g == NULL) {
        do_work(work);
        return NV_SUCCESS;
    }
    if (g->count == g->capacity) {
        const size_t capacity = 2 * g->capacity + 16;
        stream_work *more = realloc(g->work, capacity * sizeof *more);
        if (more == NULL)
            return NV_ERROR_OUT_OF_MEMORY;
        g->work = more;
        g->capacity = capacity;
    }
    g->work[g->count++] = *work;
    return NV_SUCCESS;
}

int standin_wait(void *on)
{
    stream *s = on;
    if (s == NULL)
        return INVALID_VALUE;
    if (s->recorded == NULL)
        return standin_here();
    s->spoiled = true;
    return CAPTURE_UNSUPPORTED;
}

static int end_graph(graph *g)
{
    free(g->work);
    g->work = NULL;
    return standin_one_less(g);
}

int cuStreamBeginCapture_v2(void *on, int mode)
{
    stream *s = on;
    void *made = NULL;
    BEGIN(cuStreamBeginCapture_v2);
    if (s == NULL || s->recorded != NULL || mode != NV_STREAM_CAPTURE_MODE_RELAXED)
        return INVALID_VALUE;
    const int number = standin_one_more(&made, sizeof(graph));
    s->recorded = made;
    s->spoiled = false;
    return number;
}

/* The stream works as before, also where this fails. */
int cuStreamEndCapture(void *on, void **out)
{
    stream *s = on;
    if (s == NULL || s->recorded == NULL)
        return INVALID_VALUE;
    graph *g = s->recorded;
    const int judged = standin_judge("cuStreamEndCapture");
    s->recorded = NULL;
    if (judged == NV_SUCCESS && !s->spoiled) {
        *out = g;
        return NV_SUCCESS;
    }
    const int ended = end_graph(g);
    return judged != NV_SUCCESS ? judged : ended == NV_SUCCESS ? CAPTURE_INVALIDATED : ended;
}

int cuGraphInstantiateWithFlags(void **made, void *from, unsigned long long flags)
{
    const graph *g = from;
    BEGIN(cuGraphInstantiateWithFlags);
    if (g == NULL || g->made || flags != 0)
        return INVALID_VALUE;
    const int number = standin_one_more(made, sizeof(graph));
    if (number != NV_SUCCESS)
        return number;
    graph *copy = *made;
    *copy = (graph){.count = g->count, .made = true, .work = malloc((g->count + 1) * sizeof *g->work)};
    if (copy->work == NULL) {
        (void)standin_one_less(copy);
        return NV_ERROR_OUT_OF_MEMORY;
    }
    if (g->count > 0)
        memcpy(copy->work, g->work, g->count * sizeof *g->work);
    return NV_SUCCESS;
}

int cuGraphDestroy(void *from)
{
    graph *g = from;
    return standin_give("cuGraphDestroy", g != NULL && !g->made ? end_graph(g) : INVALID_VALUE);
}

int cuGraphLaunch(void *made, void *on)
{
    const graph *g = made;
    const stream *s = on;
    BEGIN(cuGraphLaunch);
    if (g == NULL || !g->made || s == NULL || s->recorded != NULL)
        return INVALID_VALUE;
    for (size_t i = 0; i < g->count; i++)
        do_work(&g->work[i]);
    return standin_here();
}

int cuGraphExecDestroy(void *made)
{
    graph *g = made;
    return standin_give("cuGraphExecDestroy", g != NULL && g->made ? end_graph(g) : INVALID_VALUE);
}
