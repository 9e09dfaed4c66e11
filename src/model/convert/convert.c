/* A folder to a GGUF file: names, keys, and tensors row by row through the device that codes them. */
#include "model/convert/convert.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warpwave/model.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/convert/folder.h"
#include "model/convert/keys.h"

enum { PIECE_BYTES = 16 << 20 }; /* of floats */

/* One tensor on its way. */
typedef struct converted {
    int64_t file, index; /* in the folder */
    ww_gguf_tensor tensor;
    ww_quant_type from;
    int64_t heads;        /* whose rows are put in pairs; 0: rows stay as they are */
    int64_t skipped_rows; /* in front, which are not written */
    bool adds_one;        /* to every number: a norm that is kept less 1 */
    char name[GGUF_NAME_BYTES];
} converted;

typedef struct conversion {
    const convert_job *job;
    const architecture_names *architecture;
    folder_tensors folder;
    json_t *config;
    ww_gguf_writer *out;
    ww_quant_type type;
    bool keeps_type;
    converted *tensors;
    int64_t count;
    int64_t done_bytes;
    convert_report report;
} conversion;

/* ---- what is in the folder ------------------------------------------------------------------------------------------------
 */

static ww_status find_architecture(conversion *c)
{
    const char *class = json_string_value(json_array_get(json_object_get(c->config, "architectures"), 0));
    char known[256] = "";
    c->architecture = names_find(class ? class : "");
    if (c->architecture) {
        text_copy(c->report.architecture, sizeof c->report.architecture, c->architecture->name);
        return WW_OK;
    }
    for (const architecture_names *a = ARCHITECTURES; a->name; a++)
        for (const char *const *one = a->classes; *one; one++) {
            text_append(known, sizeof known, known[0] ? ", " : "");
            text_append(known, sizeof known, *one);
        }
    return ww_fail(WW_UNSUPPORTED, "%s/config.json: the architecture '%.60s' is not known; known are %s", c->job->folder,
                   class ? class : "", known);
}

static bool element_type(ww_element element, ww_quant_type *type)
{
    *type = element == WW_ELEMENT_F16 ? WW_QUANT_F16 : element == WW_ELEMENT_BF16 ? WW_QUANT_BF16 : WW_QUANT_F32;
    return element == WW_ELEMENT_F32 || element == WW_ELEMENT_F16 || element == WW_ELEMENT_BF16;
}

/* Vectors, and the small matrices that stand for places, stay floats. */
static bool is_coded(const ww_gguf_tensor *t)
{
    return t->rank == 2 && !strstr(t->name, "norm") && strcmp(t->name, "position_embd.weight") != 0 &&
           strcmp(t->name, "token_types.weight") != 0 && strncmp(t->name, "cls.", 4) != 0 && strncmp(t->name, "dense_", 6) != 0;
}

static ww_quant_type wanted_type(conversion *c, const ww_gguf_tensor *t, ww_quant_type from)
{
    if (!is_coded(t))
        return WW_QUANT_F32;
    if (c->keeps_type)
        return from;
    if (t->shape[0] % ww_quant_block_elements(c->type) == 0)
        return c->type;
    c->report.other++;
    return t->shape[0] % ww_quant_block_elements(WW_QUANT_Q8_0) == 0 ? WW_QUANT_Q8_0 : WW_QUANT_F16;
}

static int64_t permuted_heads(const conversion *c, const tensor_name *name)
{
    const int64_t heads = json_member_integer(c->config, "num_attention_heads", 0);
    if (!c->architecture->permutes || (!name->query && !name->key))
        return 0;
    return name->query ? heads : json_member_integer(c->config, "num_key_value_heads", heads);
}

/* A folder of a dense layer has one tensor, which is named by the folder. */
static ww_status name_tensor(const conversion *c, int64_t file, const char *from, tensor_name *name)
{
    if (file < c->folder.main_count)
        return names_map(c->architecture, from, name);
    *name = (tensor_name){0};
    if (strcmp(from, "linear.weight") != 0)
        return ww_fail(WW_UNSUPPORTED, "%d_Dense: the tensor '%.200s' is none of a dense layer without a bias",
                       (int)(file - c->folder.main_count) + 2, from);
    snprintf(name->name, sizeof name->name, "dense_%d.weight", (int)(file - c->folder.main_count) + 2);
    return WW_OK;
}

