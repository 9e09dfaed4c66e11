/* The table of instruction sets: every entry is complete, lists have ends, and a set that fills only some of its fields gets
 * the others from the scalar set, so that adding a set is one folder and one line, as CONTRIBUTING.md says.
 */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/isa/scalar/scalar.h"
#include "cpu/quant/quant.h"

static bool yes(void)
{
    return true;
}

static bool no(void)
{
    return false;
}

/* All functions that the backend calls without checking for NULL. */
static void check_complete(const instruction_set *set)
{
    assert_true(set->name && set->name[0] && set->present);
    assert_true(set->dot && set->squares && set->store && set->sums && set->filter_sums && set->filter_dots);
    assert_true(set->encode && set->store_encoded);
    assert_true(set->bound_strips && set->filter_strips && set->filter_rows && set->filter_one);
    assert_true(set->element_loops && set->row_loops && set->matmul && set->products && set->quants);
}

static void check_products(const instruction_set *set)
{
    assert_non_null(set->products[0]);
    for (const screen_products *const *p = set->products; *p; p++) {
        assert_true((*p)->name && (*p)->present && (*p)->one && (*p)->pack && (*p)->groups && (*p)->code_bytes > 0);
        assert_true(!(*p)->begin == !(*p)->end);
        if (set->present() && !p[1])
            assert_true((*p)->present()); /* the last one runs on every processor with the set */
    }
}

static void check_quants(const instruction_set *set)
{
    assert_non_null(set->quants->name);
    for (const quant_set *q = set->quants; q->name; q++) {
        assert_true(!q[1].name == !q->present); /* the last, and only the last, needs nothing besides the set */
        assert_true(!q->tiles_begin == !q->tiles_end);
        for (int32_t type = 0; type < BLOCK_TYPES; type++) {
            const quant_coder *coder = &q->coders[type];
            const quant_product *product = &q->products[type];
            const bool format = block_elements(type) > 0, blocks = block_elements(type) > 1;
            assert_int_equal(coder->encode && coder->arrange && coder->restore && coder->decode, format);
            assert_int_equal(product->gemv_prepare && product->gemv && product->gemv_bytes > 0, blocks);
            if (blocks && q->gemv_columns_max < INT32_MAX)
                assert_true(product->tile_prepare && product->panel && product->tiles && product->tile_bytes > 0 &&
                            product->panel_bytes > 0);
        }
    }
}

static void every_set_in_the_table_is_complete(void **state)
{
    (void)state;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        check_complete(*set);
        check_products(*set);
        check_quants(*set);
        for (const instruction_set *const *other = instruction_sets; other < set; other++)
            assert_string_not_equal((*other)->name, (*set)->name);
        assert_int_equal(strcmp((*set)->name, "scalar") == 0, set[1] == NULL); /* the reference is the last */
    }
}

static void a_set_with_nothing_but_a_name_is_the_scalar_one(void **state)
{
    (void)state;
    instruction_set set = {.name = "new", .present = yes};
    CHECK_OK(instruction_set_complete(&set));
    check_complete(&set);
    check_products(&set);
    check_quants(&set);
    assert_string_equal(set.name, "new");
    assert_string_equal(screen_products_choose(&set)->name, "scalar");
    assert_string_equal(quant_set_choose(&set)->name, "scalar");
    const float a[] = {1.5f, -2.0f, 0.25f}, b[] = {2.0f, 0.5f, 8.0f};
    assert_true(set.dot(a, b, 3) == 4.0f);
}

static float own_dot(const float *a, const float *b, int64_t n)
{
    (void)a;
    (void)b;
    return (float)n;
}

static void functions_that_a_set_fills_are_kept(void **state)
{
    (void)state;
    instruction_set set = {.name = "new", .present = no, .dot = own_dot};
    CHECK_OK(instruction_set_complete(&set));
    assert_true(set.dot == own_dot && set.present == no);
}

/* Tests of strips use bounds made by the same set: half from another set would read uninitialized memory. */
static void the_screens_functions_come_from_the_same_set(void **state)
{
    (void)state;
    const instruction_set *best = instruction_sets[0], *last = best;
    for (const instruction_set *const *each = instruction_sets; *each; each++)
        last = *each;
    instruction_set set = *best;
    set.filter_one = NULL;
    CHECK_OK(instruction_set_complete(&set));
    assert_true(set.bound_strips == last->bound_strips && set.filter_strips == last->filter_strips &&
                set.filter_rows == last->filter_rows && set.filter_one == last->filter_one &&
                set.filter_leads == last->filter_leads);
    assert_true(set.sums == best->sums);
}

static void a_set_without_a_name_is_refused_with_a_message(void **state)
{
    (void)state;
    instruction_set nameless = {.present = yes}, absent = {.name = "new"};
    CHECK_FAILS(WW_INTERNAL, instruction_set_complete(&nameless));
    assert_non_null(strstr(ww_error_message(), "no name"));
    CHECK_FAILS(WW_INTERNAL, instruction_set_complete(&absent));
    assert_non_null(strstr(ww_error_message(), "'new' has no .present"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_in_the_table_is_complete),
        cmocka_unit_test(a_set_with_nothing_but_a_name_is_the_scalar_one),
        cmocka_unit_test(functions_that_a_set_fills_are_kept),
        cmocka_unit_test(the_screens_functions_come_from_the_same_set),
        cmocka_unit_test(a_set_without_a_name_is_refused_with_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
