/* How fast a model is: opening, a prompt, one token after the other, behind a long text, and many sessions at once; of an
 * encoder texts a second. One line each; median of rounds.
 *
 *     model_figures MODEL [DEVICE] [PROMPT_TOKENS] [SESSIONS]
 */
#include <string.h>

#include <warpwave/model.h>

#include "measure.h"

enum { ROUNDS = 5, STEPS = 64, SESSIONS_MAX = 256, LONG_TEXT = 2048, TEXTS = 512, TEXT_TOKENS = 20 };

typedef struct subject {
    ww_model *model;
    ww_model_info info;
    int32_t *ids; /* random ones, as many as the context */
} subject;

static void feed(ww_session *session, const int32_t *ids, size_t count)
{
    check(ww_session_feed(session, ids, count), "feeding");
}

static ww_session *session_of(const subject *s, size_t tokens)
{
    ww_session *session;
    check(ww_session_create(s->model, &session), "a session");
    if (tokens > 0)
        feed(session, s->ids, tokens);
    return session;
}

static void measure_prompt(const subject *s, size_t tokens)
{
    double times[ROUNDS];
    ww_session_destroy(session_of(s, tokens)); /* memory and modules */
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = seconds_now();
        ww_session_destroy(session_of(s, tokens));
        times[i] = seconds_now() - begin;
    }
    printf("prompt of %zu: %.0f tokens/s\n", tokens, (double)tokens / median_of(times, ROUNDS));
}

/* Generates greedy tokens after a text. */
static double measure_tokens(const subject *s, size_t before)
{
    double times[STEPS];
    ww_session *session = session_of(s, before);
    for (int i = 0; i < STEPS; i++) {
        int32_t token;
        const double begin = seconds_now();
        check(ww_session_sample(session, NULL, &token), "sampling");
        feed(session, &token, 1);
        times[i] = seconds_now() - begin;
    }
    ww_session_destroy(session);
    const double each = median_of(times, STEPS);
    printf("one token behind %zu: %.0f tokens/s (%.3f ms)\n", before, 1.0 / each, each * 1e3);
    return each;
}

static void measure_sessions(const subject *s, size_t count, double alone)
{
    double times[STEPS];
    ww_session *sessions[SESSIONS_MAX];
    int32_t tokens[SESSIONS_MAX];
    const int32_t *ids[SESSIONS_MAX];
    size_t counts[SESSIONS_MAX];
    for (size_t i = 0; i < count; i++)
        sessions[i] = session_of(s, 16 + i);
    for (int step = 0; step < STEPS; step++) {
        const double begin = seconds_now();
        for (size_t i = 0; i < count; i++) {
            check(ww_session_sample(sessions[i], NULL, &tokens[i]), "sampling");
            ids[i] = &tokens[i];
            counts[i] = 1;
        }
        check(ww_sessions_feed(sessions, ids, counts, count), "feeding sessions");
        times[step] = seconds_now() - begin;
    }
    for (size_t i = 0; i < count; i++)
        ww_session_destroy(sessions[i]);
    const double each = median_of(times, STEPS);
    printf("%zu sessions at once: %.0f tokens/s, %.1f times one\n", count, (double)count / each, (double)count * alone / each);
}

static void measure_texts(const subject *s)
{
    static size_t counts[TEXTS];
    double times[ROUNDS];
    int32_t *ids = malloc(sizeof *ids * TEXTS * TEXT_TOKENS);
    float *vectors = malloc(sizeof *vectors * TEXTS * (size_t)s->info.width);
    if (!ids || !vectors)
        exit(1);
    for (int i = 0; i < TEXTS; i++)
        counts[i] = TEXT_TOKENS;
    for (int i = 0; i < TEXTS * TEXT_TOKENS; i++)
        ids[i] = s->ids[i % s->info.context];
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = seconds_now();
        check(ww_model_embed_tokens(s->model, ids, counts, TEXTS, vectors), "embedding");
        times[i] = seconds_now() - begin;
    }
    printf("texts of %d tokens: %.0f texts/s\n", TEXT_TOKENS, TEXTS / median_of(times, ROUNDS));
    free(vectors);
    free(ids);
}

int main(int argc, char **argv)
{
    subject s = {.info = ww_model_info_default()};
    ww_device *device;
    if (argc < 2) {
        fprintf(stderr, "usage: model_figures MODEL [DEVICE] [PROMPT_TOKENS] [SESSIONS]\n");
        return 2;
    }
    check(ww_device_open(argc > 2 ? argv[2] : "cpu", &device), "the device");
    const double begin = seconds_now();
    check(ww_model_open(argv[1], device, NULL, &s.model), "the model");
    const double opened = seconds_now() - begin;
    check(ww_model_describe(s.model, &s.info), "the model");
    printf("%s, %s on %s: opened in %.2f s, %.1f GB/s\n", s.info.name, s.info.architecture, s.info.device, opened,
           (double)s.info.weight_bytes / opened * 1e-9);
    s.ids = malloc((size_t)s.info.context * sizeof *s.ids);
    if (!s.ids)
        return 1;
    uint32_t random = 1;
    for (int64_t i = 0; i < s.info.context; i++) {
        random = random * 1664525u + 1013904223u;
        s.ids[i] = (int32_t)((random >> 8) % (uint32_t)s.info.vocabulary);
    }
    if (s.info.kind == WW_MODEL_ENCODER) {
        measure_texts(&s);
    } else {
        const size_t count = argc > 4 ? (size_t)atoi(argv[4]) : 16;
        measure_prompt(&s, argc > 3 ? (size_t)atoi(argv[3]) : 512);
        const double alone = measure_tokens(&s, 16);
        if (s.info.context > LONG_TEXT + STEPS && !getenv("BENCH_SHORT"))
            (void)measure_tokens(&s, LONG_TEXT);
        if (count >= 1 && count <= SESSIONS_MAX)
            measure_sessions(&s, count, alone);
    }
    free(s.ids);
    ww_model_close(s.model);
    ww_device_close(device);
    return 0;
}
