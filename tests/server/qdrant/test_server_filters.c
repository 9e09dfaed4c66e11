/* Filters as Qdrant writes them: what they admit, and what they refuse and where. */
#include "support/check.h"

#include <string.h>

#include "server/qdrant/filter.h"
#include "server/qdrant/point_id.h"
#include "support/memory.h"

static bool admits(const char *condition, const char *id, const char *payload)
{
    ww_filter *f = NULL;
    filter_facts facts = {0};
    int32_t matches = -1;
    CHECK_OK(ww_filter_create(&f));
    CHECK_OK(filter_read_qdrant(f, condition, NULL, &facts));
    assert_int_equal(facts.by_vector, strstr(condition, "has_vector") != NULL);
    CHECK_OK(ww_filter_matches(f, id, payload, &matches));
    ww_filter_destroy(f);
    return matches;
}

#define CITY                                                                                                                   \
    "{\"n\": 7, \"f\": 7.0, \"name\": \"New York City\", \"tags\": [\"a\", \"b\", null], \"none\": null, \"empty\": [],"       \
    " \"when\": \"2024-03-01T12:00:00Z\", \"yes\": true, \"deep\": {\"list\": [{\"a\": 1, \"b\": 2}, {\"a\": 3, \"b\": 4}]}}"
#define MUST(condition)     "{\"must\": [" condition "]}"
#define KEY(key, condition) MUST("{\"key\": \"" key "\", " condition "}")

static const struct {
    const char *filter;
    bool admitted;
} cases[] = {
    {"{}", true},
    {KEY("n", "\"match\": {\"value\": 7}"), true},
    {KEY("f", "\"match\": {\"value\": 7}"), false}, /* 7.0 is no integer there */
    {KEY("yes", "\"match\": {\"value\": true}"), true},
    {KEY("yes", "\"match\": {\"value\": 1}"), false},
    {KEY("tags", "\"match\": {\"any\": [\"x\", \"b\"]}"), true},
    {KEY("tags", "\"match\": {\"any\": []}"), false},
    {KEY("tags", "\"match\": {\"except\": [\"a\", \"b\"]}"), false}, /* null is no other value */
    {KEY("tags", "\"match\": {\"except\": [\"a\"]}"), true},
    {KEY("missing", "\"match\": {\"except\": [\"a\"]}"), false},
    {KEY("name", "\"match\": {\"text\": \"city NEW\"}"), true},
    {KEY("name", "\"match\": {\"text\": \"ci\"}"), false},
    {KEY("name", "\"match\": {\"text\": \"\"}"), false},
    {KEY("name", "\"match\": {\"text_any\": \"old city\"}"), true},
    {KEY("name", "\"match\": {\"phrase\": \"york city\"}"), true},
    {KEY("name", "\"match\": {\"phrase\": \"new city\"}"), false},
    {KEY("name", "\"match\": {\"prefix\": \"New Y\"}"), true},
    {KEY("name", "\"match\": {\"substring\": \"ork C\"}"), true},
    {KEY("f", "\"range\": {\"gt\": 6.5, \"lte\": 7}"), true},
    {KEY("f", "\"range\": {\"gt\": 7}"), false},
    {KEY("n", "\"range\": {\"gte\": null, \"lt\": 8}"), true},
    {KEY("name", "\"range\": {\"gt\": 0}"), false},
    {KEY("when", "\"range\": {\"gt\": \"2024-02-28\", \"lt\": \"2024-03-01T13:00:00+00:30\"}"), true},
    {KEY("tags", "\"values_count\": {\"gte\": 3}"), true},
    {KEY("missing", "\"values_count\": {\"lt\": 1}"), true},
    {KEY("n", "\"values_count\": {\"gt\": 1}"), false},
    {KEY("empty", "\"is_empty\": true"), true},
    {KEY("n", "\"is_empty\": false"), true},
    {MUST("{\"is_empty\": {\"key\": \"missing\"}}"), true},
    {MUST("{\"is_empty\": {\"key\": \"tags\"}}"), false},
    {MUST("{\"is_null\": {\"key\": \"none\"}}"), true},
    {MUST("{\"is_null\": {\"key\": \"tags\"}}"), true},
    {MUST("{\"is_null\": {\"key\": \"missing\"}}"), false},
    {KEY("deep.list[].a", "\"match\": {\"value\": 3}"), true},
    {KEY("deep.list[0].a", "\"match\": {\"value\": 3}"), false},
    {KEY("deep.list[1].a", "\"match\": {\"value\": 3}"), true},
    {KEY("deep.list.a", "\"match\": {\"value\": 3}"), false},
    {MUST("{\"nested\": {\"key\": \"deep.list\", \"filter\": " MUST("{\"key\": \"a\", \"match\": {\"value\": 1}}, {\"key\": "
                                                                    "\"b\", \"match\": {\"value\": 2}}") "}}"),
     true},
    {MUST("{\"nested\": {\"key\": \"deep.list[]\", \"filter\": " MUST("{\"key\": \"a\", \"match\": {\"value\": 1}}, {\"key\": "
                                                                      "\"b\", \"match\": {\"value\": 4}}") "}}"),
     false},
    {MUST("{\"has_id\": [3, 12, 18446744073709551615]}"), true},
    {MUST("{\"has_id\": [13]}"), false},
    {"{\"must_not\": {\"has_id\": [12]}}", false},
    {"{\"should\": []}", true},
    {"{\"should\": [{\"has_id\": [1]}, {\"has_id\": [12]}]}", true},
    {"{\"should\": [{\"has_id\": [1]}]}", false},
    {"{\"min_should\": {\"min_count\": 2, \"conditions\": [{\"has_id\": [12]}, {\"has_id\": [1]}, {\"is_empty\": {\"key\": "
     "\"empty\"}}]}}",
     true},
    {"{\"min_should\": {\"min_count\": 3, \"conditions\": [{\"has_id\": [12]}, {\"has_id\": [1]}, {\"is_empty\": {\"key\": "
     "\"empty\"}}]}}",
     false},
    {MUST("{\"must_not\": [{\"has_id\": [1]}]}"), true},
};

