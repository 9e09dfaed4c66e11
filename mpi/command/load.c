/* Before the search: opens a device for each rank and loads its slice of the base file onto it. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/text.h"
#include "mpi/command/mpi.h"
#include "mpi/slices.h"
#include "warpwave/terminal.h"

/* ---- devices --------------------------------------------------------------------------------------------------------------
 */

/* If the launcher gives every rank all cores of the machine, each rank takes an equal share. If the launcher binds ranks, the
 * CPU backend uses the cores that it was given. */
static void share_cores(void)
{
    cpu_set_t allowed;
    char threads[32];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (getenv("WARPWAVE_THREADS") || sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < cores)
        return;
    snprintf(threads, sizeof threads, "%ld", cores / here.local_ranks > 0 ? cores / here.local_ranks : 1);
    setenv("WARPWAVE_THREADS", threads, 0);
}

/* Finds the GPU with this rank's index, from the first backend that has any: CUDA before ROCm, as for auto. */
static bool find_gpu(char *name, size_t capacity)
{
    enum { DEVICES_MAX = 64 };
    ww_device_info infos[DEVICES_MAX];
    const char *const backends[] = {"cuda", "rocm"};
    size_t count = 0;
    for (size_t i = 0; i < DEVICES_MAX; i++)
        infos[i] = ww_device_info_default();
    if (ww_devices(infos, DEVICES_MAX, &count) != WW_OK)
        return false;
    count = min_size(count, DEVICES_MAX);
    for (int b = 0; b < 2; b++) {
        int there = 0, wanted = 0;
        for (size_t i = 0; i < count; i++)
            there += strcmp(infos[i].backend, backends[b]) == 0;
        if (there == 0)
            continue;
        for (size_t i = 0; i < count; i++)
            if (strcmp(infos[i].backend, backends[b]) == 0 && wanted++ == here.local_rank % there)
                text_copy(name, capacity, infos[i].id);
        return true;
    }
    return false;
}

ww_status mpi_open_device(const char *names, ww_device **device)
{
    char list[1024], *rest = list, *of_rank[64], automatic[32];
    int count = 0;
    text_copy(list, sizeof list, names ? names : "auto");
    for (char *name; count < 64 && (name = strsep(&rest, ",")) != NULL;)
        of_rank[count++] = name;
    const char *name = of_rank[here.local_rank % count];
    share_cores();
    if (strcmp(name, "auto") == 0 && !getenv("WARPWAVE_DEVICE") && find_gpu(automatic, sizeof automatic))
        name = automatic;
    return command_open_device(name, device);
}

/* ---- rows -----------------------------------------------------------------------------------------------------------------
 */

ww_status mpi_open_file(const char *path, const char *format, ww_matrix **file, ww_matrix_info *info)
{
    ww_matrix_options options = ww_matrix_options_default();
    options.format = format;
    *info = ww_matrix_info_default();
    const ww_status status = ww_matrix_open_with(path, &options, file);
    return status == WW_OK ? ww_matrix_describe(*file, info) : status;
}

ww_status mpi_read_rows(const ww_matrix *file, int64_t first, int64_t count, float *rows)
{
    const ww_status status = ww_matrix_read_f32(file, first, count, rows);
    return status == WW_OK ? ww_matrix_check_finite(file, first, count, rows) : status;
}

void mpi_report_begin(json_writer *w, const loaded *l)
{
    json_open(w, NULL, '{');
    json_put_integer(w, "ranks", here.ranks);
    json_put_integer(w, "rows", l->rows);
    json_put_integer(w, "dim", l->dim);
}

void mpi_report_end(json_writer *w, const loaded *l, double search_seconds)
{
    json_put_real(w, "load_seconds", l->load_seconds);
    json_put_real(w, "search_seconds", search_seconds);
    json_close(w);
}

ww_status mpi_meet(ww_cluster *cluster)
{
    ww_cluster_info info = ww_cluster_info_default();
    return ww_cluster_describe(cluster, &info);
}

ww_status mpi_load(const common_settings *s, loaded *l)
{
    ww_matrix *file = NULL;
    ww_matrix_info info;
    ww_matrix_options options = ww_matrix_options_default();
    const double begun = seconds_now();
    ww_status status = mpi_open_file(s->base, s->format, &file, &info);
    ww_matrix_close(file);
    if (status == WW_OK && info.dim > WW_DIM_MAX)
        status = ww_fail(WW_UNSUPPORTED, "%s: the vectors have dimension %lld; the maximum is %d", s->base, (long long)info.dim,
                         WW_DIM_MAX);
    if (status == WW_OK)
        status = mpi_open_device(s->device, &l->device);
    if (status != WW_OK)
        return status;
    ww_cluster_config config = ww_cluster_config_default();
    config.name = s->base;
    config.dim = l->dim = (int32_t)info.dim;
    config.metric = (ww_metric)s->metric;
    config.screen = (ww_screen)s->screen;
    config.type = (ww_vector_type)s->type;
    config.rows = (ww_row_place)s->place;
    config.timeout_ms = (int32_t)(s->timeout_seconds * 1000);
    options.format = s->format;
    l->rows = info.rows;
    l->first_row = slice_first(info.rows, here.rank, here.ranks);
    status = ww_cluster_create(MPI_COMM_WORLD, l->device, &config, &l->cluster);
    if (status == WW_OK)
        status = ww_cluster_add_file(l->cluster, s->base, &options, NULL, NULL);
    if (status == WW_OK)
        status = mpi_meet(l->cluster);
    l->load_seconds = seconds_now() - begun;
    return status;
}

void mpi_unload(loaded *l)
{
    ww_cluster_destroy(l->cluster);
    ww_device_close(l->device);
}

/* ---- progress -------------------------------------------------------------------------------------------------------------
 */

static const double tell_every_seconds = 5.0;

void rank_progress_begin(rank_progress *p, const char *what, int64_t done, int64_t total, bool quiet)
{
    const double now = seconds_now();
    *p = (rank_progress){
        .what = what, .total = total, .begun_with = done, .begun_at = now, .told_at = now, .quiet = quiet || here.rank != 0};
    if (!p->quiet && done > 0)
        fprintf(stderr, "%s: continues after %lld of %lld\n", what, (long long)done, (long long)total);
}

void rank_progress_tell(rank_progress *p, int64_t done)
{
    const double now = seconds_now();
    if (p->quiet || now - p->told_at < tell_every_seconds || done <= p->begun_with)
        return;
    const double left = (now - p->begun_at) * (double)(p->total - done) / (double)(done - p->begun_with);
    fprintf(stderr, "%s: %lld of %lld, about %.0f s left\n", p->what, (long long)done, (long long)p->total, left);
    p->told_at = now;
}
