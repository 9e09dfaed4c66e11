/* Waiting for other ranks, and finding out which are missing.
 *
 * A rank that died or hangs leaves the others in an operation that never ends, and MPI 3 does not say which rank is at fault.
 * So every operation is nonblocking and polled until the timeout. Then the rank starts a roll call: it sends every other rank
 * an empty message on a separate communicator, and collects theirs. Waiting ranks notice it at once and join in, even if their
 * own timeout has not passed; ranks that do not answer within the time of the roll call are named. After a roll call the
 * cluster is lost on every rank: a late rank finds the call and learns that the others have gone.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "mpi/cluster.h"

enum { ROLL_TAG = 1, SPINS = 100, RANKS_NAMED_MAX = 24 };
static const double yield_seconds = 20e-3, roll_seconds_max = 2.0;
static const long nap_nanoseconds = 50000;

static ww_status lose(ww_cluster *c, ww_status status)
{
    c->lost = true;
    c->lost_status = status;
    text_copy(c->why_lost, sizeof c->why_lost, ww_error_message());
    return status;
}

ww_status cluster_mpi(ww_cluster *c, int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length;
    if (code == MPI_SUCCESS)
        return WW_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "no text for this error");
    return lose(c, ww_fail(WW_DRIVER_ERROR, "rank %d: %s: %s (%d)", c->rank, call, text, code));
}

/* ---- the roll call ------------------------------------------------------------------------------------------------------- */

/* Receives pending messages of the roll call. Returns true if there was one. */
static bool receive_roll_calls(ww_cluster *c)
{
    bool heard = false;
    int there = c->roll != MPI_COMM_NULL;
    while (there) {
        MPI_Status from;
        there = 0;
        if (MPI_Iprobe(MPI_ANY_SOURCE, ROLL_TAG, c->roll, &there, &from) != MPI_SUCCESS || !there)
            break;
        if (MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, ROLL_TAG, c->roll, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            break;
        c->present[from.MPI_SOURCE] = heard = true;
    }
    return heard;
}

/* Answers a roll call. From now on no rank waits for earlier messages. */
static void answer_roll(ww_cluster *c)
{
    for (int32_t r = 0; r < c->ranks; r++)
        if (r != c->rank && MPI_Isend(NULL, 0, MPI_BYTE, r, ROLL_TAG, c->roll, &c->requests[r]) == MPI_SUCCESS)
            MPI_Request_free(&c->requests[r]);
}

/* Writes "ranks 1, 5 and 9", as many as fit. Returns how many are missing. */
static int32_t name_missing(const ww_cluster *c, char *text, size_t capacity)
{
    int32_t missing = 0, named = 0;
    for (int32_t r = 0; r < c->ranks; r++)
        missing += !c->present[r];
    text_copy(text, capacity, missing == 1 ? "rank " : "ranks ");
    for (int32_t r = 0; r < c->ranks && named < RANKS_NAMED_MAX; r++) {
        char number[32];
        if (c->present[r])
            continue;
        named++;
        const bool last = named == missing;
        snprintf(number, sizeof number, "%s%d", named == 1 ? "" : last ? " and " : ", ", r);
        text_append(text, capacity, number);
    }
    if (named < missing) {
        char more[48];
        snprintf(more, sizeof more, " and %d more", missing - named);
        text_append(text, capacity, more);
    }
    return missing;
}

/* `called`: another rank started the roll call before this one's timeout. */
static ww_status call_roll(ww_cluster *c, const char *what, bool called)
{
    char who[256];
    if (c->roll == MPI_COMM_NULL) /* it does not exist yet, so ranks cannot be asked */
        return lose(c, ww_fail(WW_TIMEOUT, "%s: not all of the %d ranks of the communicator have called it within %.3g s", what,
                               c->ranks, c->timeout_seconds));
    const double roll_seconds =
        c->timeout_seconds > 0.0 && c->timeout_seconds < roll_seconds_max ? c->timeout_seconds : roll_seconds_max;
    const double until = clock_seconds() + roll_seconds;
    c->present[c->rank] = true;
    answer_roll(c);
    int32_t missing = c->ranks - 1;
    while (missing > 0 && clock_seconds() < until) {
        receive_roll_calls(c);
        missing = 0;
        for (int32_t r = 0; r < c->ranks; r++)
            missing += !c->present[r];
        nanosleep(&(struct timespec){.tv_nsec = nap_nanoseconds}, NULL);
    }
    missing = name_missing(c, who, sizeof who);
    if (missing > 0)
        return lose(c,
                    ww_fail(WW_TIMEOUT, "%s: %s of %d did not report within %.3g s", what, who, c->ranks, c->timeout_seconds));
    if (called)
        return lose(c, ww_fail(WW_TIMEOUT,
                               "%s: another rank has stopped waiting for a rank that was late; all are here now: give "
                               "a longer timeout_ms",
                               what));
    return lose(c, ww_fail(WW_TIMEOUT, "%s: not done within %.3g s, though all ranks are here now; give a longer timeout_ms",
                           what, c->timeout_seconds));
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------- */

/* Tests each request separately: MPI_Testall() needs an array of statuses, and MPICH's compilers do not accept
 * MPI_STATUSES_IGNORE. */
static ww_status test_all(ww_cluster *c, int count, const char *what, bool *done)
{
    ww_status status = WW_OK;
    *done = true;
    for (int i = 0; i < count && status == WW_OK; i++) {
        int this_one = 0;
        status = cluster_mpi(c, MPI_Test(&c->requests[i], &this_one, MPI_STATUS_IGNORE), what);
        *done = *done && this_one;
    }
    return status;
}

ww_status cluster_wait(ww_cluster *c, int count, const char *what)
{
    const double begun = clock_seconds();
    for (long asked = 0;; asked++) {
        bool done;
        const ww_status status = test_all(c, count, what, &done);
        if (status != WW_OK || done)
            return status;
        if (asked < SPINS)
            continue;
        if (receive_roll_calls(c))
            return call_roll(c, what, true);
        const double waited = clock_seconds() - begun;
        if (c->timeout_seconds > 0.0 && waited > c->timeout_seconds)
            return call_roll(c, what, false);
        if (waited < yield_seconds)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = nap_nanoseconds}, NULL);
    }
}
