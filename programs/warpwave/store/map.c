/* `warpwave store map`: writes the map of a collection as numbers or as a picture. */
#include "warpwave/store/map.h"

#include <stdio.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "files/matrix.h"
#include "warpwave/command.h"
#include "warpwave/file_uses.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

enum { IDS_AT_ONCE = 4096 };

typedef enum map_format { MAP_NPY, MAP_SVG, MAP_PNG } map_format;

typedef struct map_files {
    output points, ids;
} map_files;

static ww_status choose_format(const store_settings *s, map_format *format)
{
    static const char *const endings[] = {[MAP_NPY] = ".npy", [MAP_SVG] = ".svg", [MAP_PNG] = ".png"};
    size_t i = 0;
    while (i < sizeof endings / sizeof *endings && !path_ends_in(s->out, endings[i]))
        i++;
    if (i == sizeof endings / sizeof *endings)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "'%s': a map's file must end in .svg, .png or .npy", s->out));
    *format = (map_format)i;
    if (*format == MAP_NPY && s->color)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--color is for pictures, .svg and .png"));
    return WW_OK;
}

static ww_status check_files(const store_call *call)
{
    const file_use uses[] = {{.what = "STORE", .path = call->operands[0]},
                             {.what = "--out", .path = call->settings.out, .output = true},
                             {.what = "--ids", .path = call->settings.ids, .output = true}};
    return file_uses_check(uses, sizeof uses / sizeof *uses);
}

/* ---- files ----------------------------------------------------------------------------------------------------------------
 */

static ww_status write_points(const picture *p, map_format format, const char *path, output *to)
{
    if (format == MAP_NPY) {
        const matrix_write m = {
            .data = p->count > 0 ? p->points : NULL, .rows = p->count, .dim = 2, .element = WW_ELEMENT_F32, .npy = true};
        return matrix_write_begin(to, path, &m);
    }
    const ww_status status = output_open(to, path);
    if (status != WW_OK)
        return status;
    return format == MAP_SVG ? picture_write_svg(p, to) : picture_write_png(p, to);
}

static ww_status write_some_ids(ww_collection *collection, const int64_t *handles, int64_t count, output *to)
{
    ww_results *rows = NULL;
    ww_get get = ww_get_default();
    get.handles = handles;
    get.count = count;
    get.fetch = WW_FETCH_IDS;
    ww_status status = ww_collection_get(collection, &get, &rows);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const char *id = ww_results_id(rows, 0, i); /* NULL: the row was removed meanwhile */
        if (id && strpbrk(id, "\r\n"))
            status = ww_fail(WW_UNSUPPORTED, "an id has a line end in it, which a file of one id per line cannot hold");
        if (status == WW_OK && id)
            status = output_write(to, id, strlen(id));
        if (status == WW_OK)
            status = output_write(to, "\n", 1);
    }
    ww_results_destroy(rows);
    return status;
}

static ww_status write_ids(ww_collection *collection, const ww_map *map, const char *path, output *to)
{
    const int64_t count = ww_map_count(map);
    ww_status status = output_open(to, path);
    for (int64_t first = 0; status == WW_OK && first < count; first += IDS_AT_ONCE)
        status = write_some_ids(collection, ww_map_handles(map) + first, min_i64(IDS_AT_ONCE, count - first), to);
    return status;
}

/* Writes both files before either is renamed. */
static ww_status write_files(const store_call *call, const ww_map *map, const picture *p, map_format format)
{
    const store_settings *s = &call->settings;
    map_files *files = memory_alloc_zeroed(1, sizeof *files);
    if (!files)
        return memory_failed("writing a map", sizeof *files);
    files->points.descriptor = files->ids.descriptor = -1;
    ww_status status = write_points(p, format, output_path(s->out), &files->points);
    if (status == WW_OK && s->ids)
        status = write_ids(call->collection, map, output_path(s->ids), &files->ids);
    if (status == WW_OK && s->ids)
        status = output_settle(&files->ids);
    if (status == WW_OK)
        status = output_finish(&files->points);
    if (status == WW_OK && s->ids)
        status = output_finish(&files->ids);
    output_discard(&files->ids);
    output_discard(&files->points);
    memory_free(files);
    return status;
}

