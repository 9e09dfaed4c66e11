/* Bytes between ranks, of any number: MPI counts in int, so they go in pieces. */
#include <string.h>

#include "base/integers.h"
#include "mpi/cluster.h"

enum { GATHER_TAG = 2 };

ww_status cluster_broadcast(ww_cluster *c, void *data, size_t bytes)
{
    ww_status status = WW_OK;
    for (size_t done = 0; done < bytes && status == WW_OK;) {
        const size_t piece = min_size(bytes - done, c->piece_bytes);
        status = cluster_mpi(
            c, MPI_Ibcast((char *)data + done, (int)piece, MPI_BYTE, c->root, c->communicator, &c->requests[0]), "MPI_Ibcast");
        if (status == WW_OK)
            status = cluster_wait(c, 1, "sending from the root");
        done += piece;
    }
    return status;
}

static ww_status send_to_root(ww_cluster *c, const char *mine, size_t bytes)
{
    ww_status status = WW_OK;
    for (size_t done = 0; done < bytes && status == WW_OK;) {
        const size_t piece = min_size(bytes - done, c->piece_bytes);
        status =
            cluster_mpi(c, MPI_Isend(mine + done, (int)piece, MPI_BYTE, c->root, GATHER_TAG, c->communicator, &c->requests[0]),
                        "MPI_Isend");
        if (status == WW_OK)
            status = cluster_wait(c, 1, "sending to the root");
        done += piece;
    }
    return status;
}

/* Receives one piece of every rank at a time, so that no rank waits for another rank's end. */
static ww_status receive_at_root(ww_cluster *c, const collecting *what)
{
    const int64_t piece_bytes = (int64_t)c->piece_bytes;
    ww_status status = WW_OK;
    int waiting = 1;
    for (int64_t done = 0; waiting > 0 && status == WW_OK; done += piece_bytes) {
        waiting = 0;
        for (int32_t r = 0; r < c->ranks && status == WW_OK; r++) {
            const int64_t left = what->starts[r + 1] - what->starts[r] - done;
            if (r == c->rank || left <= 0)
                continue;
            status = cluster_mpi(c,
                                 MPI_Irecv(what->all + what->starts[r] + done, (int)min_i64(left, piece_bytes), MPI_BYTE, r,
                                           GATHER_TAG, c->communicator, &c->requests[waiting]),
                                 "MPI_Irecv");
            waiting++;
        }
        if (status == WW_OK)
            status = cluster_wait(c, waiting, "receiving at the root");
    }
    return status;
}

ww_status cluster_collect(cluster_call *call, collecting *what)
{
    ww_cluster *c = call->cluster;
    char *copy = NULL;
    ww_status status = call_array(call, what->bytes, 1, "what a rank sends", &copy);
    if (status == WW_OK)
        status = call_array(call, (int64_t)c->ranks + 1, sizeof *what->starts, "what ranks send", &what->starts);
    if (status == WW_OK && what->bytes > 0)
        memcpy(copy, what->mine, (size_t)what->bytes);
    call->report.bytes = what->bytes;
    status = call_agree(call, status);
    if (status != WW_OK || !what->starts)
        return status;
    what->starts[0] = 0;
    for (int32_t r = 0; r < c->ranks; r++)
        what->starts[r + 1] = what->starts[r] + c->reports[r].bytes;
    if (c->rank == c->root)
        status = call_array(call, what->starts[c->ranks], 1, "what ranks send", &what->all);
    status = call_agree(call, status);
    if (status != WW_OK || c->rank != c->root)
        return status == WW_OK ? send_to_root(c, copy, (size_t)what->bytes) : status;
    if (what->bytes > 0)
        memcpy(what->all + what->starts[c->rank], copy, (size_t)what->bytes);
    return receive_at_root(c, what);
}