static void each_condition_admits_the_rows_that_qdrant_admits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char opposite[1024];
        snprintf(opposite, sizeof opposite, "{\"must_not\": [%s]}", cases[i].filter);
        if (admits(cases[i].filter, "12", CITY) != cases[i].admitted)
            fail_msg("%s: admitted is not %d", cases[i].filter, cases[i].admitted);
        if (admits(opposite, "12", CITY) == cases[i].admitted)
            fail_msg("%s: the opposite is not %d", cases[i].filter, !cases[i].admitted);
    }
}

#define BERLIN "{\"geo\": {\"lat\": 52.52, \"lon\": 13.405}}"
#define SQUARE                                                                                                                 \
    "{\"points\": [{\"lat\": 50, \"lon\": 10}, {\"lat\": 50, \"lon\": 20}, {\"lat\": 60, \"lon\": 20}, {\"lat\": 60, "         \
    "\"lon\": 10}, {\"lat\": 50, \"lon\": 10}]}"
#define HOLE                                                                                                                   \
    "{\"points\": [{\"lat\": 52, \"lon\": 13}, {\"lat\": 52, \"lon\": 14}, {\"lat\": 53, \"lon\": 14}, {\"lat\": 53, "         \
    "\"lon\": 13}, {\"lat\": 52, \"lon\": 13}]}"
#define FROM(metres) KEY("geo", "\"geo_radius\": {\"center\": {\"lat\": 51.5074, \"lon\": -0.1278}, \"radius\": " metres "}")
#define BOX(top, left, bottom, right)                                                                                          \
    KEY("geo", "\"geo_bounding_box\": {\"top_left\": {\"lat\": " top ", \"lon\": " left                                        \
               "}, \"bottom_right\": {\"lat\": " bottom ", \"lon\": " right "}}")

