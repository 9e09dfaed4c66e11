/* The index of a view: built and calibrated from the rows in memory, and described. */
#include "base/memory.h"
#include "base/status.h"
#include "store/ivf/follow.h"
#include "store/view/view_state.h"
#include "vectors/collection.h"
#include "vectors/internal/lists.h"
#include "vectors/internal/mirror.h"

/* The write that has begun has not changed any row yet, so the mirror has all rows. */
ww_status view_build_index(view *v, const ww_ivf_config *config, writer *w)
{
    ivf *index = NULL;
    ww_status status = ivf_build(mirror_collection(v->active), config, &index);
    if (status == WW_OK)
        status = writer_build_index(w, index, v->active);
    ivf_destroy(index);
    return status;
}

ww_status view_calibrate_index(view *v, const ww_calibrate_config *config, writer *w)
{
    ivf_calibration learnt = {0};
    ww_collection *c = mirror_collection(v->active);
    ww_status status = ivf_is_there(&v->record) ? view_check_index(v) : ivf_not_found(c, "ww_collection_calibrate");
    if (status == WW_OK)
        status = ivf_calibrate(c, config, &learnt);
    if (status == WW_OK)
        status = writer_calibrate_index(w, &learnt);
    memory_free(learnt.rules);
    return status;
}

/* Only the thread that read the index knows why the mirror has none. */
ww_status view_check_index(const view *v)
{
    const ww_collection *c = mirror_collection(v->active);
    if (!ivf_is_there(&v->record) || c->index || v->record.live == 0)
        return WW_OK;
    ivf_header header;
    const ww_status status = ivf_header_read(&(ivf_tables){v->db, v->schema, &v->record}, &header);
    return status == WW_OK ? ivf_damaged(v->name, "it could not be read; a check of the store says more") : status;
}

ww_status view_describe_index(view *v, ww_ivf_info *info)
{
    const ivf_tables tables = {v->db, v->schema, &v->record};
    ww_status status = ivf_info_read(&tables, info);
    mirror *m = v->shared;
    if (status != WW_OK || !m)
        return status;
    ww_ivf_info loaded = ww_ivf_info_default();
    mirror_lock_read(m);
    if (mirror_collection(m)->index)
        status = ww_collection_describe_ivf(mirror_collection(m), &loaded);
    mirror_unlock(m);
    info->bytes = loaded.bytes;
    return status;
}
