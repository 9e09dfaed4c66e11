/* Which tensors the file has, and which tensors of the folder each is made of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/convert/conversion.h"

enum { CODED_BLOCK = 32, CODED_BYTES = 16, EXPERTS_MAX = 4096 }; /* mxfp4: elements of a block, and bytes of their codes */

static bool element_type(ww_element element, ww_quant_type *type)
{
    *type = element == WW_ELEMENT_F16 ? WW_QUANT_F16 : element == WW_ELEMENT_BF16 ? WW_QUANT_BF16 : WW_QUANT_F32;
    return element == WW_ELEMENT_F32 || element == WW_ELEMENT_F16 || element == WW_ELEMENT_BF16;
}

/* Vectors, biases, routers and the small matrices of positions and types stay floats. */
bool tensor_is_coded(const ww_gguf_tensor *t)
{
    return t->rank >= 2 && !strstr(t->name, "norm") && !strstr(t->name, ".bias") && !strstr(t->name, "ffn_gate_inp") &&
           strcmp(t->name, "position_embd.weight") != 0 && strcmp(t->name, "token_types.weight") != 0 &&
           strncmp(t->name, "cls.", 4) != 0 && strncmp(t->name, "dense_", 6) != 0 && strcmp(t->name, "attn_rel_b.weight") != 0;
}

static ww_quant_type wanted_type(conversion *c, const ww_gguf_tensor *t, ww_quant_type from)
{
    if (!tensor_is_coded(t))
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

/* The folder of a dense layer has one tensor, named after the folder. */
static ww_status name_tensor(const conversion *c, int64_t file, const char *from, tensor_name *name)
{
    if (file < c->folder.main_count)
        return names_map(c->architecture, from, name);
    *name = (tensor_name){.expert = -1};
    if (strcmp(from, "linear.weight") != 0 && strcmp(from, "linear.bias") != 0)
        return ww_fail(WW_UNSUPPORTED, "the tensor '%.200s' is not that of a dense layer", from);
    snprintf(name->name, sizeof name->name, "dense_%d.%s", (int)(file - c->folder.main_count) + 2, from + strlen("linear."));
    return WW_OK;
}

/* ---- shapes -------------------------------------------------------------------------------------------------------------- */

/* The shape in the file, fastest dimension first, and how to read it, for a tensor of floats. */
static ww_status shape_floats(conversion *c, const ww_array_info *info, const tensor_name *name, converted *t)
{
    if (!element_type(info->element, &t->from) || info->rank < 1 || info->rank > 2 || info->elements == 0)
        return ww_fail(WW_UNSUPPORTED, "the tensor '%.200s' is %s of rank %d; f32, f16 and bf16 of rank 1 and 2 are known",
                       info->name, info->type, (int)info->rank);
    t->tensor.rank = info->rank;
    for (int32_t i = 0; i < WW_GGUF_RANK_MAX; i++)
        t->tensor.shape[i] = i < info->rank ? info->shape[info->rank - 1 - i] : 1;
    if (strcmp(t->name, "position_embd.weight") == 0 && info->rank == 2) {
        t->skipped_rows = positions_skipped(c->architecture, c->config);
        t->tensor.shape[1] -= t->skipped_rows;
        if (t->tensor.shape[1] < 1)
            return ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' has no more than %lld rows", info->name,
                           (long long)t->skipped_rows);
    }
    if (t->every > 1) { /* numbers of two rows alternate */
        if (t->tensor.shape[0] % t->every != 0)
            return ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' has %lld columns, which two tensors cannot share", info->name,
                           (long long)t->tensor.shape[0]);
        t->tensor.shape[0] /= t->every;
    }
    const bool flat = info->rank == 1 || t->every > 1;
    t->cols = flat ? 1 : t->tensor.shape[0];
    t->rows = flat ? t->tensor.shape[0] * t->tensor.shape[1] : t->tensor.shape[1];
    t->heads = permuted_heads(c, name);
    if (t->heads < 0 || (t->heads > 0 && t->rows % (2 * t->heads) != 0))
        return ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' has %lld rows for %lld heads", info->name, (long long)t->rows,
                       (long long)t->heads);
    return WW_OK;
}

/* Finds a tensor by its name in any file. */
static bool find_source(const conversion *c, const char *name, tensor_source *source, ww_array_info *info)
{
    for (source->file = 0; source->file < c->folder.main_count; source->file++)
        if (ww_safetensors_find(c->folder.files[source->file], name, &source->index) == WW_OK)
            return ww_safetensors_at(c->folder.files[source->file], source->index, info) == WW_OK;
    return false;
}

