/* `warpwave-mpi`: what its commands share.
 *
 * All ranks run the same command with the same arguments. What a rank finds wrong by itself ends all of them: it says why and
 * calls MPI_Abort(). What all find wrong together is said by rank 0, or by the next one that is still there.
 */
#ifndef CLI_MPI_MPI_H
#define CLI_MPI_MPI_H

#include <stdbool.h>

#include <warpwave/cluster.h>

#include "cli/command.h"
#include "cli/json.h"

typedef struct rank_place {
    int rank, ranks;
    int local_rank, local_ranks; /* on this machine */
} rank_place;

/* What all commands take. */
typedef struct common_settings {
    const char *base, *format, *device;
    int metric, screen, type, place;
    int64_t block, timeout_seconds;
    bool resume, quiet, json;
} common_settings;

extern const command mpi_search, mpi_knn_graph, mpi_dedup;

/* Where this rank is among the others; set once by main(). */
extern rank_place here;

/* Reads the options; on a mistake rank 0 says so. */
exit_code mpi_parse(const command *self, const char *const *arguments, size_t count, void *settings);

/* Ends the command: WW_OK on all ranks, or MPI_Abort() after a message. */
exit_code mpi_end(const command *self, ww_status status);

/* Opens this rank's device: of a list with commas the one with the number of the rank on its machine; of auto the GPU with that
 * number, or the CPU with this rank's share of the cores. */
ww_status mpi_open_device(const char *names, ww_device **device);

/* A cluster whose shards are the slices of a file. */
typedef struct loaded {
    ww_device *device;
    ww_cluster *cluster;
    int32_t dim;
    int64_t rows;      /* of the file */
    int64_t first_row; /* of this rank */
    double load_seconds;
} loaded;
ww_status mpi_load(const common_settings *s, loaded *l);
void mpi_unload(loaded *l);

/* The JSON report of a command: what it begins and ends with. */
void mpi_report_begin(json_writer *w, const loaded *l);
void mpi_report_end(json_writer *w, const loaded *l, double search_seconds);

ww_status mpi_open_file(const char *path, const char *format, ww_matrix **file, ww_matrix_info *info);

/* Reads rows of a file and checks that they are finite. */
ww_status mpi_read_rows(const ww_matrix *file, int64_t first, int64_t count, float *rows);

/* Waits until all ranks are here, at most the timeout. */
ww_status mpi_meet(ww_cluster *cluster);

/* On rank 0, now and then, how far it has come, unless --quiet. */
typedef struct rank_progress {
    const char *what;
    int64_t total, begun_with;
    double begun_at, told_at;
    bool quiet;
} rank_progress;
void rank_progress_begin(rank_progress *p, const char *what, int64_t done, int64_t total, bool quiet);
void rank_progress_tell(rank_progress *p, int64_t done);

#define COMMON_OPTIONS(settings)                                                                                               \
    OPTION_IS_TEXT(settings, common.format, false, "--format", "F", "format of inputs whose names do not show it"),            \
        OPTION_IS_CHOICE(settings, common.metric, false, "--metric", "cosine|l2|dot",                                          \
                         "the distance or similarity to rank by; default: cosine"),                                            \
        OPTION_IS_CHOICE(settings, common.screen, false, "--screen", "int8|none",                                              \
                         "how rows are screened before exact scoring; results are the same; default: int8"),                   \
        OPTION_IS_CHOICE(settings, common.type, false, "--type", "f32|f16|bf16|i8|u8",                                         \
                         "type of the stored rows; default: f32"),                                                             \
        OPTION_IS_CHOICE(settings, common.place, false, "--rows-on", "device|host",                                            \
                         "where rows are stored; host: for more rows than the GPU holds; default: device"),                    \
        OPTION_IS_TEXT(settings, common.device, false, "--device", "NAME,...",                                                 \
                       "devices for the ranks of a machine in turn; default: auto, one GPU per rank"),                         \
        OPTION_IS_INTEGER(settings, common.block, false, "--block", "N", 1, 1 << 20,                                           \
                          "queries searched together; --resume continues at a whole block; default: 1024"),                    \
        OPTION_IS_INTEGER(settings, common.timeout_seconds, false, "--timeout", "S", 0, 2000000,                               \
                          "seconds to wait for other ranks; 0: no limit; default: 300"),                                       \
        OPTION_IS_FLAG(settings, common.resume, "--resume", "continue after the last complete block of an interrupted run"),   \
        OPTION_IS_FLAG(settings, common.quiet, "--quiet", "no progress on stderr"),                                            \
        OPTION_IS_FLAG(settings, common.json, "--json", "the report as JSON")
#define COMMON_DEFAULTS {.metric = WW_COSINE, .block = 1024, .timeout_seconds = WW_CLUSTER_TIMEOUT_MS / 1000}

#endif
