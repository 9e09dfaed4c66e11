/* Reading the catalogue: the assembler puts the text of the file into the program, and this reads it. */
#include "warpwave/model/catalogue.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/text.h"

__asm__(".pushsection .rodata\n"
        "models_json: .incbin \"" WARPWAVE_SOURCE_DATA_DIR "/models.json\"\n"
        ".byte 0\n"
        ".popsection\n");

extern const char models_json[] __attribute__((visibility("hidden")));

static void read_text(const char *object, const char *key, char to[CATALOGUE_TEXT])
{
    const char *value = json_find(object, key, strlen(key));
    to[0] = '\0';
    if (value && json_type_of(value) == JSON_TEXT && json_end(value) - value < CATALOGUE_TEXT)
        to[json_text_read(value, to)] = '\0';
}

static int64_t read_integer(const char *object, const char *key, int64_t otherwise)
{
    const char *value = json_find(object, key, strlen(key));
    return value ? json_number_of(value).integer : otherwise;
}

static void read_model(const char *object, catalogue_model *m)
{
    const char *sources = json_find(object, "sources", strlen("sources"));
    *m = (catalogue_model){.bytes = read_integer(object, "bytes", 0), .dimensions = read_integer(object, "dimensions", 0)};
    read_text(object, "name", m->name);
    read_text(object, "kind", m->kind);
    read_text(object, "for", m->purpose);
    read_text(object, "licence", m->licence);
    read_text(object, "file", m->file);
    read_text(object, "checked", m->checked);
    read_text(object, "sha256", m->sha256);
    for (const char *at = sources ? json_first(sources) : NULL; at && m->source_count < CATALOGUE_SOURCES; at = json_next(at)) {
        catalogue_source *s = &m->sources[m->source_count++];
        s->parts = read_integer(at, "parts", 1);
        read_text(at, "package", s->package);
        read_text(at, "member", s->member);
        read_text(at, "hub", s->hub);
    }
}

bool catalogue_at(int64_t index, catalogue_model *model)
{
    const char *list = json_find(json_root(models_json), "models", strlen("models"));
    const char *at = json_first(list);
    for (int64_t i = 0; at && i < index; i++)
        at = json_next(at);
    if (at)
        read_model(at, model);
    return at != NULL;
}

bool catalogue_find(const char *name, catalogue_model *model)
{
    for (int64_t i = 0; catalogue_at(i, model); i++)
        if (strcmp(model->name, name) == 0)
            return true;
    return false;
}

void catalogue_names(char *text, size_t capacity)
{
    catalogue_model m, after;
    text[0] = '\0';
    for (int64_t i = 0; catalogue_at(i, &m); i++) {
        text_append(text, capacity, i == 0 ? "" : catalogue_at(i + 1, &after) ? ", " : " and ");
        text_append(text, capacity, m.name);
    }
}
