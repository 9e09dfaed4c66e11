/* Merging lists of keys, in place and without memory: first how many of each list stay, then from the back, where the kept list
 * has room for exactly the others. */
#include "cluster/keys.h"

void rank_keys_merge(const rank_key *other, rank_key *kept, int64_t k)
{
    int64_t from_other = 0, from_kept = 0;
    while (from_other + from_kept < k) {
        if (rank_key_before(other[from_other], kept[from_kept]))
            from_other++;
        else
            from_kept++;
    }
    while (from_other > 0) {
        rank_key *place = &kept[from_other + from_kept - 1];
        if (from_kept > 0 && rank_key_before(other[from_other - 1], kept[from_kept - 1]))
            *place = kept[--from_kept];
        else
            *place = other[--from_other];
    }
}

void rank_keys_reduce(void *other, void *kept, int *count, MPI_Datatype *list)
{
    int list_bytes;
    if (MPI_Type_size(*list, &list_bytes) != MPI_SUCCESS)
        return; /* cannot be: MPI hands over a type that it has just used */
    const int64_t k = list_bytes / (int)sizeof(rank_key);
    for (int64_t i = 0; i < *count; i++)
        rank_keys_merge((const rank_key *)other + i * k, (rank_key *)kept + i * k, k);
}