static ww_status add_tensor(conversion *c, int64_t file, int64_t index)
{
    ww_array_info info = ww_array_info_default();
    tensor_name name;
    converted *t = &c->tensors[c->count];
    ww_status status = ww_safetensors_at(c->folder.files[file], index, &info);
    if (status == WW_OK)
        status = name_tensor(c, file, info.name, &name);
    if (status != WW_OK || name.skip)
        return status;
    *t = (converted){.file = file,
                     .index = index,
                     .tensor = ww_gguf_tensor_default(),
                     .heads = permuted_heads(c, &name),
                     .adds_one = c->architecture->norms_one && name.norm};
    if (!element_type(info.element, &t->from) || info.rank < 1 || info.rank > 2 || info.elements == 0)
        return ww_fail(WW_UNSUPPORTED, "the tensor '%.200s' is %s of rank %d; f32, f16 and bf16 of rank 1 and 2 are known",
                       info.name, info.type, (int)info.rank);
    text_copy(t->name, sizeof t->name, name.name);
    t->tensor.name = t->name;
    t->tensor.rank = info.rank;
    for (int32_t i = 0; i < WW_GGUF_RANK_MAX; i++)
        t->tensor.shape[i] = i < info.rank ? info.shape[info.rank - 1 - i] : 1;
    if (strcmp(t->name, "position_embd.weight") == 0 && info.rank == 2) {
        t->skipped_rows = positions_skipped(c->architecture, c->config);
        t->tensor.shape[1] -= t->skipped_rows;
        if (t->tensor.shape[1] < 1)
            return ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' has no more than %lld rows", info.name,
                           (long long)t->skipped_rows);
    }
    const int64_t rows = info.rank == 2 ? t->tensor.shape[1] : t->tensor.shape[0]; /* what is permuted */
    if (t->heads < 0 || (t->heads > 0 && rows % (2 * t->heads) != 0))
        return ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' has %lld rows for %lld heads", info.name, (long long)rows,
                       (long long)t->heads);
    t->tensor.type = (int32_t)wanted_type(c, &t->tensor, t->from);
    c->report.bytes_before += info.bytes;
    c->count++;
    return ww_gguf_writer_tensor(c->out, &t->tensor);
}

static ww_status list_tensors(conversion *c)
{
    int64_t all = 0;
    ww_status status = WW_OK;
    for (int64_t f = 0; f < c->folder.file_count; f++)
        all += ww_safetensors_count(c->folder.files[f]);
    c->tensors = memory_alloc_zeroed((size_t)all + 1, sizeof *c->tensors);
    if (!c->tensors)
        return memory_failed("tensors", (size_t)all * sizeof *c->tensors);
    for (int64_t f = 0; status == WW_OK && f < c->folder.file_count; f++)
        for (int64_t i = 0; status == WW_OK && i < ww_safetensors_count(c->folder.files[f]); i++)
            status = add_tensor(c, f, i);
    c->report.tensors = c->count;
    return status;
}

/* A size that config.json gives and a tensor has. */
typedef struct told_size {
    const char *key, *other_key; /* in config.json */
    const char *tensor;          /* its name in GGUF */
    int dimension;               /* of that tensor */
} told_size;

static ww_status check_size(const conversion *c, const told_size *size, const converted *t)
{
    const int64_t other = size->other_key ? json_member_integer(c->config, size->other_key, -1) : -1;
    const int64_t told = json_member_integer(c->config, size->key, other);
    const int64_t there = t->tensor.shape[size->dimension] + (size->dimension == 1 ? t->skipped_rows : 0);
    ww_array_info info = ww_array_info_default();
    const ww_status status = ww_safetensors_at(c->folder.files[t->file], t->index, &info);
    if (status != WW_OK || told == there)
        return status;
    return ww_fail(WW_CORRUPT_FILE, "%s/config.json: %s is %lld; the tensor '%.200s' has %lld %s", c->job->folder, size->key,
                   (long long)told, info.name, (long long)there, size->dimension == 1 ? "rows" : "columns");
}

/* Everything that is made for a number in config.json must have its counterpart in the tensors: a vocabulary of millions of
 * tokens would be written for a folder of a few KB otherwise. */
