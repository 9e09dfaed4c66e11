// Debian's FAISS as three C functions, so that the same driver times it as times everything else.
#include <cstdint>
#include <faiss/IndexFlat.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *peer_create(int dim, int l2, int64_t count, const float *rows)
{
    auto *index = new faiss::IndexFlat(dim, l2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT);
    index->add(count, rows);
    return index;
}

EXPORT void peer_search(void *index, int64_t count, const float *queries, int64_t k, float *distances, int64_t *ids)
{
    static_cast<faiss::IndexFlat *>(index)->search(count, queries, k, distances, ids);
}

EXPORT void peer_destroy(void *index)
{
    delete static_cast<faiss::IndexFlat *>(index);
}
