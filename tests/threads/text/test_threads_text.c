/* One collection of texts, many threads: some add texts and documents, some search by words, by meaning, and by both. */
#include <string.h>

#include <warpwave/text.h>

#include "support/models/tiny.h"
#include "support/scene.h"
#include "support/scratch.h"

enum { READERS = 3, ROUNDS = 25, WRITTEN = 4 };

static ww_device *device;
static ww_store *store;
static ww_text *notes;

/* Texts of a round are of one kind, and their ids say which. */
static ww_status put_texts(int round)
{
    static const char *const kinds[] = {"a fox", "dogs a dog"}, *const names[] = {"fox", "dog"};
    const char *texts[WRITTEN], *ids[WRITTEN];
    char names_written[WRITTEN][32];
    ww_text_rows rows = ww_text_rows_default();
    for (int i = 0; i < WRITTEN; i++) {
        snprintf(names_written[i], sizeof names_written[i], "%s%d", names[round % 2], round % 6 * WRITTEN + i);
        texts[i] = kinds[round % 2];
        ids[i] = names_written[i];
    }
    rows.count = WRITTEN, rows.texts = texts, rows.ids = ids;
    return ww_text_upsert(notes, &rows);
}

static void find(scene *s, ww_text_mode mode)
{
    static const char *const words = "fox";
    ww_results *found = NULL;
    ww_text_query asked = ww_text_query_default();
    ww_query query = ww_query_default();
    query.k = 8, query.fetch = WW_FETCH_IDS | WW_FETCH_TEXTS;
    asked.texts = &words, asked.count = 1, asked.mode = mode, asked.query = &query;
    if (ww_text_search(notes, &asked, &found) != WW_OK)
        blame(s, "search", (double)mode);
    for (int64_t i = 0; found && i < ww_results_count(found, 0); i++) {
        const char *id = ww_results_id(found, 0, i), *text = ww_results_text(found, 0, i);
        if (!id || !text || (strncmp(id, "fox", 3) == 0) != (strcmp(text, "a fox") == 0))
            blame(s, "another row's text", (double)i);
        if (mode == WW_TEXT_WORDS && id && strncmp(id, "fox", 3) != 0)
            blame(s, "a text without the word", (double)i);
    }
    ww_results_destroy(found);
}

static void *reader(void *user)
{
    scene *s = user;
    while (!atomic_load(&s->done)) {
        find(s, WW_TEXT_VECTOR);
        find(s, WW_TEXT_WORDS);
        find(s, WW_TEXT_HYBRID);
        atomic_fetch_add(&s->answers, 1);
    }
    return NULL;
}

static void *writer(void *user)
{
    scene *s = user;
    for (int round = 0; round < s->rounds; round++)
        if (put_texts(round) != WW_OK)
            blame(s, "write", round);
    atomic_store(&s->done, true);
    return NULL;
}

static void texts_are_found_while_others_are_added(void **state)
{
    (void)state;
    scene s = {.rounds = ROUNDS};
    CHECK_OK(put_texts(0));
    CHECK_OK(put_texts(1));
    scene_play(&s, READERS, reader, writer);
}

static int setup(void **state)
{
    ww_store_config how = ww_store_config_default();
    ww_text_config config = ww_text_config_default();
    if (scratch_setup(state) != 0)
        return -1;
    how.synchronous = WW_SYNCHRONOUS_OFF; /* no power fails here */
    tiny_write_words("bert", scratch_path("words.gguf"));
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("text.db"), device, &how, &store));
    char model[SCRATCH_PATH_BYTES];
    snprintf(model, sizeof model, "%s", scratch_path("words.gguf"));
    config.model = model, config.device = device, config.create = 1;
    CHECK_OK(ww_text_open(store, "notes", &config, &notes));
    return 0;
}

static int teardown(void **state)
{
    ww_text_close(notes);
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_found_while_others_are_added)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
