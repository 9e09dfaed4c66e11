/* Choosing a plan for a SELECT on a collection's virtual table.
 *
 * SQLite calls plan_choose() (xBestIndex) several times for each statement, with the terms of WHERE that it could pass in this
 * join order, and takes the cheapest answer. What a query means must not depend on that order. So everything that defines the
 * search (MATCH, k, radius, filter, parameters, nprobe, recall, modifier, a list of rowids) is an argument of the search, or
 * the plan is refused. The steps:
 *
 *   look_at()         each term, by its column: take it as an argument (take_argument(), take_rowid(), take_bound()), leave
 *                     it to SQLite, or note what is `wrong` or missing
 *   the rules         arguments that need each other: checked in plan_choose(), the first that is broken is the message
 *   choose_search()   there is a MATCH: one search; or choose_rows(): one row by rowid or id, or all rows in order
 *   assign()          number the arguments for xFilter (request.c reads them in the same order) and say which of them SQLite
 *                     need not check again
 *   idxNum            the plan: a bit for each argument, how many rowids and lists there are, and which columns are read
 *
 * Three ways to say no. An error, if no other join order can help: the terms contradict each other. SQLITE_CONSTRAINT, if the
 * missing term may come in another order. PLAN_REFUSED at an infinite price, if there is no MATCH: this may be one branch of an
 * OR whose other branch is right; SQLite runs it, and gets the message, only if there is nothing else.
 */
#include "store/sqlite/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROWID_COLUMN = -1 };

/* Costs in SQLite's unit, roughly disk accesses. They only rank our plans against each other and against other tables'
 * plans. */
static const double COST_ROW = 10.0, COST_SEARCH = 1000.0, COST_ORDERED = 10000.0, COST_SCAN = 1e6;
/* One search per row of another table, as in `JOIN m ON m.handle = docs.rowid`. The join should go the other way round, because
 * then k applies before the join, as it does without a join. */
static const double COST_NEVER = 1e15;
/* For a plan without MATCH in a statement that uses the column `vector`: SQLite may be planning one branch of an OR, with the
 * MATCH outside of it. SQLite cannot evaluate MATCH on rows that were looked up, so lookups must cost more than any search. */
static const double COST_FACTOR_OF_BRANCH = 1e16;
static const double COST_REFUSED = 1e30;

enum { SQLITE_LISTS_MAX = 32 }; /* sqlite3_vtab_in() knows only the first 32 terms */

typedef struct choice {
    sqlite3_index_info *info;
    ww_metric metric;
    int place[PLAN_ARGUMENTS];  /* index of each argument's constraint, -1 for none; the first one for rowids */
    int lists[PLAN_COUNT_MAX];  /* constraints rowid IN (...) */
    int rowids[PLAN_COUNT_MAX]; /* constraints rowid = ... */
    int list_count, rowid_count;
    unsigned plan;
    bool list_is_missing; /* there is a rowid IN (...) that this plan cannot use */
    bool something_is_missing;
    bool rowids_are_left_out; /* SQLite checks them afterwards, which is correct only without a search */
    const char *wrong;
} choice;

static int bit_number(unsigned bit)
{
    return __builtin_ctz(bit);
}

static void take(choice *c, unsigned bit, int i)
{
    c->plan |= bit;
    c->place[bit_number(bit)] = i;
}

int plan_values(unsigned plan, unsigned bit)
{
    if (!(plan & bit))
        return 0;
    if (plan & PLAN_MATCH && (bit == PLAN_ROWID_IN || bit == PLAN_ROWID))
        return plan >> (bit == PLAN_ROWID_IN ? PLAN_LISTS_SHIFT : PLAN_ROWIDS_SHIFT) & PLAN_COUNT_MAX;
    return 1;
}

/* Takes an argument of the search: once each, only =, only one value. For a list SQLite would search once per value. SQLite
 * evaluates IS NULL and IS NOT NULL itself: the columns read as NULL. */
static void take_argument(choice *c, unsigned bit, int i)
{
    const int column = c->info->aConstraint[i].iColumn;
    const bool match = column == COLUMN_VECTOR || column == COLUMN_SPARSE;
    const int op = c->info->aConstraint[i].op;
    if (op == SQLITE_INDEX_CONSTRAINT_ISNULL || op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL)
        return;
    if (op != (match ? SQLITE_INDEX_CONSTRAINT_MATCH : SQLITE_INDEX_CONSTRAINT_EQ) || sqlite3_vtab_in(c->info, i, -1))
        c->wrong = "query, k, radius, filter, parameters, nprobe, recall and modifier take = and nothing else, and one value";
    else if (c->place[bit_number(bit)] >= 0)
        c->wrong = bit == PLAN_MATCH
                       ? "the query is given twice; join the queries, use UNION ALL, or use hybrid() for vector and sparse"
                       : "k, radius, filter, parameters, nprobe, recall and modifier can be given once each";
    else
        take(c, bit, i);
    if (!c->info->aConstraint[i].usable)
        c->something_is_missing = true;
}

