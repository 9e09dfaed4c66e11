/* Shared by the tests of ranks: programs that MPI starts several times; each process checks its own rank's results.
 *
 * This does not use cmocka: a rank that fails prints that and exits, and its launcher ends the others.
 */
#ifndef TESTS_CLUSTER_RANKS_H
#define TESTS_CLUSTER_RANKS_H

#include <warpwave/cluster.h>

#include "support/process.h"

typedef struct ranks {
    int rank, count;
    ww_device *device;
} ranks;

/* Data of a test: the same on every rank. Few different values, so that scores are equal across shards, and whole rows twice.
 */
enum { ROWS = 300, DIM = 24, QUERIES = 7 };

typedef struct scene {
    float rows[ROWS][DIM];
    float queries[QUERIES][DIM];
    char ids[ROWS][16];
    char payloads[ROWS][32]; /* "" for none */
    const char *id_list[ROWS];
    const char *payload_list[ROWS];
} scene;

const scene *scene_make(void);

/* The first row of a rank's share of ROWS: shares are uneven, and with more than two ranks some are empty. */
int64_t share_first(const ranks *r, int rank);

/* A cluster with a share of the scene on every rank, on devices that differ from rank to rank. */
ww_cluster *cluster_of_scene(const ranks *r, ww_metric metric);
ww_cluster_config config_of_scene(ww_metric metric);

/* A collection without rows. */
ww_collection *empty_collection(const ranks *r, int32_t dim, ww_metric metric);

/* Adds rows [first, end) of the scene. */
void add_rows(ww_collection *collection, int64_t first, int64_t end);

/* One collection with all rows, for what should come out. */
ww_collection *collection_of_scene(const ranks *r, ww_metric metric);

/* Every rank sends `count` numbers for each rank up to its own to the root, which checks them. */
ww_status collect_numbers(const ranks *r, ww_cluster *cluster, int64_t count);

/* The same number on all ranks, or the test fails. */
void expect_same(long long number);

void case_bits(const ranks *r);
void case_masks(const ranks *r);
void case_file(const ranks *r);
void case_rows(const ranks *r);
void case_store(const ranks *r);
void case_large(const ranks *r);
void case_disagree(const ranks *r);
void case_memory(const ranks *r);
void case_misuse(const ranks *r_given);
void case_timeout(const ranks *r);
void case_mpi(const ranks *r);
void case_killed(const ranks *r);

#endif
