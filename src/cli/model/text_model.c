/* A model that embeds texts, for commands that store and search them. */
#include "cli/text/text_model.h"

#include <warpwave/model.h>

#include "base/memory.h"
#include "base/status.h"

struct text_model {
    ww_model *model;
    ww_model_info info;
};

static ww_status open_in(text_model *m, const char *path, ww_device *device)
{
    ww_model_options options = ww_model_options_default();
    progress bar;
    options.progress = progress_report;
    options.progress_user = &bar;
    m->info = ww_model_info_default();
    progress_begin(&bar, "loading the model", 0);
    ww_status status = ww_model_open(path, device, &options, &m->model);
    progress_end(&bar);
    if (status == WW_OK)
        status = ww_model_describe(m->model, &m->info);
    if (status == WW_OK && m->info.kind != WW_MODEL_ENCODER)
        status = ww_fail(WW_UNSUPPORTED,
                         "%s: a model of the architecture '%s' continues texts; to embed them an encoder is needed, as bert",
                         path, m->info.architecture);
    return status;
}

ww_status text_model_open(const char *path, ww_device *device, text_model **model)
{
    text_model *m = memory_alloc_zeroed(1, sizeof *m);
    if (!m)
        return memory_failed("model", sizeof *m);
    const ww_status status = open_in(m, path, device);
    if (status == WW_OK)
        *model = m;
    else
        text_model_close(m);
    return status;
}

void text_model_close(text_model *m)
{
    if (m)
        ww_model_close(m->model);
    memory_free(m);
}

const char *text_model_name(const text_model *m)
{
    return m->info.name;
}

const char *text_model_fingerprint(const text_model *m)
{
    return m->info.fingerprint;
}

int32_t text_model_width(const text_model *m)
{
    return m->info.width;
}

ww_status text_model_embed(text_model *m, const char *const *texts, size_t count, float *vectors, progress *bar)
{
    return ww_model_embed(m->model, texts, NULL, count, vectors, bar ? progress_report : NULL, bar);
}
