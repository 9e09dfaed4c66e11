/* Converts a folder to a GGUF file: keys first, then tensor by tensor. */
#include "model/convert/convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "model/convert/conversion.h"
#include "model/convert/sentence_keys.h"

enum { LOOKUP_TOKENS = 512 }; /* of a text, as model2vec cuts it */

STRUCT_INIT(ww_conversion, {0})
STRUCT_INIT(ww_conversion_report, {0})

static ww_status find_architecture(conversion *c)
{
    const char *class = json_string_value(json_array_get(json_object_get(c->config, "architectures"), 0));
    char known[2048] = "";
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

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

/* The number that other programs use for files of mostly one type; -1 if there is none. */
static int64_t file_type(const conversion *c)
{
    static const struct {
        ww_quant_type type;
        int number;
    } numbers[] = {{WW_QUANT_F32, 0},   {WW_QUANT_F16, 1},   {WW_QUANT_Q4_0, 2},  {WW_QUANT_Q4_1, 3},  {WW_QUANT_Q8_0, 7},
                   {WW_QUANT_Q5_0, 8},  {WW_QUANT_Q5_1, 9},  {WW_QUANT_Q2_K, 10}, {WW_QUANT_Q3_K, 11}, {WW_QUANT_Q4_K, 14},
                   {WW_QUANT_Q5_K, 16}, {WW_QUANT_Q6_K, 18}, {WW_QUANT_BF16, 32}, {WW_QUANT_MXFP4, 38}};
    ww_quant_type type = c->type;
    for (int64_t i = 0; c->keeps_type && type != WW_QUANT_MXFP4 && i < c->count; i++)
        if (tensor_is_coded(&c->tensors[i].tensor))
            type = (ww_quant_type)c->tensors[i].tensor.type;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].type == type)
            return numbers[i].number;
    return -1;
}

/* Reads "license: apache-2.0" in the head of the README. */
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