/* London is 931,562 m from there, on a sphere of the mean radius. */
static void places_are_within_circles_boxes_and_polygons(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *payload;
        bool admitted;
    } places[] = {
        {FROM("931000"), BERLIN, false},
        {FROM("932000"), BERLIN, true},
        {FROM("1e9"), BERLIN, true},
        {FROM("1e9"), "{\"geo\": {\"lat\": \"52\", \"lon\": 13}}", false},
        {FROM("932000"), "{\"geo\": [{\"lat\": 0, \"lon\": 0}, {\"lat\": 52.52, \"lon\": 13.405}]}", true},
        {BOX("53", "13", "52", "14"), BERLIN, true},
        {BOX("52.52", "13", "52", "14"), BERLIN, false}, /* on the edge */
        {BOX("53", "14", "52", "13.5"), BERLIN, true},   /* around the earth */
        {BOX("53", "14", "52", "13"), BERLIN, false},
        {KEY("geo", "\"geo_polygon\": {\"exterior\": " SQUARE "}"), BERLIN, true},
        {KEY("geo", "\"geo_polygon\": {\"exterior\": " HOLE "}"), "{\"geo\": {\"lat\": 55, \"lon\": 13.5}}", false},
        {KEY("geo", "\"geo_polygon\": {\"exterior\": " SQUARE ", \"interiors\": [" HOLE "]}"), BERLIN, false},
        {KEY("geo", "\"geo_polygon\": {\"exterior\": " SQUARE "}"), "{\"geo\": {\"lat\": 50, \"lon\": 15}}", false},
        {MUST("{\"has_vector\": \"\"}"), "{}", true},
        {MUST("{\"has_vector\": \"image\"}"), "{}", false},
        {"{\"must_not\": [{\"has_vector\": \"image\"}]}", "{}", true},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (admits(places[i].filter, "1", places[i].payload) != places[i].admitted)
            fail_msg("%s of %s is not %d", places[i].filter, places[i].payload, places[i].admitted);
}

static void uuids_are_the_same_however_they_are_written(void **state)
{
    (void)state;
    static const char *const forms[] = {"\"936da01f-9abd-4d9d-80c7-02af85c822a8\"", "\"936DA01F9ABD4D9D80C702AF85C822A8\"",
                                        "\"urn:uuid:936da01f-9abd-4d9d-80c7-02af85c822a8\"",
                                        "\"{936da01f-9abd-4d9d-80c7-02af85c822a8}\""};
    char id[POINT_ID_BYTES], text[128];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        assert_true(point_id_read(forms[i], id));
        assert_string_equal(id, "936da01f-9abd-4d9d-80c7-02af85c822a8");
        snprintf(text, sizeof text, "{\"must\": {\"has_id\": [%s, 7]}}", forms[i]);
        assert_true(admits(text, id, NULL));
    }
    static const char *const wrong[] = {"-1",
                                        "1.0",
                                        "18446744073709551616",
                                        "\"936da01f-9abd-4d9d-80c7-02af85c822a\"",
                                        "\"7\"",
                                        "\"936da01f9abd-4d9d-80c7-02af85c822a8-\"",
                                        "01",
                                        "null",
                                        "[]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (point_id_read(wrong[i], id))
            fail_msg("%s was read as %s", wrong[i], id);
}

static void numbers_come_before_uuids_in_their_own_order(void **state)
{
    (void)state;
    assert_true(point_id_compare("9", "10") < 0);
    assert_true(point_id_compare("18446744073709551615", "00000000-0000-0000-0000-000000000000") < 0);
    assert_true(point_id_compare("a", "b") < 0);
}

