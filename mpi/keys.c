/* Merges lists of keys. Which list has the next key is unpredictable, so the loop has no branch that depends on it. That is
 * twice as fast. */
#include "mpi/keys.h"

void rank_keys_merge(const rank_key *other, rank_key *kept, int64_t k)
{
    rank_key best[WW_K_MAX]; /* 32 KiB */
    int64_t from_other = 0, from_kept = 0;
    for (int64_t i = 0; i < k; i++) { /* both are below k, because their sum is i */
        const rank_key a = other[from_other], b = kept[from_kept];
        const bool first = rank_key_before(a, b);
        best[i].order = first ? a.order : b.order;
        best[i].row = first ? a.row : b.row;
        from_other += first;
        from_kept += !first;
    }
    if (from_other > 0)
        memcpy(kept, best, (size_t)k * sizeof *kept);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): MPI's type of function */
void rank_keys_reduce(void *other, void *kept, int *count, MPI_Datatype *list)
{
    int list_bytes;
    if (MPI_Type_size(*list, &list_bytes) != MPI_SUCCESS)
        return; /* never happens, because MPI passes a type that it has just used */
    const int64_t k = list_bytes / (int)sizeof(rank_key);
    for (int64_t i = 0; i < *count; i++)
        rank_keys_merge((const rank_key *)other + i * k, (rank_key *)kept + i * k, k);
}
