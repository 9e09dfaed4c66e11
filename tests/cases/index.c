/* Cases of reading and writing by ids. Writing is in place: the result is x. */
#include "cases/cases.h"

static ww_status x_and_ids(case_run *run, ww_tensor *x, ww_tensor *ids)
{
    const ww_status status = case_input(run, CASE_X "|dst", x);
    return status == WW_OK ? case_ids(run, ids) : status;
}

static ww_status run_gather(case_run *run)
{
    ww_tensor x;
    ww_tensor ids;
    ww_tensor out = {0};
    ww_status status = x_and_ids(run, &x, &ids);
    if (status == WW_OK)
        status = ww_tensor_gather(&x, &ids, case_dim(run, 0), &out);
    return case_give(run, status, &out);
}

static ww_status run_index_select(case_run *run)
{
    ww_tensor x;
    ww_tensor ids;
    ww_tensor out = {0};
    ww_status status = x_and_ids(run, &x, &ids);
    if (status == WW_OK)
        status = ww_tensor_index_select(&x, &ids, case_dim(run, 0), &out);
    return case_give(run, status, &out);
}

/* Rows of a table by ids of any shape. */
static ww_status run_embedding(case_run *run)
{
    ww_tensor table;
    ww_tensor ids;
    ww_tensor out = {0};
    ww_tensor dense = {0};
    ww_status status = case_input(run, "x|weight|w|table|embeddings", &table);
    if (status == WW_OK)
        status = case_ids(run, &ids);
    if (status == WW_OK && (table.layout.rank != 2 || ids.layout.rank == WW_RANK_MAX))
        return ww_fail(WW_DIMENSION_MISMATCH, "an embedding has a table of rank 2, not %d", (int)table.layout.rank);
    if (status == WW_OK)
        status = ww_tensor_contiguous(&ids, &dense);
    if (status == WW_OK)
        status = case_keep(run, dense.storage);
    if (status == WW_OK)
        status = ww_tensor_reshape(&dense, 1, (int64_t[]){ww_layout_elements(&ids.layout)}, &dense);
    if (status == WW_OK)
        status = ww_tensor_index_select(&table, &dense, 0, &out);
    if (status != WW_OK)
        return status;
    ids.layout.shape[ids.layout.rank] = table.layout.shape[1];
    status = ww_tensor_reshape(&out, ids.layout.rank + 1, ids.layout.shape, &out);
    return case_give(run, status, &out);
}

typedef ww_status (*write_by_ids)(const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim);

static ww_status run_write(case_run *run, write_by_ids write)
{
    ww_tensor x;
    ww_tensor ids;
    ww_tensor src;
    ww_status status = x_and_ids(run, &x, &ids);
    if (status == WW_OK)
        status = case_input(run, "src|source|y", &src);
    if (status == WW_OK)
        status = write(&x, &ids, &src, case_dim(run, 0));
    run->result = x;
    return status;
}

static ww_status run_scatter(case_run *run)
{
    return run_write(run, ww_tensor_scatter);
}

static ww_status run_scatter_add(case_run *run)
{
    return run_write(run, ww_tensor_scatter_add);
}

static ww_status run_index_add(case_run *run)
{
    return run_write(run, ww_tensor_index_add);
}

const case_entry cases_index[] = {
    {"gather", run_gather},
    {"index_select", run_index_select},
    {"embedding", run_embedding},
    {"scatter", run_scatter},
    {"scatter_set", run_scatter},
    {"scatter_add", run_scatter_add},
    {"scatter_add_set", run_scatter_add},
    {"index_add", run_index_add},
    {NULL, NULL},
};