/* The same for mxfp4 codes: [experts, rows, blocks, 16] bytes, and [experts, rows, blocks] scales. */
static ww_status shape_codes(const conversion *c, const ww_array_info *info, converted *t)
{
    char name[256];
    ww_array_info scales = ww_array_info_default();
    const size_t length = strlen(info->name) - strlen("_blocks");
    snprintf(name, sizeof name, "%.*s_scales", (int)min_size(length, sizeof name - 16), info->name);
    const bool whole = info->element == WW_ELEMENT_U8 && info->rank == 4 && info->shape[3] == CODED_BYTES &&
                       info->elements > 0 && info->shape[1] % t->every == 0;
    if (!whole || !find_source(c, name, &t->scales, &scales) || scales.element != WW_ELEMENT_U8 || scales.rank != 3 ||
        memcmp(scales.shape, info->shape, 3 * sizeof scales.shape[0]) != 0)
        return ww_fail(WW_UNSUPPORTED, "the tensor '%.200s' is not mxfp4 codes with scales beside it", info->name);
    t->from = WW_QUANT_MXFP4;
    t->cols = info->shape[2] * CODED_BLOCK;
    t->rows = info->shape[0] * info->shape[1] / t->every;
    t->tensor.rank = 3;
    t->tensor.shape[0] = t->cols;
    t->tensor.shape[1] = info->shape[1] / t->every;
    t->tensor.shape[2] = info->shape[0];
    t->tensor.shape[3] = 1;
    return WW_OK;
}

/* ---- experts, each a tensor of its own ----------------------------------------------------------------------------------- */

static ww_status start_experts(conversion *c, const ww_array_info *info, converted *t)
{
    const int64_t count = config_experts(c->config);
    if (info->rank != 2 || count < 1 || count > EXPERTS_MAX)
        return ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' is of an expert; config.json says that there are %lld", info->name,
                       (long long)count);
    t->experts = memory_alloc((size_t)count * sizeof *t->experts);
    if (!t->experts)
        return memory_failed("experts", (size_t)count * sizeof *t->experts);
    for (int64_t i = 0; i < count; i++)
        t->experts[i].file = -1;
    t->expert_count = count;
    t->rows *= count;
    t->tensor.rank = 3;
    t->tensor.shape[2] = count;
    return WW_OK;
}

static ww_status join_expert(const conversion *c, converted *t, const tensor_name *name, tensor_source source)
{
    ww_array_info info = ww_array_info_default();
    ww_quant_type type;
    ww_status status = ww_safetensors_at(c->folder.files[source.file], source.index, &info);
    if (status == WW_OK && (name->expert >= t->expert_count || t->experts[name->expert].file >= 0))
        status = ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' is of expert %lld of %lld", info.name, (long long)name->expert,
                         (long long)t->expert_count);
    if (status == WW_OK && (!element_type(info.element, &type) || type != t->from || info.rank != 2 ||
                            info.shape[1] != t->cols || info.shape[0] * t->expert_count != t->rows))
        status =
            ww_fail(WW_CORRUPT_FILE, "the tensor '%.200s' has another shape or type than that of other experts", info.name);
    if (status == WW_OK)
        t->experts[name->expert] = source;
    return status;
}

static ww_status check_experts(const conversion *c)
{
    for (int64_t i = 0; i < c->count; i++)
        for (int64_t e = 0; c->tensors[i].experts && e < c->tensors[i].expert_count; e++)
            if (c->tensors[i].experts[e].file < 0)
                return ww_fail(WW_CORRUPT_FILE, "%s: no tensor has expert %lld of '%s'", c->job->folder, (long long)e,
                               c->tensors[i].name);
    return WW_OK;
}

/* ---- the list ------------------------------------------------------------------------------------------------------------ */

static converted *find_converted(const conversion *c, const char *name)
{
    for (int64_t i = c->count - 1; i >= 0; i--)
        if (strcmp(c->tensors[i].name, name) == 0)
            return &c->tensors[i];
    return NULL;
}

