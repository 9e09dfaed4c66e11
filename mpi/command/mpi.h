/* `warpwave-mpi`: what its commands share.
 *
 * All ranks run the same command with the same arguments. A rank that fails alone prints why and calls MPI_Abort(), which ends
 * all of them. If all fail together, rank 0 prints the message, or the next rank that is still alive.
 */
#ifndef CLI_MPI_MPI_H
#define CLI_MPI_MPI_H

#include <stdbool.h>

#include <warpwave/cluster.h>

#include "warpwave/command.h"
#include "warpwave/json.h"

typedef struct rank_place {
    int rank, ranks;
    int local_rank, local_ranks; /* on this machine */
} rank_place;

/* Options of all commands. */
typedef struct common_settings {
    const char *base, *format, *device;
    int metric, screen, type, place;
    int64_t block, timeout_seconds;
    bool resume, quiet, json;
} common_settings;

extern const command mpi_search, mpi_knn_graph, mpi_dedup;

/* This rank's place among the others; main() sets it once. */
extern rank_place here;

/* Reads the options; rank 0 prints a mistake. */
exit_code mpi_parse(const command *self, const char *const *arguments, size_t count, void *settings);

/* Ends the command: WW_OK on all ranks, or MPI_Abort() after a message. */
exit_code mpi_end(const command *self, ww_status status);

/* Opens this rank's device. `device` may list devices with commas: the rank takes the one with its index on its machine. For
 * auto it takes the GPU with that index, or the CPU with its share of the cores. */
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

/* Begin and end the JSON report of a command. */
void mpi_report_begin(json_writer *w, const loaded *l);
void mpi_report_end(json_writer *w, const loaded *l, double search_seconds);

ww_status mpi_open_file(const char *path, const char *format, ww_matrix **file, ww_matrix_info *info);

/* Reads rows of a file and checks that they are finite. */
ww_status mpi_read_rows(const ww_matrix *file, int64_t first, int64_t count, float *rows);

/* Waits until all ranks have arrived, at most as long as the timeout. */
ww_status mpi_meet(ww_cluster *cluster);

/* Progress that rank 0 prints now and then, unless --quiet is given. */
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