static void take_rowid(choice *c, int i)
{
    if (c->info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
        return;
    const bool is_list = sqlite3_vtab_in(c->info, i, -1);
    const bool usable = c->info->aConstraint[i].usable;
    if (is_list && !usable)
        c->list_is_missing = true;
    if (!usable)
        return;
    int *const count = is_list ? &c->list_count : &c->rowid_count;
    if (*count == PLAN_COUNT_MAX || i >= SQLITE_LISTS_MAX) {
        c->rowids_are_left_out = true;
        return;
    }
    (is_list ? c->lists : c->rowids)[(*count)++] = i;
    if (*count == 1)
        take(c, is_list ? PLAN_ROWID_IN : PLAN_ROWID, i);
}

static void take_bound(choice *c, int i)
{
    const int op = c->info->aConstraint[i].op, column = c->info->aConstraint[i].iColumn;
    const bool below = op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
    const bool above = op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE;
    const unsigned bit = column == COLUMN_DISTANCE ? PLAN_DISTANCE_MAX : PLAN_SCORE_BOUND;
    const bool wanted = column == COLUMN_DISTANCE || c->metric == WW_L2 ? below : above;
    if (wanted && c->info->aConstraint[i].usable && c->place[bit_number(bit)] < 0)
        take(c, bit, i);
}

static void look_at(choice *c, int i)
{
    switch (c->info->aConstraint[i].iColumn) {
    case COLUMN_VECTOR:
    case COLUMN_SPARSE:
        if (c->info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_MATCH)
            take_argument(c, PLAN_MATCH, i);
        break;
    case COLUMN_QUERY:
        take_argument(c, PLAN_MATCH, i);
        break;
    case COLUMN_MODIFIER:
        take_argument(c, PLAN_MODIFIER, i);
        break;
    case COLUMN_K:
        take_argument(c, PLAN_K, i);
        break;
    case COLUMN_RADIUS:
        take_argument(c, PLAN_RADIUS, i);
        break;
    case COLUMN_FILTER:
        take_argument(c, PLAN_FILTER, i);
        break;
    case COLUMN_PARAMETERS:
        take_argument(c, PLAN_PARAMETERS, i);
        break;
    case COLUMN_NPROBE:
        take_argument(c, PLAN_NPROBE, i);
        break;
    case COLUMN_RECALL:
        take_argument(c, PLAN_RECALL, i);
        break;
    case COLUMN_SCORE:
    case COLUMN_DISTANCE:
        take_bound(c, i);
        break;
    case COLUMN_ID:
        if (c->info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && c->info->aConstraint[i].usable)
            take(c, PLAN_ID, i);
        break;
    case ROWID_COLUMN:
        take_rowid(c, i);
        break;
    default:
        break;
    }
}

static bool is_limit(int op)
{
    return op == SQLITE_INDEX_CONSTRAINT_LIMIT || op == SQLITE_INDEX_CONSTRAINT_OFFSET;
}

/* Passes the arguments to xFilter in the order of their bits. SQLite does not check again those that only this table
 * understands. */
static void assign(choice *c)
{
    int next = 1;
    for (int number = 0; number < PLAN_ARGUMENTS; number++) {
        const unsigned bit = 1u << number;
        const int values = plan_values(c->plan, bit);
        const int *const places = values > 1 ? (bit == PLAN_ROWID_IN ? c->lists : c->rowids) : &c->place[number];
        for (int j = 0; j < values; j++) {
            c->info->aConstraintUsage[places[j]].argvIndex = next++;
            c->info->aConstraintUsage[places[j]].omit = bit < PLAN_ROWID || bit >= PLAN_NPROBE;
            if (bit == PLAN_ROWID_IN)
                sqlite3_vtab_in(c->info, places[j], 1);
        }
    }
}

/* Does SQLite want the order of the hits, best first? */
static bool order_is_ours(const choice *c)
{
    if (c->info->nOrderBy != 1)
        return false;
    const int column = c->info->aOrderBy[0].iColumn;
    const bool descending = c->info->aOrderBy[0].desc;
    return column == COLUMN_DISTANCE ? !descending : column == COLUMN_SCORE && descending == (c->metric != WW_L2);
}

static void choose_search(choice *c)
{
    c->plan &= ~(unsigned)PLAN_ID; /* SQLite checks the ids of the rows found */
    c->plan |= (unsigned)c->list_count << PLAN_LISTS_SHIFT | (unsigned)c->rowid_count << PLAN_ROWIDS_SHIFT;
    const bool bounded = c->plan & (PLAN_K | PLAN_RADIUS | PLAN_ROWID_IN);
    c->info->estimatedCost = c->plan & PLAN_ROWID ? COST_NEVER : bounded ? COST_SEARCH : COST_ORDERED;
    c->info->estimatedRows = c->plan & PLAN_K ? 10 : 1000;
    c->info->orderByConsumed = order_is_ours(c);
    c->info->idxStr = c->plan & PLAN_K ? "nearest" : c->plan & PLAN_RADIUS ? "range" : "ordered";
}

static void choose_rows(choice *c)
{
    if (c->plan & PLAN_ROWID_IN) { /* SQLite does one lookup per value */
        take(c, PLAN_ROWID, c->place[bit_number(PLAN_ROWID_IN)]);
        c->plan &= ~(unsigned)PLAN_ROWID_IN;
    }
    c->plan &= c->plan & PLAN_ROWID ? PLAN_ROWID : PLAN_ID;
    const bool one = c->plan != 0;
    const double factor = c->info->colUsed & (1u << COLUMN_VECTOR | 1u << COLUMN_SPARSE) ? COST_FACTOR_OF_BRANCH : 1.0;
    c->info->estimatedCost = (one ? COST_ROW : COST_SCAN) * factor;
    c->info->estimatedRows = one ? 1 : 100000;
    if (one)
        c->info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    c->info->idxStr = c->plan & PLAN_ROWID ? "rowid" : c->plan & PLAN_ID ? "id" : "scan";
}

static int choose_refusal(sqlite3_index_info *info, const char *why)
{
    info->estimatedCost = COST_REFUSED;
    info->estimatedRows = 1;
    info->idxNum = PLAN_REFUSED;
    info->idxStr = (char *)(uintptr_t)why; /* SQLite does not write to it or free it */
    return SQLITE_OK;
}

/* Is there a term `sparse MATCH ...`? Then scores are dot products. */
static bool is_by_sparse(const sqlite3_index_info *info)
{
    for (int i = 0; i < info->nConstraint; i++)
        if (info->aConstraint[i].iColumn == COLUMN_SPARSE && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_MATCH)
            return true;
    return false;
}

int plan_choose(ww_metric metric, sqlite3_index_info *info, char **message)
{
    choice c = {.info = info, .metric = metric};
    for (int bit = 0; bit < PLAN_ARGUMENTS; bit++)
        c.place[bit] = -1;
    if (is_by_sparse(info))
        c.metric = WW_DOT;
    for (int i = 0; i < info->nConstraint; i++)
        if (!is_limit(info->aConstraint[i].op))
            look_at(&c, i);
    if (!c.wrong && !(c.plan & PLAN_MATCH) &&
        c.plan & (PLAN_K | PLAN_RADIUS | PLAN_FILTER | PLAN_PARAMETERS | PLAN_NPROBE | PLAN_RECALL | PLAN_MODIFIER))
        c.wrong =
            "k, radius, filter, parameters, nprobe, recall and modifier need a query: vector MATCH ..., sparse MATCH ..., or "
            "docs(QUERY, K) for the table docs";
    if (!c.wrong && c.plan & PLAN_PARAMETERS && !(c.plan & PLAN_FILTER))
        c.wrong = "there are parameters, but no filter";
    if (!c.wrong && c.plan & (PLAN_NPROBE | PLAN_RECALL) && (!(c.plan & PLAN_K) || c.plan & PLAN_RADIUS))
        c.wrong = "nprobe and recall are for the k nearest: they need k = ..., and no radius";
    if (!c.wrong && c.plan & PLAN_NPROBE && c.plan & PLAN_RECALL)
        c.wrong = "nprobe and recall are both given; give one of them";
    const int asked = c.plan & PLAN_MATCH ? info->aConstraint[c.place[bit_number(PLAN_MATCH)]].iColumn : COLUMN_ID;
    if (!c.wrong && asked == COLUMN_SPARSE && c.plan & (PLAN_NPROBE | PLAN_RECALL))
        c.wrong = "nprobe and recall are for vectors; a search by sparse vectors is always exact";
    if (!c.wrong && c.plan & PLAN_MATCH && asked != COLUMN_SPARSE && c.plan & PLAN_MODIFIER)
        c.wrong = "modifier is for a search by sparse vectors: sparse MATCH ...";
    if (!c.wrong && c.rowids_are_left_out && c.plan & PLAN_MATCH)
        c.wrong = "there are more than 31 terms on rowid, or 32 terms before one; put the rowids into one list, and that first";
    if (c.wrong && c.plan & PLAN_MATCH) {
        *message = sqlite3_mprintf("%s", c.wrong);
        return *message ? SQLITE_ERROR : SQLITE_NOMEM;
    }
    if (c.wrong)
        return choose_refusal(info, c.wrong);
    if (c.something_is_missing || (c.list_is_missing && c.plan & PLAN_MATCH))
        return SQLITE_CONSTRAINT;
    if (c.plan & PLAN_MATCH)
        choose_search(&c);
    else
        choose_rows(&c);
    assign(&c);
    c.plan |= asked == COLUMN_QUERY ? PLAN_QUERY : asked == COLUMN_SPARSE ? PLAN_SPARSE : 0;
    const uint64_t used = info->colUsed;
    c.plan |= (used & 1u << COLUMN_ID ? PLAN_WANTS_ID : 0) | (used & 1u << COLUMN_VECTOR ? PLAN_WANTS_VECTOR : 0) |
              (used & 1u << COLUMN_PAYLOAD ? PLAN_WANTS_PAYLOAD : 0) | (used & 1u << COLUMN_TEXT ? PLAN_WANTS_TEXT : 0) |
              (used & 1u << COLUMN_SPARSE ? PLAN_WANTS_SPARSE : 0);
    info->idxNum = (int)c.plan;
    return SQLITE_OK;
}