static ww_status check_sizes(const conversion *c)
{
    static const told_size sizes[] = {{"vocab_size", NULL, "token_embd.weight", 1},
                                      {"hidden_size", "n_embd", "token_embd.weight", 0},
                                      {"max_position_embeddings", "n_positions", "position_embd.weight", 1}};
    const int64_t layers = json_member_integer(c->config, "num_hidden_layers", json_member_integer(c->config, "n_layer", -1));
    int64_t found_layers = 0;
    bool has_embedding = false;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < c->count; i++) {
        const converted *t = &c->tensors[i];
        has_embedding = has_embedding || strcmp(t->name, "token_embd.weight") == 0;
        if (strncmp(t->name, "blk.", 4) == 0)
            found_layers = max_i64(found_layers, strtol(t->name + 4, NULL, 10) + 1);
        for (size_t s = 0; status == WW_OK && s < sizeof sizes / sizeof *sizes; s++)
            if (strcmp(t->name, sizes[s].tensor) == 0)
                status = check_size(c, &sizes[s], t);
    }
    if (status == WW_OK && !has_embedding)
        status = ww_fail(WW_CORRUPT_FILE, "%s: none of the tensors has the embeddings of tokens", c->job->folder);
    if (status == WW_OK && layers != found_layers)
        status = ww_fail(WW_CORRUPT_FILE, "%s/config.json: num_hidden_layers is %lld; the tensors are of %lld layers",
                         c->job->folder, (long long)layers, (long long)found_layers);
    return status;
}

/* ---- keys -----------------------------------------------------------------------------------------------------------------
 */

/* The number that other programs have for files of mostly one type; -1 where they have none. */
static int64_t file_type(const conversion *c)
{
    static const struct {
        ww_quant_type type;
        int number;
    } numbers[] = {{WW_QUANT_F32, 0},   {WW_QUANT_F16, 1},   {WW_QUANT_Q4_0, 2},  {WW_QUANT_Q4_1, 3},  {WW_QUANT_Q8_0, 7},
                   {WW_QUANT_Q5_0, 8},  {WW_QUANT_Q5_1, 9},  {WW_QUANT_Q2_K, 10}, {WW_QUANT_Q3_K, 11}, {WW_QUANT_Q4_K, 14},
                   {WW_QUANT_Q5_K, 16}, {WW_QUANT_Q6_K, 18}, {WW_QUANT_BF16, 32}};
    ww_quant_type type = c->type;
    for (int64_t i = 0; c->keeps_type && i < c->count; i++)
        if (is_coded(&c->tensors[i].tensor))
            type = (ww_quant_type)c->tensors[i].tensor.type;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].type == type)
            return numbers[i].number;
    return -1;
}

/* What a sentence encoder does with the vectors of tokens: a folder of its own says. */
static void keys_of_pooling(const conversion *c, key_writer *w)
{
    json_t *pooling = NULL, *limits = NULL;
    const ww_status found = folder_json(c->job->folder, "1_Pooling/config.json", &pooling);
    if (c->architecture->ranks) {
        key_u32(w, ".pooling_type", WW_POOLING_RANK);
    } else if (found == WW_OK) {
        const bool mean = json_member_bool(pooling, "pooling_mode_mean_tokens", false);
        const bool cls = json_member_bool(pooling, "pooling_mode_cls_token", false);
        const bool last = json_member_bool(pooling, "pooling_mode_lasttoken", false);
        if (mean + cls + last != 1 && w->status == WW_OK)
            w->status =
                ww_fail(WW_UNSUPPORTED, "%s/1_Pooling/config.json: neither mean nor cls nor last pooling", c->job->folder);
        key_u32(w, ".pooling_type", mean ? WW_POOLING_MEAN : cls ? WW_POOLING_CLS : WW_POOLING_LAST);
    } else if (found != WW_NOT_FOUND && w->status == WW_OK) {
        w->status = found;
    }
    if (folder_json(c->job->folder, "sentence_bert_config.json", &limits) == WW_OK &&
        json_is_integer(json_object_get(limits, "max_seq_length")))
        key_u32(w, "warpwave.embedding_tokens", json_member_integer(limits, "max_seq_length", -1));
    json_decref(pooling);
    json_decref(limits);
}

/* "license: apache-2.0" in the head of the README. */
static void key_licence(const conversion *c, key_writer *w)
{
    char path[FOLDER_PATH_BYTES], line[256];
    snprintf(path, sizeof path, "%s/README.md", c->job->folder);
    FILE *file = fopen(path, "re");
    bool head = false;
    for (int n = 0; file && n < 200 && fgets(line, sizeof line, file); n++) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "---") == 0 && head)
            break;
        head = head || strcmp(line, "---") == 0;
        if (head && strncmp(line, "license: ", 9) == 0 && line[9] != '\0' && utf8_check(line, strlen(line)))
            key_text(w, "general.license", line + 9);
    }
    if (file)
        fclose(file);
}

