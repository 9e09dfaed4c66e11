/* Any tree of types and any bytes in the buffers of Arrow's columns. The buffers are as long as the specification says, which a
 * reader cannot check; everything else may be wrong. What comes out must be JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "files/arrow/arrow.h"

enum {
    NODES_MAX = 24,
    CHILDREN_MAX = 3,
    LENGTH_MAX = 15,
    BLOCK_BYTES = 1024,
    PATTERN_BYTES = 16,
    BUFFERS = 4,
    TEXT_BYTES = 256,
    FORMAT_BYTES = 12
};

typedef struct node {
    struct ArrowSchema schema, *schema_children[CHILDREN_MAX];
    struct ArrowArray array, *array_children[CHILDREN_MAX];
    const void *buffers[BUFFERS];
    char format[FORMAT_BYTES], name[4];
    uint8_t blocks[BUFFERS][BLOCK_BYTES];
} node;

typedef struct input {
    const uint8_t *bytes;
    size_t size;
    node nodes[NODES_MAX];
    int used;
} input;

static const char *const FORMATS[] = {"n",       "b",        "c",   "C",   "s",    "S",       "i",          "I",
                                      "l",       "L",        "e",   "f",   "g",    "u",       "U",          "vu",
                                      "tdD",     "tdm",      "tts", "ttn", "tsu:", "tss:UTC", "tsn:-02:30", "d:9,2",
                                      "d:30,-3", "d:5,2,32", "+l",  "+L",  "+m",   "+s",      "+w:2",       "z"};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void node_release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void node_release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static uint8_t next(input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->bytes++;
}

static void choose_format(input *in, node *n)
{
    const uint8_t which = next(in);
    if (which < 200) {
        strcpy(n->format, FORMATS[which % (sizeof FORMATS / sizeof *FORMATS)]);
        return;
    }
    for (int i = 0; i < FORMAT_BYTES - 1; i++)
        n->format[i] = (char)next(in);
}

/* Offsets of texts stay within the block that has these. */
static void fill_blocks(input *in, node *n)
{
    const int64_t lengths = TEXT_BYTES;
    for (int b = 0; b < BUFFERS; b++)
        for (int i = 0; i < BLOCK_BYTES; i++)
            n->blocks[b][i] = i < PATTERN_BYTES ? next(in) : n->blocks[b][i - PATTERN_BYTES];
    for (int i = 0; i < BLOCK_BYTES / 8 && strcmp(n->format, "u") == 0; i++)
        ((int32_t *)n->blocks[1])[i] = n->blocks[0][i] - 2;
    for (int i = 0; i < BLOCK_BYTES / 8 && strcmp(n->format, "U") == 0; i++)
        ((int64_t *)n->blocks[1])[i] = n->blocks[0][i] - 2;
    n->array.n_buffers = next(in) % (BUFFERS + 1);
    if (n->array.n_buffers > 0) /* of views, the last one */
        memcpy(n->blocks[n->array.n_buffers - 1], &lengths, strcmp(n->format, "vu") == 0 ? sizeof lengths : 0);
    for (int b = 0; b < BUFFERS; b++)
        n->buffers[b] = next(in) % 16 == 0 ? NULL : n->blocks[b];
}

static node *make(input *in)
{
    node *n = &in->nodes[in->used++];
    choose_format(in, n);
    n->name[0] = (char)next(in);
    n->schema = (struct ArrowSchema){
        .format = n->format, .name = n->name, .children = n->schema_children, .release = node_release_schema};
    n->array = (struct ArrowArray){.length = next(in) % (LENGTH_MAX + 1),
                                   .offset = next(in) % 4,
                                   .buffers = n->buffers,
                                   .children = n->array_children,
                                   .release = node_release_array};
    fill_blocks(in, n);
    const int children = n->format[0] == '+' ? next(in) % (CHILDREN_MAX + 1) : 0;
    for (int i = 0; i < children && in->used < NODES_MAX; i++) {
        node *child = make(in);
        n->schema_children[i] = &child->schema;
        n->array_children[i] = &child->array;
        n->schema.n_children = n->array.n_children = i + 1;
    }
    if (next(in) % 8 == 0 && in->used < NODES_MAX) {
        node *values = make(in);
        n->schema.dictionary = &values->schema;
        n->array.dictionary = &values->array;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input *in = calloc(1, sizeof *in);
    if (!in)
        abort();
    in->bytes = bytes;
    in->size = size;
    const node *root = make(in);
    for (int form = WW_ARROW_PLAIN; form <= WW_ARROW_JSON; form++) {
        ww_arrow_texts *texts = NULL;
        const char *const *list = NULL;
        json_fault fault;
        const ww_status status = ww_arrow_texts_create(&root->schema, &root->array, (ww_arrow_form)form, &texts);
        const int64_t count = ww_arrow_texts_list(texts, &list);
        if ((status == WW_OK) != (texts != NULL) || (status == WW_OK && count != root->array.length))
            abort();
        for (int64_t i = 0; form == WW_ARROW_JSON && i < count; i++)
            if (list[i] && !json_check(list[i], strlen(list[i]), &fault))
                abort();
        ww_arrow_texts_destroy(texts);
    }
    free(in);
    return 0;
}
