/* `warpwave demo`: recognises handwritten digits by their nearest neighbours.
 *
 * 1,500 digits go into a collection, each with its label as payload; the other 297, written by other people, are the queries.
 * The k nearest vote on the digit. The demo uses the library as any program would: labels come back from payloads. The
 * collection is in memory, or in a store, where the next run finds the rows again. The screen that it ends with also has what
 * the same search answers on each device and with each instruction set (compare.h).
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warpwave/device.h>
#include <warpwave/vectors.h>

#include "base/integers.h"
#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/demo/compare.h"
#include "warpwave/demo/digits.h"
#include "warpwave/terminal.h"

enum { INDEXED = 1500, ASKED = DIGIT_COUNT - INDEXED, LABELS = 10, K_MAX = 100, PICTURES_MAX = 8, TEXT_BYTES = 24 };

typedef struct demo_settings {
    const char *device, *store;
    int64_t k;
    int metric; /* a ww_metric */
} demo_settings;

typedef struct demo {
    demo_settings settings;
    digits *digits;
    ww_device *device;
    ww_device_info device_info;
    ww_collection *collection;
    int64_t found_before; /* rows that the store had already */
    ww_results *results;
    int votes[ASKED]; /* the digit that the neighbours voted for */
    double add_seconds, search_seconds;
    comparison everywhere;
} demo;

static ww_status demo_open(demo *d)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "digits";
    config.dim = DIGIT_PIXELS;
    config.metric = (ww_metric)d->settings.metric;
    d->device_info = ww_device_info_default();
    ww_status status = digits_read(&d->digits);
    if (status == WW_OK)
        status = command_open_device(d->settings.device, &d->device);
    if (status == WW_OK)
        status = ww_device_describe(d->device, &d->device_info);
    if (status == WW_OK)
        status = d->settings.store ? digits_in_store(d->settings.store, d->device, &config, &d->collection)
                                   : ww_collection_create(d->device, &config, &d->collection);
    if (status == WW_OK)
        d->found_before = ww_collection_count(d->collection);
    if (status == WW_OK && d->found_before != 0 && d->found_before != INDEXED)
        status = ww_fail(WW_INVALID_ARGUMENT,
                         "%s: its collection 'digits' has %lld rows, not the %d of this demo; give another file",
                         d->settings.store, (long long)d->found_before, INDEXED);
    return status;
}

static ww_status demo_add(demo *d)
{
    char id_texts[INDEXED][TEXT_BYTES], payload_texts[INDEXED][TEXT_BYTES];
    const char *ids[INDEXED], *payloads[INDEXED];
    for (int i = 0; i < INDEXED; i++) {
        snprintf(id_texts[i], TEXT_BYTES, "digit-%d", i);
        snprintf(payload_texts[i], TEXT_BYTES, "{\"label\":%d}", d->digits->labels[i]);
        ids[i] = id_texts[i];
        payloads[i] = payload_texts[i];
    }
    ww_rows rows = ww_rows_default();
    rows.count = INDEXED;
    rows.dim = DIGIT_PIXELS;
    rows.vectors = d->digits->pixels[0];
    rows.ids = ids;
    rows.payloads = payloads;
    const double start = seconds_now();
    const ww_status status = ww_collection_add(d->collection, &rows);
    d->add_seconds = seconds_now() - start;
    return status;
}

static ww_status demo_search(demo *d)
{
    ww_query query = ww_query_default();
    query.queries = d->digits->pixels[INDEXED];
    query.query_count = ASKED;
    query.dim = DIGIT_PIXELS;
    query.k = (int32_t)d->settings.k;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
    const double start = seconds_now();
    const ww_status status = ww_collection_query(d->collection, &query, &d->results);
    d->search_seconds = seconds_now() - start;
    return status == WW_OK ? interrupt_check() : status;
}

/* The number of a digit, from the id of a neighbour. */
static int64_t neighbour(const demo *d, int asked, int i)
{
    const char *id = ww_results_id(d->results, asked, i);
    const long number = id && strncmp(id, "digit-", 6) == 0 ? strtol(id + 6, NULL, 10) : -1;
    return number >= 0 && number < INDEXED ? number : 0;
}

/* The label in the payload of a neighbour. */
static ww_status neighbour_label(const demo *d, int asked, int i, int *label)
{
    const char *payload = ww_results_payload(d->results, asked, i);
    json_t *object = payload ? json_loads(payload, 0, NULL) : NULL;
    const json_t *value = json_object_get(object, "label");
    const json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    json_decref(object);
    if (number < 0 || number >= LABELS)
        return ww_fail(WW_CORRUPT_FILE, "a payload of the digits is '%s', without a label", payload ? payload : "");
    *label = (int)number;
    return WW_OK;
}

/* The label that most of the k nearest have. If labels have equally many votes, the one with the nearest neighbour wins. */
static ww_status vote(demo *d, int asked)
{
    int counts[LABELS] = {0}, labels[K_MAX] = {0}, best = 0;
    for (int i = 0; i < d->settings.k; i++) {
        const ww_status status = neighbour_label(d, asked, i, &labels[i]);
        if (status != WW_OK)
            return status;
        counts[labels[i]]++;
    }
    for (int i = 1; i < d->settings.k; i++)
        if (counts[labels[i]] > counts[labels[best]])
            best = i;
    d->votes[asked] = labels[best];
    return WW_OK;
}