/* The folder's own name. */
static void key_name(const conversion *c, key_writer *w)
{
    char name[256];
    const char *end = c->job->folder + strlen(c->job->folder);
    while (end > c->job->folder && end[-1] == '/')
        end--;
    const char *begin = end;
    while (begin > c->job->folder && begin[-1] != '/')
        begin--;
    snprintf(name, sizeof name, "%.*s", (int)min_size((size_t)(end - begin), sizeof name - 1), begin);
    key_text(w, "general.name", name[0] && utf8_check(name, strlen(name)) ? name : "model");
}

static ww_status write_keys(conversion *c)
{
    key_writer w = {.out = c->out, .architecture = c->architecture};
    key_text(&w, "general.architecture", c->architecture->name);
    key_text(&w, "general.type", "model");
    key_name(c, &w);
    key_licence(c, &w);
    keys_of_config(&w, c->config);
    keys_of_pooling(c, &w);
    if (file_type(c) >= 0)
        key_u32(&w, "general.file_type", file_type(c));
    key_u32(&w, "general.quantization_version", 2);
    keys_of_tokenizer(&w, c->job->folder, c->config, json_member_integer(c->config, "vocab_size", -1));
    return w.status;
}

/* ---- tensors --------------------------------------------------------------------------------------------------------------
 */

/* Where a row of the file written comes from: within a head, row 2i + j is what was row j * half + i. */
static int64_t source_row(const converted *t, int64_t rows, int64_t row)
{
    if (t->heads == 0)
        return row;
    const int64_t size = rows / t->heads, within = row % size;
    return row - within + within % 2 * (size / 2) + within / 2;
}

static ww_status read_rows(const conversion *c, const converted *t, int64_t first, int64_t count, char *to)
{
    const int64_t each = t->from == WW_QUANT_F32 ? 4 : 2;
    const int64_t cols = t->tensor.rank == 2 ? t->tensor.shape[0] : 1,
                  rows = t->tensor.rank == 2 ? t->tensor.shape[1] : t->tensor.shape[0];
    const int64_t row_bytes = cols * each;
    ww_safetensors *file = c->folder.files[t->file];
    ww_status status = WW_OK;
    if (t->heads == 0)
        return ww_safetensors_read(file, t->index, (first + t->skipped_rows) * row_bytes, to, (size_t)(count * row_bytes));
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = ww_safetensors_read(file, t->index, source_row(t, rows, first + i) * row_bytes, to + i * row_bytes,
                                     (size_t)row_bytes);
    return status;
}

typedef struct code_buffers {
    float *floats;
    char *blocks; /* of either type */
} code_buffers;

/* Rows of floats of one type to blocks of another, on the device. A vector is a matrix of one column here. */
static ww_status code_rows(const conversion *c, const converted *t, int64_t rows, code_buffers *b, size_t *bytes)
{
    const int64_t cols = t->tensor.rank == 2 ? t->tensor.shape[0] : 1;
    const int64_t each = t->from == WW_QUANT_F32 ? 4 : 2;
    const ww_quant_type to = (ww_quant_type)t->tensor.type;
    int64_t row_bytes = 0;
    ww_quant *q = NULL;
    *bytes = (size_t)(rows * cols * each);
    if (to == t->from)
        return WW_OK;
    ww_status status = ww_quant_load(c->job->device, t->from, b->blocks, *bytes, rows, cols, &q);
    if (status == WW_OK)
        status = ww_quant_read_f32(q, 0, rows, b->floats);
    ww_quant_destroy(q);
    q = NULL;
    if (status == WW_OK)
        status = ww_quant_row_bytes(to, cols, &row_bytes);
    *bytes = (size_t)(rows * row_bytes);
    if (status == WW_OK)
        status = ww_quant_from_f32(c->job->device, to, b->floats, rows, cols, 0, &q);
    if (status == WW_OK)
        status = ww_quant_read_blocks(q, 0, rows, b->blocks);
    ww_quant_destroy(q);
    return status;
}

