/* Factors that divide single frequencies of rope. Llama 3.1 and later have a formula for them; models with "longrope" list them
 * twice, for short and for long contexts. In GGUF they are tensors.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "model/convert/conversion.h"

typedef struct llama3_scaling {
    double base, factor, low, high, context;
    int64_t turned; /* elements of a head */
} llama3_scaling;

/* The divisor of the frequency of pair i. */
static float llama3_factor(const llama3_scaling *s, int64_t i)
{
    const double wave = 2 * 3.14159265358979323846 * pow(s->base, 2.0 * (double)i / (double)s->turned);
    if (wave < s->context / s->high)
        return 1.0F;
    if (wave > s->context / s->low)
        return (float)s->factor;
    const double smooth = (s->context / wave - s->low) / (s->high - s->low);
    return (float)(1 / ((1 - smooth) / s->factor + smooth));
}

static ww_status make(conversion *c, const char *name, int64_t count, rope_tensor *out)
{
    ww_gguf_tensor t = ww_gguf_tensor_default();
    if (count < 1 || count > 2048)
        return ww_fail(WW_CORRUPT_FILE, "%s/config.json: heads of %lld", c->job->folder, (long long)(2 * count));
    out->values = memory_alloc((size_t)count * sizeof *out->values);
    if (!out->values)
        return memory_failed("factors of rope", (size_t)count * sizeof *out->values);
    out->name = name;
    out->count = count;
    t.name = name;
    t.rank = 1;
    t.shape[0] = count;
    t.shape[1] = t.shape[2] = t.shape[3] = 1;
    t.type = WW_QUANT_F32;
    return ww_gguf_writer_tensor(c->out, &t);
}

static ww_status make_llama3(conversion *c, const json_t *scaling, int64_t turned)
{
    const json_t *newer = json_object_get(c->config, "rope_parameters");
    const llama3_scaling s = {.base = json_member_real(c->config, "rope_theta", json_member_real(newer, "rope_theta", 10000)),
                              .factor = json_member_real(scaling, "factor", 8),
                              .low = json_member_real(scaling, "low_freq_factor", 1),
                              .high = json_member_real(scaling, "high_freq_factor", 4),
                              .context = json_member_real(scaling, "original_max_position_embeddings", 8192),
                              .turned = turned};
    const ww_status status = make(c, "rope_freqs.weight", turned / 2, &c->rope[0]);
    for (int64_t i = 0; status == WW_OK && i < c->rope[0].count; i++)
        c->rope[0].values[i] = llama3_factor(&s, i);
    return status;
}

static ww_status make_listed(conversion *c, const json_t *scaling, int64_t turned)
{
    static const struct {
        const char *key, *name;
    } lists[ROPE_TENSORS] = {{"long_factor", "rope_factors_long.weight"}, {"short_factor", "rope_factors_short.weight"}};
    ww_status status = WW_OK;
    for (int n = 0; n < ROPE_TENSORS && status == WW_OK; n++) {
        const json_t *list = json_object_get(scaling, lists[n].key);
        if ((int64_t)json_array_size(list) != turned / 2)
            return ww_fail(WW_CORRUPT_FILE, "%s/config.json: %s has %zu numbers; a head has %lld pairs", c->job->folder,
                           lists[n].key, json_array_size(list), (long long)(turned / 2));
        status = make(c, lists[n].name, turned / 2, &c->rope[n]);
        for (int64_t i = 0; status == WW_OK && i < c->rope[n].count; i++) {
            c->rope[n].values[i] = (float)json_number_value(json_array_get(list, (size_t)i));
            if (!(c->rope[n].values[i] > 0.0F))
                status = ww_fail(WW_CORRUPT_FILE, "%s/config.json: number %lld of %s is not above 0", c->job->folder,
                                 (long long)i, lists[n].key);
        }
    }
    return status;
}

ww_status rope_tensors_declare(conversion *c)
{
    const json_t *scaling = config_scaling(c->config);
    const char *type = scaling_type(scaling);
    const int64_t turned = c->architecture->encoder ? 0 : config_turned(c->architecture, c->config);
    if (strcmp(type, "llama3") == 0)
        return make_llama3(c, scaling, turned);
    return strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0 ? make_listed(c, scaling, turned) : WW_OK;
}

ww_status rope_tensors_write(const conversion *c)
{
    ww_status status = WW_OK;
    for (int n = 0; n < ROPE_TENSORS && status == WW_OK; n++)
        if (c->rope[n].name)
            status = ww_gguf_writer_data(c->out, c->rope[n].values, (size_t)c->rope[n].count * sizeof(float));
    return status;
}

void rope_tensors_free(conversion *c)
{
    for (int n = 0; n < ROPE_TENSORS; n++)
        memory_free(c->rope[n].values);
}