/* ---- the report -----------------------------------------------------------------------------------------------------------
 */

static void print_json(const store_call *call, const ww_map_info *info, const picture *p)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_text(&w, "collection", call->operands[1]);
    json_put_text(&w, "file", call->settings.out);
    json_put_integer(&w, "rows", info->rows);
    json_put_integer(&w, "rows_placed", info->rows_placed);
    json_put_text(&w, "origin", ww_map_origin_name(info->origin));
    json_put_integer(&w, "neighbours", info->neighbours);
    json_put_integer(&w, "steps", info->steps);
    json_put_integer(&w, "seed", info->seed);
    if (p->title) {
        json_open(&w, "legend", '[');
        for (int n = 1; n <= PICTURE_CLASSES; n++) {
            const int which = n % PICTURE_CLASSES;
            char colour[16];
            snprintf(colour, sizeof colour, "#%06x", picture_colour(p, which));
            if (p->legend[which].count == 0)
                continue;
            json_open(&w, NULL, '{');
            json_put_text(&w, "value", p->legend[which].label);
            json_put_integer(&w, "rows", p->legend[which].count);
            json_put_text(&w, "color", colour);
            json_close(&w);
        }
        json_close(&w);
    }
    json_close(&w);
}

static void print_plainly(const store_call *call, const ww_map_info *info, const picture *p)
{
    printf("%lld point%s, %s with %d neighbour%s, %d step%s and seed %lld", (long long)info->rows, plural(info->rows),
           ww_map_origin_name(info->origin), info->neighbours, plural(info->neighbours), info->steps, plural(info->steps),
           (long long)info->seed);
    if (info->rows_placed > 0)
        printf("; %lld placed among their neighbours since it was made", (long long)info->rows_placed);
    printf("\nwrote ");
    print_plain(stdout, call->settings.out);
    putchar('\n');
    for (int n = 1; p->title && n <= PICTURE_CLASSES; n++) {
        const int which = n % PICTURE_CLASSES;
        if (p->legend[which].count == 0)
            continue;
        printf("  #%06x %10lld  ", picture_colour(p, which), (long long)p->legend[which].count);
        print_plain(stdout, p->legend[which].label);
        putchar('\n');
    }
}

/* ---- the action -----------------------------------------------------------------------------------------------------------
 */

static ww_status write_map(const store_call *call, const ww_map *map, map_format format)
{
    const store_settings *s = &call->settings;
    ww_map_info info = ww_map_info_default();
    ww_status status = ww_map_describe(map, &info);
    picture p = {.points = ww_map_points(map), .count = info.rows, .title = s->color};
    uint8_t *classes = NULL;
    if (status == WW_OK && s->color) {
        classes = memory_alloc((size_t)info.rows);
        p.classes = classes;
        status = classes ? map_colours(call->collection, map, s->color, &p, classes)
                         : memory_failed("the colours of a map", (size_t)info.rows);
    }
    if (status == WW_OK)
        status = write_files(call, map, &p, format);
    if (status == WW_OK && s->json)
        print_json(call, &info, &p);
    else if (status == WW_OK && terminal_notes())
        print_plainly(call, &info, &p);
    memory_free(classes);
    return status;
}

ww_status store_map(store_call *call)
{
    const store_settings *s = &call->settings;
    ww_map_config config = ww_map_config_default();
    ww_map *map = NULL;
    map_format format = MAP_NPY;
    progress bar;
    ww_status status = choose_format(s, &format);
    if (status == WW_OK)
        status = check_files(call);
    if (status != WW_OK)
        return status;
    config.neighbours = (int32_t)s->neighbours;
    config.steps = (int32_t)s->steps;
    config.seed = s->seed;
    config.remake = s->remake;
    config.progress = progress_report;
    config.progress_user = &bar;
    progress_begin(&bar, "making the map", 0);
    status = ww_collection_map(call->collection, &config, &map);
    progress_end(&bar);
    if (status == WW_OK)
        status = write_map(call, map, format);
    ww_map_destroy(map);
    return status;
}