static ww_status tell(conversion *c, int64_t bytes)
{
    c->done_bytes += bytes;
    if (progress_tell(c->job->progress, c->job->progress_user, c->done_bytes, c->report.bytes_before))
        return ww_fail(WW_CANCELLED, "converting was cancelled");
    return WW_OK;
}

static void add_one(char *number)
{
    float x;
    memcpy(&x, number, sizeof x);
    x += 1.0f;
    memcpy(number, &x, sizeof x);
}

static ww_status write_tensor(conversion *c, const converted *t)
{
    const int64_t cols = t->tensor.rank == 2 ? t->tensor.shape[0] : 1,
                  rows = t->tensor.rank == 2 ? t->tensor.shape[1] : t->tensor.shape[0];
    const int64_t piece = min_i64(PIECE_BYTES / (cols * (int64_t)sizeof(float)) + 1, rows);
    const size_t room = (size_t)(piece * cols) * sizeof(float);
    code_buffers b = {.floats = memory_alloc(room), .blocks = memory_alloc(2 * room)};
    ww_status status = b.floats && b.blocks ? WW_OK : memory_failed("converting a tensor", 3 * room);
    for (int64_t done = 0; status == WW_OK && done < rows; done += piece) {
        const int64_t now = min_i64(rows - done, piece);
        size_t bytes = 0;
        status = read_rows(c, t, done, now, b.blocks);
        if (status == WW_OK)
            status = code_rows(c, t, now, &b, &bytes);
        for (int64_t i = 0; t->adds_one && status == WW_OK && i < now * cols; i++)
            add_one(b.blocks + i * (int64_t)sizeof(float)); /* norms become f32 */
        if (status == WW_OK)
            status = ww_gguf_writer_data(c->out, b.blocks, bytes);
        c->report.bytes_after += (int64_t)bytes;
        if (status == WW_OK)
            status = tell(c, now * cols * (t->from == WW_QUANT_F32 ? 4 : 2));
    }
    memory_free(b.floats);
    memory_free(b.blocks);
    return status;
}

/* ---- rope's frequencies, which Llama 3.1 and later scale one by one ---------------------------------------------------------
 */

typedef struct rope_scaling {
    double base, factor, low, high, context;
    int64_t head;
} rope_scaling;

static bool read_scaling(const conversion *c, rope_scaling *s)
{
    const json_t *older = json_object_get(c->config, "rope_scaling"), *newer = json_object_get(c->config, "rope_parameters");
    const json_t *scaling = json_is_object(older) ? older : newer;
    const int64_t heads = json_member_integer(c->config, "num_attention_heads", 1);
    if (strcmp(json_member_text(scaling, "rope_type", json_member_text(scaling, "type", "")), "llama3") != 0)
        return false;
    *s = (rope_scaling){.base = json_member_real(c->config, "rope_theta", json_member_real(newer, "rope_theta", 10000)),
                        .factor = json_member_real(scaling, "factor", 8),
                        .low = json_member_real(scaling, "low_freq_factor", 1),
                        .high = json_member_real(scaling, "high_freq_factor", 4),
                        .context = json_member_real(scaling, "original_max_position_embeddings", 8192)};
    s->head =
        json_member_integer(c->config, "head_dim", json_member_integer(c->config, "hidden_size", 0) / (heads > 0 ? heads : 1));
    return true;
}

/* By what angle i's frequency is divided. */
static float scaling_of(const rope_scaling *s, int64_t i)
{
    const double wave = 2 * 3.14159265358979323846 * pow(s->base, 2.0 * (double)i / (double)s->head);
    if (wave < s->context / s->high)
        return 1.0F;
    if (wave > s->context / s->low)
        return (float)s->factor;
    const double smooth = (s->context / wave - s->low) / (s->high - s->low);
    return (float)(1 / ((1 - smooth) / s->factor + smooth));
}

static ww_status announce_scaling(conversion *c)
{
    rope_scaling s;
    ww_gguf_tensor t = ww_gguf_tensor_default();
    if (!read_scaling(c, &s))
        return WW_OK;
    if (s.head < 2 || s.head > 4096)
        return ww_fail(WW_CORRUPT_FILE, "%s/config.json: heads of %lld", c->job->folder, (long long)s.head);
    t.name = "rope_freqs.weight";
    t.rank = 1;
    t.shape[0] = s.head / 2;
    t.shape[1] = t.shape[2] = t.shape[3] = 1;
    t.type = WW_QUANT_F32;
    return ww_gguf_writer_tensor(c->out, &t);
}

