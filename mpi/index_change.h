/* An index over ranks while it is built, split or merged: every rank makes its new part beside the current one, and installs it
 * when all ranks have theirs. So a failure on any rank leaves the index as it was. */
#ifndef WW_CLUSTER_INDEX_CHANGE_H
#define WW_CLUSTER_INDEX_CHANGE_H

#include "mpi/lists.h"

typedef struct index_change {
    cluster_call *call;
    ww_collection *outline; /* all lists, with the counts of all ranks */
    part_rows own;          /* of this rank */
    float *centroids;       /* of the old index, or NULL */
    ivf_update update;      /* the index's numbers; change_install() adds lists and rows */
} index_change;

/* Makes the outline. */
ww_status change_outline(index_change *m, const list_set *lists);

/* Collective: finds lists for the rows that have none, and gives the outline the counts of all ranks. `mine` is this rank's
 * status so far. */
ww_status change_assign(index_change *m, ww_status mine);

/* Collective: splits lists until none is too large on all ranks together. */
ww_status change_split_large(index_change *m);

/* Collective: makes the parts from the outline and the rows, and installs them. */
ww_status change_install(index_change *m);

void change_free(index_change *m);

/* Collective: splits lists that are too large by the counts of all ranks; below, merges tiny ones. */
ww_status index_split_large(cluster_call *call, const part_counts *counts);
ww_status index_merge_tiny(cluster_call *call, const part_counts *counts);

#endif