static bool is_right(const demo *d, int asked)
{
    return d->votes[asked] == d->digits->labels[INDEXED + asked];
}

static void draw_asked(const demo *d, int asked)
{
    const float *pixels[PICTURES_MAX];
    const char *captions[PICTURES_MAX];
    char texts[PICTURES_MAX][PICTURE_COLUMNS + 1];
    const int fit = (terminal_columns() + PICTURE_GAP) / (PICTURE_COLUMNS + PICTURE_GAP);
    const int count = max_i32(2, min_i32(fit, (int32_t)min_i64(d->settings.k + 1, PICTURES_MAX)));
    for (int i = 0; i < count; i++) {
        const int64_t row = i == 0 ? INDEXED + asked : neighbour(d, asked, i - 1);
        pixels[i] = d->digits->pixels[row];
        captions[i] = texts[i];
        if (i == 0)
            snprintf(texts[i], sizeof texts[i], "asked: a %d", d->digits->labels[row]);
        else
            snprintf(texts[i], sizeof texts[i], "%d   %.4g", d->digits->labels[row],
                     (double)ww_results_scores(d->results, asked)[i - 1]);
    }
    digits_draw(pixels, captions, count, terminal_has_pictures());
    printf("the neighbours say %d%s\n\n", d->votes[asked], is_right(d, asked) ? "" : ", which is wrong");
}

/* Draws the first 3 that was recognised and the first digit that was not: with the rest they fit on one screen. */
static void draw_some(const demo *d)
{
    int recognised = 0, mistaken = 0;
    while (recognised < ASKED && !(is_right(d, recognised) && d->digits->labels[INDEXED + recognised] == 3))
        recognised++;
    while (mistaken < ASKED && is_right(d, mistaken))
        mistaken++;
    if (recognised < ASKED)
        draw_asked(d, recognised);
    if (mistaken < ASKED)
        draw_asked(d, mistaken);
}

static void demo_report(const demo *d)
{
    int right = 0;
    for (int i = 0; i < ASKED; i++)
        right += is_right(d, i);
    printf(
        "Handwritten digits: %d in the collection, %d to recognise. On the left a digit to recognise, beside it its nearest\n"
        "neighbours, each with its label and its %s.\n\n",
        INDEXED, ASKED, d->settings.metric == WW_L2 ? "distance" : "score");
    draw_some(d);
    printf("accuracy  %.4f: the vote of the %lld nearest by %s was right for %d of %d\n", (double)right / ASKED,
           (long long)d->settings.k, ww_metric_name((ww_metric)d->settings.metric), right, ASKED);
    if (d->found_before > 0)
        printf("time      %.3g ms to search for %d; the %d rows were in %s\n", d->search_seconds * 1e3, ASKED, INDEXED,
               d->settings.store);
    else
        printf("time      %.3g ms to add %d rows, %.3g ms to search for %d\n", d->add_seconds * 1e3, INDEXED,
               d->search_seconds * 1e3, ASKED);
    printf("device    ");
    command_print_device(stdout, &d->device_info);
    putchar('\n');
    compare_print(&d->everywhere);
    printf("What to try next:\n"
           "  warpwave demo --store digits.db                      keep the digits in a SQLite file\n"
           "  warpwave serve digits.db                             and see them in a browser: http://127.0.0.1:6333\n"
           "  warpwave search --base FILE --queries FILE -k 10     search your own vectors; warpwave help search has more\n");
}

static ww_status demonstrate(const demo_settings *settings)
{
    demo d = {.settings = *settings};
    ww_status status = compare_everywhere(&d.everywhere);
    if (status == WW_OK)
        status = demo_open(&d);
    if (status == WW_OK && d.found_before == 0)
        status = demo_add(&d);
    if (status == WW_OK)
        status = demo_search(&d);
    for (int i = 0; i < ASKED && status == WW_OK; i++)
        status = vote(&d, i);
    if (status == WW_OK)
        demo_report(&d);
    ww_results_destroy(d.results);
    ww_collection_destroy(d.collection);
    ww_device_close(d.device);
    memory_free(d.digits);
    return status;
}

static exit_code demo_run(const char *const *arguments, size_t count)
{
    demo_settings settings = {.k = 5, .metric = WW_COSINE};
    const exit_code code = command_parse(&command_demo, arguments, count, &settings);
    return code != EXIT_CODE_OK ? code : command_end(&command_demo, demonstrate(&settings));
}

static const option options[] = {
    OPTION_IS_TEXT(demo_settings, device, false, "--device", "D", "auto, cpu, cuda:0, ...; default: auto"),
    OPTION_IS_CHOICE(demo_settings, metric, false, "--metric", "cosine|l2|dot",
                     "the distance or similarity to rank by; default: cosine"),
    OPTION_IS_INTEGER(demo_settings, k, false, "-k", "N", 1, K_MAX, "neighbours that vote, 1 to 100; default: 5"),
    OPTION_IS_TEXT(demo_settings, store, false, "--store", "FILE",
                   "keep the digits in a collection of this store; see `warpwave help store`"),
};

const command command_demo = {
    .name = "demo",
    .summary = "Recognise handwritten digits by their nearest neighbours, and draw them",
    .notes = "The digits are 'Optical Recognition of Handwritten Digits' by E. Alpaydin and C. Kaynak, from the UCI Machine\n"
             "Learning Repository, CC BY 4.0. They are part of the program.\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = demo_run,
};