static ww_status write_scaling(const conversion *c)
{
    rope_scaling s;
    ww_status status = WW_OK;
    if (!read_scaling(c, &s))
        return WW_OK;
    for (int64_t i = 0; status == WW_OK && i < s.head / 2; i++) {
        const float value = scaling_of(&s, i);
        status = ww_gguf_writer_data(c->out, &value, sizeof value);
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------
 */

ww_status convert_check_type(const char *type)
{
    ww_quant_type found;
    const ww_status status = ww_quant_find(type, &found);
    if (status == WW_OK && (found == WW_QUANT_Q8_1 || found == WW_QUANT_Q8_K))
        return ww_fail(WW_INVALID_ARGUMENT, "%s is for activations, not for weights", type);
    return status;
}

/* The layers behind the pooling; a folder without them has none. */
static ww_status open_dense(conversion *c)
{
    static const char *const folders[] = {"2_Dense", "3_Dense"};
    ww_status status = WW_OK;
    for (size_t i = 0; i < 2 && status == WW_OK; i++) {
        char name[64];
        json_t *config = NULL;
        snprintf(name, sizeof name, "%s/config.json", folders[i]);
        status = folder_json(c->job->folder, name, &config);
        if (status == WW_NOT_FOUND && i == 0)
            return WW_OK;
        const char *activation = json_member_text(config, "activation_function", "Identity");
        const size_t length = strlen(activation), wanted = strlen("Identity");
        if (status == WW_OK && (length < wanted || strcmp(activation + length - wanted, "Identity") != 0))
            status = ww_fail(WW_UNSUPPORTED, "%s/%s: activation_function is '%.60s'; Identity is known", c->job->folder, name,
                             activation);
        json_decref(config);
        if (status == WW_OK)
            status = folder_add(c->job->folder, folders[i], &c->folder);
    }
    return status;
}

static ww_status prepare(conversion *c)
{
    c->keeps_type = !c->job->type;
    c->type = WW_QUANT_F32;
    ww_status status = c->job->type ? convert_check_type(c->job->type) : WW_OK;
    if (status == WW_OK && c->job->type)
        status = ww_quant_find(c->job->type, &c->type);
    if (status == WW_OK)
        status = folder_json(c->job->folder, "config.json", &c->config);
    if (status == WW_OK)
        status = find_architecture(c);
    if (status == WW_OK)
        status = config_check(c->architecture, c->job->folder, c->config);
    if (status == WW_OK)
        status = folder_open(c->job->folder, &c->folder);
    if (status == WW_OK && c->architecture->dense)
        status = open_dense(c);
    return status == WW_OK ? ww_gguf_writer_create(&c->out) : status;
}

ww_status convert_folder(const convert_job *job, convert_report *report)
{
    conversion c = {.job = job};
    ww_status status = prepare(&c);
    if (status == WW_OK)
        status = list_tensors(&c);
    if (status == WW_OK)
        status = check_sizes(&c);
    if (status == WW_OK)
        status = announce_scaling(&c);
    if (status == WW_OK)
        status = write_keys(&c);
    if (status == WW_OK)
        status = ww_gguf_writer_open(c.out, job->out_path);
    for (int64_t i = 0; status == WW_OK && i < c.count; i++)
        status = write_tensor(&c, &c.tensors[i]);
    if (status == WW_OK)
        status = write_scaling(&c);
    if (status == WW_OK)
        status = ww_gguf_writer_finish(c.out);
    if (status == WW_OK)
        *report = c.report;
    ww_gguf_writer_destroy(c.out);
    folder_close(&c.folder);
    memory_free(c.tensors);
    json_decref(c.config);
    return status;
}

ww_status convert_open(const char *folder, ww_device *device, ww_gguf **gguf)
{
    char path[FOLDER_PATH_BYTES];
    const char *temporary = getenv("TMPDIR");
    convert_report report;
    const int length = snprintf(path, sizeof path, "%s/warpwave-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path)
        return ww_fail(WW_INVALID_ARGUMENT, "TMPDIR is too long");
    const int file = mkstemp(path);
    if (file < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: no temporary file can be made; TMPDIR says where", path);
    close(file);
    const convert_job job = {.folder = folder, .out_path = path, .device = device};
    ww_status status = convert_folder(&job, &report);
    if (status == WW_OK)
        status = ww_gguf_open(path, gguf);
    unlink(path);
    return status;
}