/* The model's name is the folder's, unless the job has one. */
static void key_name(const conversion *c, key_writer *w)
{
    char name[256];
    const char *from = c->job->name ? c->job->name : c->job->folder, *end = from + strlen(from);
    while (end > from && end[-1] == '/')
        end--;
    const char *begin = end;
    while (begin > from && begin[-1] != '/')
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
    const int64_t *listed = c->architecture->lookup ? tensors_embedding(c) : NULL;
    if (listed) {
        key_u32(&w, ".context_length", LOOKUP_TOKENS);
        key_u32(&w, ".embedding_length", listed[0]);
        key_bool(&w, ".attention.causal", false);
    } else {
        keys_of_config(&w, c->config);
    }
    keys_of_sentences(c, &w);
    if (file_type(c) >= 0)
        key_u32(&w, "general.file_type", file_type(c));
    key_u32(&w, "general.quantization_version", 2);
    keys_of_tokenizer(&w, c->job->folder, c->config, listed ? listed[1] : json_member_integer(c->config, "vocab_size", -1));
    return w.status;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

/* Refuses an unknown type, and one that is only for activations. */
static ww_status check_type(const char *type)
{
    ww_quant_type found;
    const ww_status status = ww_quant_find(type, &found);
    if (status == WW_OK && (found == WW_QUANT_Q8_1 || found == WW_QUANT_Q8_K))
        return ww_fail(WW_INVALID_ARGUMENT, "%s is for activations, not for weights", type);
    return status;
}

/* Opens the dense layer of a folder inside, as one more file. */
static ww_status open_dense(conversion *c, const char *inside)
{
    char name[FOLDER_PATH_BYTES];
    json_t *config = NULL;
    const int length_of_name = snprintf(name, sizeof name, "%s/config.json", inside);
    if (!inside[0] || strchr(inside, '/') || inside[0] == '.' || (size_t)length_of_name >= sizeof name)
        return ww_fail(WW_UNSUPPORTED, "%s/modules.json: '%.60s' is not the name of a folder inside", c->job->folder, inside);
    ww_status status = folder_json(c->job->folder, name, &config);
    const char *activation = json_member_text(config, "activation_function", "Identity");
    const size_t length = strlen(activation), wanted = strlen("Identity");
    if (status == WW_OK && (length < wanted || strcmp(activation + length - wanted, "Identity") != 0))
        status = ww_fail(WW_UNSUPPORTED, "%s/%s: activation_function is '%.60s'; only Identity is supported", c->job->folder,
                         name, activation);
    json_decref(config);
    return status == WW_OK ? folder_add(c->job->folder, inside, &c->folder) : status;
}

/* Does the class of a module, "sentence_transformers.models.Pooling", end with this name? */
static bool is_module(const char *class, const char *name)
{
    const size_t length = strlen(class), wanted = strlen(name);
    return length >= wanted && strcmp(class + length - wanted, name) == 0;
}

/* Opens the dense layers after the pooling that modules.json lists, or, without that, those of the usual names. Refuses modules
 * that would be left out. */
static ww_status open_modules(conversion *c)
{
    static const char *const KNOWN[] = {"Transformer", "Pooling", "Normalize", "StaticEmbedding", "Dense"};
    json_t *modules = NULL;
    ww_status status = folder_json(c->job->folder, "modules.json", &modules);
    if (status == WW_NOT_FOUND) {
        status = open_dense(c, "2_Dense");
        if (status == WW_OK)
            status = open_dense(c, "3_Dense");
        return status == WW_NOT_FOUND ? WW_OK : status;
    }
    for (size_t i = 0; i < json_array_size(modules) && status == WW_OK; i++) {
        const char *class = json_member_text(json_array_get(modules, i), "type", "");
        size_t known = 0;
        while (known < 5 && !is_module(class, KNOWN[known]))
            known++;
        if (known == 5 || (known == 4 && c->folder.file_count - c->folder.main_count == 2))
            status = ww_fail(WW_UNSUPPORTED, "%s/modules.json: the module '%.80s' is not supported", c->job->folder, class);
        else if (known == 4)
            status = open_dense(c, json_member_text(json_array_get(modules, i), "path", ""));
    }
    json_decref(modules);
    return status;
}

/* A vision model keeps the sizes of its text model in a nested object. */
static void take_text_config(conversion *c)
{
    json_t *inside = c->architecture->nested ? json_object_get(c->config, "text_config") : NULL;
    if (!json_is_object(inside))
        return;
    json_incref(inside);
    json_decref(c->config);
    c->config = inside;
}

static ww_status prepare(conversion *c)
{
    c->keeps_type = !c->job->type;
    c->type = WW_QUANT_F32;
    ww_status status = c->job->type ? check_type(c->job->type) : WW_OK;
    if (status == WW_OK && c->job->type)
        status = ww_quant_find(c->job->type, &c->type);
    if (status == WW_OK)
        status = folder_json(c->job->folder, "config.json", &c->config);
    if (status == WW_NOT_FOUND)
        status = folder_refuse(c->job->folder);
    if (status == WW_OK)
        status = find_architecture(c);
    if (status == WW_OK)
        take_text_config(c);
    if (status == WW_OK)
        status = config_check(c->architecture, c->job->folder, c->config);
    if (status == WW_OK)
        status = folder_open(c->job->folder, &c->folder);
    if (status == WW_OK && !c->architecture->ranks)
        status = open_modules(c);
    return status == WW_OK ? ww_gguf_writer_create(&c->out) : status;
}

ww_status convert_folder(const ww_conversion *job, ww_conversion_report *report)
{
    conversion c = {.job = job};
    ww_status status = prepare(&c);
    if (status == WW_OK)
        status = tensors_list(&c);
    if (status == WW_OK)
        status = rope_tensors_declare(&c);
    if (status == WW_OK)
        status = write_keys(&c);
    if (status == WW_OK)
        status = ww_gguf_writer_open(c.out, job->out_path);
    for (int64_t i = 0; status == WW_OK && i < c.count; i++)
        status = tensor_write(&c, &c.tensors[i]);
    if (status == WW_OK)
        status = rope_tensors_write(&c);
    if (status == WW_OK)
        status = ww_gguf_writer_finish(c.out);
    if (status == WW_OK)
        *report = c.report;
    ww_gguf_writer_destroy(c.out);
    folder_close(&c.folder);
    tensors_free(&c);
    rope_tensors_free(&c);
    json_decref(c.config);
    return status;
}

ww_status ww_model_convert(const ww_conversion *callers, ww_conversion_report *report)
{
    FLOAT_GUARD();
    static const char function[] = "ww_model_convert";
    ww_conversion job;
    ww_conversion_report found = {0};
    if (!callers)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: conversion is NULL", function);
    ww_status status = struct_read(&job, sizeof job, callers, function, "ww_conversion");
    if (status == WW_OK && report)
        status = struct_check(report, function, "ww_conversion_report");
    if (status == WW_OK && (!job.folder || !job.out_path || !job.device))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function,
                         !job.folder     ? "folder"
                         : !job.out_path ? "out_path"
                                         : "device");
    if (status == WW_OK)
        status = convert_folder(&job, &found);
    return status == WW_OK && report ? struct_write(report, &found, sizeof found, function, "ww_conversion_report") : status;
}

ww_status convert_open(const char *folder, ww_device *device, ww_gguf **gguf)
{
    char path[FOLDER_PATH_BYTES];
    const char *temporary = getenv("TMPDIR");
    ww_conversion_report report;
    const int length = snprintf(path, sizeof path, "%s/warpwave-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path)
        return ww_fail(WW_INVALID_ARGUMENT, "TMPDIR is too long");
    const int file = mkstemp(path);
    if (file < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: no temporary file can be made; TMPDIR says where", path);
    close(file);
    const ww_conversion job = {.folder = folder, .out_path = path, .device = device};
    ww_status status = convert_folder(&job, &report);
    if (status == WW_OK)
        status = ww_gguf_open(path, gguf);
    unlink(path);
    return status;
}