/* Starts a tensor of the file; `odd`: it has every other row of the folder's tensor, starting at the second. */
static ww_status start_tensor(conversion *c, tensor_source source, const tensor_name *name, bool odd)
{
    ww_array_info info = ww_array_info_default();
    converted *t = &c->tensors[c->count];
    ww_status status = ww_safetensors_at(c->folder.files[source.file], source.index, &info);
    if (status != WW_OK)
        return status;
    *t = (converted){.one = source,
                     .expert_count = 1,
                     .tensor = ww_gguf_tensor_default(),
                     .every = name->second[0] ? 2 : 1,
                     .first = odd,
                     .adds_one = c->architecture->norms_one && name->norm};
    c->count++;
    text_copy(t->name, sizeof t->name, odd ? name->second : name->name);
    t->tensor.name = t->name;
    status = name->coded ? shape_codes(c, &info, t) : shape_floats(c, &info, name, t);
    if (status == WW_OK && name->expert >= 0)
        status = start_experts(c, &info, t);
    if (status == WW_OK && name->expert >= 0)
        status = join_expert(c, t, name, source);
    if (status != WW_OK)
        return status;
    t->tensor.type = (int32_t)wanted_type(c, &t->tensor, t->from);
    int64_t row_bytes = 0;
    status = ww_quant_row_bytes(t->from, t->cols, &row_bytes);
    c->report.bytes_before += t->rows * row_bytes;
    return status == WW_OK ? ww_gguf_writer_tensor(c->out, &t->tensor) : status;
}

static ww_status add_tensor(conversion *c, tensor_source source)
{
    ww_array_info info = ww_array_info_default();
    tensor_name name;
    ww_status status = ww_safetensors_at(c->folder.files[source.file], source.index, &info);
    if (status == WW_OK)
        status = name_tensor(c, source.file, info.name, &name);
    if (status != WW_OK || name.skip ||
        (!config_is_causal(c->architecture, c->config) && strcmp(name.name, "output.weight") == 0))
        return status;
    converted *experts = name.expert >= 0 ? find_converted(c, name.name) : NULL;
    if (experts)
        return join_expert(c, experts, &name, source);
    status = start_tensor(c, source, &name, false);
    return status == WW_OK && name.second[0] ? start_tensor(c, source, &name, true) : status;
}

/* A size that both config.json and a tensor have. */
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
    const ww_status status = ww_safetensors_at(c->folder.files[t->one.file], t->one.index, &info);
    if (status != WW_OK || told == there)
        return status;
    return ww_fail(WW_CORRUPT_FILE, "%s/config.json: %s is %lld; the tensor '%.200s' has %lld %s", c->job->folder, size->key,
                   (long long)told, info.name, (long long)there, size->dimension == 1 ? "rows" : "columns");
}

/* Sizes in config.json must agree with the tensors. Otherwise a folder of a few KB could make us write a vocabulary of millions
 * of tokens. */
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
        for (size_t s = 0; status == WW_OK && s < sizeof sizes / sizeof *sizes && !c->architecture->lookup; s++)
            if (strcmp(t->name, sizes[s].tensor) == 0)
                status = check_size(c, &sizes[s], t);
    }
    if (status == WW_OK && !has_embedding)
        status = ww_fail(WW_CORRUPT_FILE, "%s: none of the tensors has the embeddings of tokens", c->job->folder);
    if (status == WW_OK && layers != found_layers && !c->architecture->lookup)
        status = ww_fail(WW_CORRUPT_FILE, "%s/config.json: num_hidden_layers is %lld; the tensors are of %lld layers",
                         c->job->folder, (long long)layers, (long long)found_layers);
    return status;
}

const int64_t *tensors_embedding(const conversion *c)
{
    return find_converted(c, "token_embd.weight")->tensor.shape;
}

ww_status tensors_list(conversion *c)
{
    int64_t all = 0;
    ww_status status = WW_OK;
    for (int64_t f = 0; f < c->folder.file_count; f++)
        all += ww_safetensors_count(c->folder.files[f]);
    c->tensors = memory_alloc_zeroed(2 * (size_t)all + 1, sizeof *c->tensors); /* one source may give two */
    if (!c->tensors)
        return memory_failed("tensors", 2 * (size_t)all * sizeof *c->tensors);
    for (int64_t f = 0; status == WW_OK && f < c->folder.file_count; f++)
        for (int64_t i = 0; status == WW_OK && i < ww_safetensors_count(c->folder.files[f]); i++)
            status = add_tensor(c, (tensor_source){f, i});
    c->report.tensors = c->count;
    if (status == WW_OK)
        status = check_experts(c);
    return status == WW_OK ? check_sizes(c) : status;
}

void tensors_free(conversion *c)
{
    for (int64_t i = 0; i < c->count; i++)
        memory_free(c->tensors[i].experts);
    memory_free(c->tensors);
}
