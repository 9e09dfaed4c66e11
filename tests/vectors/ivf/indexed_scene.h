/* Shared by the tests of an index: a collection with an index on the device under test, and the same on the CPU. */
#ifndef TESTS_VECTORS_INDEXED_SCENE_H
#define TESTS_VECTORS_INDEXED_SCENE_H

#include <stdlib.h>
#include <string.h>

#include "support/data/indexed.h"
#include "support/devices.h"
#include "vectors/ivf/ivf.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
enum { METRICS = 3, TYPES = 5, DIM = 40, COUNT = 352, QUERIES = 3, K = 10, NLIST = 12 };

typedef struct scene {
    ww_device *cpu;
    ww_collection *collection; /* on the device under test */
    ww_collection *on_cpu;     /* the same on the CPU */
    float rows[COUNT * DIM];
    float queries[QUERIES * DIM];
} scene;

static inline ww_collection_config config_of(ww_metric metric, ww_vector_type type)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = DIM;
    config.metric = metric;
    config.type = type;
    return config;
}

static inline scene *scene_of(ww_device *device, const ww_collection_config *config)
{
    test_random random = {5 + (uint64_t)config->type};
    scene *s = calloc(1, sizeof *s);
    clustered_rows(&random, s->rows, COUNT, DIM, 9, config->type);
    clustered_rows(&random, s->queries, QUERIES, DIM, 9, config->type);
    memcpy(s->queries, s->rows + 77 * DIM, 2 * DIM * sizeof *s->queries); /* some are rows */
    CHECK_OK(ww_device_open("cpu", &s->cpu));
    s->collection = collection_of(device, config, s->rows, COUNT);
    s->on_cpu = collection_of(s->cpu, config, s->rows, COUNT);
    index_build(s->collection, NLIST);
    index_build(s->on_cpu, NLIST);
    return s;
}

static inline void scene_free(scene *s)
{
    ww_collection_destroy(s->collection);
    ww_collection_destroy(s->on_cpu);
    ww_device_close(s->cpu);
    free(s);
}

/* On a slow device each type is tried with one metric. */
static inline bool is_tried(ww_device *device, int metric, int type)
{
    return !device_is_slow(device) || test_is_long() || metric == type % METRICS;
}

#endif