static void wrong_filters_are_refused_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct {
        ww_status status;
        const char *filter, *place;
    } wrong[] = {
        {WW_INVALID_ARGUMENT, "{\"mst\": []}", "mst"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{}, {\"key\": \"a\"}]}", "must.1"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a..b\", \"match\": {\"value\": 1}}]}", "a..b"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a[\", \"match\": {\"value\": 1}}]}", "a["},
        {WW_INVALID_ARGUMENT, "{\"should\": [{\"key\": \"a\", \"match\": {\"value\": 1.5}}]}", "should.0.match"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a\", \"match\": {\"vlaue\": 1}}]}", "must.0.match"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a\", \"range\": {\"gt\": \"x\"}}]}", "must.0.range"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"has_id\": [1.5]}]}", "must.0"},
        {WW_INVALID_ARGUMENT, "{\"min_should\": {\"conditions\": [], \"min_count\": 0}}", "min_should"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a\", \"geo_radius\": {}}]}", "must.0.geo_radius"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a\", \"geo_bounding_box\": {\"top_left\": {\"lat\": 91, \"lon\": 0}}}]}",
         "top_left"},
        {WW_INVALID_ARGUMENT,
         "{\"must\": [{\"key\": \"a\", \"geo_polygon\": {\"exterior\": {\"points\": [{\"lat\": 1, \"lon\": 1}]}}}]}",
         "exterior"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"has_vector\": 1}]}", "must.0"},
        {WW_UNSUPPORTED, "{\"must\": [{\"slice\": {\"total\": 2, \"index\": 0}}]}", "must.0"},
        {WW_INVALID_ARGUMENT, "[]", "an object is needed"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a\\u0000b\", \"is_null\": true}]}", "must.0"},
        {WW_INVALID_ARGUMENT, "{\"must\": [{\"key\": \"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q\", \"is_null\": true}]}", "16 parts"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ww_filter *f = NULL;
        filter_facts facts = {0};
        CHECK_OK(ww_filter_create(&f));
        CHECK_FAILS(wrong[i].status, filter_read_qdrant(f, wrong[i].filter, NULL, &facts));
        ww_filter_destroy(f);
        if (!strstr(ww_error_message(), wrong[i].place))
            fail_msg("%s: the message does not name %s: %s", wrong[i].filter, wrong[i].place, ww_error_message());
    }
}

/* All allocations of the reader: each may fail, and nothing stays allocated. */
static void every_allocation_of_reading_may_fail(void **state)
{
    (void)state;
    static const char filter[] =
        "{\"must\": [{\"key\": \"a\", \"match\": {\"any\": [\"x\", 2, true]}}, {\"has_id\": [7, \"a\"]}, {\"nested\": "
        "{\"key\": "
        "\"b[]\", \"filter\": " MUST(
            "{\"key\": \"c\", \"range\": {\"gt\": \"2024-01-01\"}}") "}}, {\"key\": \"geo\", "
                                                                     "\"geo_polygon\": {\"exterior\": " SQUARE
                                                                     "}}, {\"is_null\": {\"key\": \"d\"}}]}";
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    int64_t n = 0;
    while (status != WW_OK && n < 1000) {
        ww_filter *f = NULL;
        filter_facts facts = {0};
        fail_allocation_at(++n);
        status = ww_filter_create(&f);
        if (status == WW_OK)
            status = filter_read_qdrant(f, filter, NULL, &facts);
        fail_allocation_at(0);
        ww_filter_destroy(f);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        assert_int_equal(blocks_held(), held);
    }
    assert_true(n > 20 && status == WW_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_condition_admits_the_rows_that_qdrant_admits),
        cmocka_unit_test(places_are_within_circles_boxes_and_polygons),
        cmocka_unit_test(uuids_are_the_same_however_they_are_written),
        cmocka_unit_test(numbers_come_before_uuids_in_their_own_order),
        cmocka_unit_test(wrong_filters_are_refused_where_they_are_wrong),
        cmocka_unit_test(every_allocation_of_reading_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
