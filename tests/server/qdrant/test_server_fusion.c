/* Fusion of hits: the order and the scores of the server's answers, compared with a literal implementation of the
 * definition. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/qdrant/search.h"
#include "support/data/random.h"

enum { CHILDREN = 3, POINTS = 60, HITS_MAX = 50 };

static char names[POINTS][8];

/* Three searches that found some of the same points. All hits of the second have the same score. */
typedef struct prefetched {
    search children[CHILDREN];
    found_point found[CHILDREN][HITS_MAX];
} prefetched;

static void find_some(prefetched *p, uint64_t seed)
{
    test_random random = {seed};
    for (int i = 0; i < POINTS; i++)
        snprintf(names[i], sizeof names[i], "%d", i * 7 % 100);
    for (int c = 0; c < CHILDREN; c++) {
        int64_t count = 0;
        double score = 10;
        for (int i = 0; i < POINTS && count < HITS_MAX; i++)
            if (random_below(&random, 3) > 0) {
                p->found[c][count++] = (found_point){.id = names[(i * (2 * c + 1)) % POINTS], .score = score};
                score -= c == 1 ? 0 : (double)random_below(&random, 4); /* equal scores come, too */
            }
        p->children[c] = (search){.found = p->found[c], .found_count = count};
    }
}

/* The definition: points in the order in which they are found, sorted by score; of equal ones, the one found earlier comes
 * first. */
static int64_t fuse_slowly(const search *s, found_point *fused)
{
    int64_t count = 0;
    for (size_t c = 0; c < s->child_count; c++) {
        const search *child = &s->children[c];
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < child->found_count; i++)
            sum += child->found[i].score;
        const double mean = sum / (double)child->found_count;
        for (int64_t i = 0; i < child->found_count; i++)
            squares += (child->found[i].score - mean) * (child->found[i].score - mean);
        const double deviation = sqrt(squares / (double)(child->found_count - 1));
        for (int64_t i = 0; i < child->found_count; i++) {
            int64_t at = 0;
            while (at < count && strcmp(fused[at].id, child->found[i].id) != 0)
                at++;
            if (at == count)
                fused[count++] = (found_point){.id = child->found[i].id};
            const double weight = s->weights ? s->weights[c] : 1;
            if (s->kind == SEARCH_RRF)
                fused[at].score += 1 / ((double)(i + 1) / weight + s->rank_constant - 1);
            else
                fused[at].score += deviation == 0 ? 0.5 : (child->found[i].score - (mean - 3 * deviation)) / (6 * deviation);
        }
    }
    for (int64_t i = 1; i < count; i++)
        for (int64_t j = i; j > 0 && fused[j].score > fused[j - 1].score; j--) {
            const found_point moved = fused[j];
            fused[j] = fused[j - 1];
            fused[j - 1] = moved;
        }
    return count;
}

static void check_fused(search *s)
{
    found_point expected[CHILDREN * HITS_MAX];
    const int64_t count = fuse_slowly(s, expected);
    const int64_t rest = count > s->offset ? count - s->offset : 0;
    CHECK_OK(search_fuse(s));
    assert_int_equal(s->found_count, rest < s->limit ? rest : s->limit);
    for (int64_t i = 0; i < s->found_count; i++) {
        assert_string_equal(s->found[i].id, expected[s->offset + i].id);
        assert_memory_equal(&s->found[i].score, &expected[s->offset + i].score, sizeof(double));
    }
    memory_free(s->found);
}

static void fused_hits_have_the_order_and_scores_of_the_definition(void **state)
{
    (void)state;
    static const search_kind kinds[] = {SEARCH_RRF, SEARCH_DBSF};
    double weights[CHILDREN] = {1, 0.5, 3};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        prefetched p;
        find_some(&p, seed);
        for (size_t k = 0; k < 2; k++) {
            search s = {.kind = kinds[k], .children = p.children, .child_count = CHILDREN, .rank_constant = 2, .limit = 1000};
            check_fused(&s);
            s.offset = 5;
            s.limit = 10;
            check_fused(&s);
            s.offset = INT64_MAX;
            s.limit = INT64_MAX;
            check_fused(&s);
            s.offset = 0;
            s.weights = weights;
            check_fused(&s);
        }
    }
}

static void searches_that_found_nothing_are_fused_into_nothing(void **state)
{
    (void)state;
    search children[2] = {{0}};
    search s = {.kind = SEARCH_DBSF, .children = children, .child_count = 2, .limit = 10};
    CHECK_OK(search_fuse(&s));
    assert_int_equal(s.found_count, 0);
    memory_free(s.found);
}

/* It takes a tenth of a second; comparing each hit with every other would take minutes. */
static void many_hits_are_fused_quickly(void **state)
{
    (void)state;
    enum { MANY = 200000, ID_BYTES = 24 };
    char(*ids)[ID_BYTES] = malloc(sizeof(char[MANY][ID_BYTES]));
    found_point *found[2] = {malloc(MANY * sizeof **found), malloc(MANY * sizeof **found)};
    for (int64_t i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "%lld", (long long)i);
        found[0][i] = (found_point){.id = ids[i], .score = (double)(MANY - i)};
        found[1][MANY - 1 - i] = (found_point){.id = ids[i], .score = (double)i};
    }
    search children[2] = {{.found = found[0], .found_count = MANY}, {.found = found[1], .found_count = MANY}};
    search s = {.kind = SEARCH_RRF, .children = children, .child_count = 2, .rank_constant = 2, .limit = MANY};
    CHECK_OK(search_fuse(&s));
    assert_int_equal(s.found_count, MANY);
    assert_string_equal(s.found[0].id, ids[0]); /* first and last of a list are better than twice in the middle */
    assert_string_equal(s.found[1].id, ids[MANY - 1]);
    memory_free(s.found);
    free(found[0]);
    free(found[1]);
    free(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_hits_have_the_order_and_scores_of_the_definition),
        cmocka_unit_test(searches_that_found_nothing_are_fused_into_nothing),
        cmocka_unit_test(many_hits_are_fused_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
