/* Filters as dictionaries: what they admit, what they refuse and where in the filter the message points. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include <warpwave/filter.h>

static bool admits(const char *text, const char *payload)
{
    ww_filter *f = NULL;
    int32_t matches = -1;
    CHECK_OK(ww_filter_read(text, &f));
    CHECK_OK(ww_filter_matches(f, "7", payload, &matches));
    ww_filter_destroy(f);
    return matches;
}

#define BOOK                                                                                                                   \
    "{\"year\": 2001, \"lang\": \"en\", \"price\": 9.5, \"draft\": false, \"note\": null, \"tags\": [\"a\", \"b\", 3],"        \
    " \"owner\": {\"name\": \"Ann\", \"born\": \"1970-02-28T23:00:00-02:00\"}, \"a.b\": 1, \"big\": 9007199254740993}"

static const struct {
    const char *filter, *payload;
    bool admitted;
} admissions[] = {
    {"{}", BOOK, true},
    {"{}", NULL, true},
    {"{\"year\": 2001}", BOOK, true},
    {"{\"year\": 2001.0}", BOOK, true},
    {"{\"year\": 2002}", BOOK, false},
    {"{\"year\": \"2001\"}", BOOK, false},
    {"{\"year\": {\"$gt\": 2000, \"$lt\": 2001.5}}", BOOK, true},
    {"{\"year\": {\"$gt\": 2000, \"$lt\": 2001}}", BOOK, false},
    {"{\"year\": {\"$gte\": 2001, \"$lte\": 2001}}", BOOK, true},
    {"{\"big\": {\"$gt\": 9007199254740992.0}}", BOOK, true}, /* 2^53 + 1 is no double */
    {"{\"big\": {\"$eq\": 9007199254740992}}", BOOK, false},
    {"{\"year\": {\"$lt\": 1e400}}", BOOK, true},
    {"{\"lang\": {\"$in\": [\"de\", \"en\"]}}", BOOK, true},
    {"{\"lang\": {\"$in\": []}}", BOOK, false},
    {"{\"lang\": {\"$nin\": [\"de\", \"en\"]}}", BOOK, false},
    {"{\"lang\": {\"$ne\": \"de\"}}", BOOK, true},
    {"{\"missing\": {\"$ne\": \"de\"}}", BOOK, true},
    {"{\"missing\": {\"$ne\": \"de\"}}", NULL, true},
    {"{\"missing\": {\"$gt\": 1}}", BOOK, false},
    {"{\"missing\": {\"$not\": {\"$gt\": 1}}}", BOOK, true},
    {"{\"lang\": {\"$gt\": \"e\"}}", BOOK, true},
    {"{\"lang\": {\"$gt\": \"en\"}}", BOOK, false},
    {"{\"lang\": {\"$lt\": \"enn\"}}", BOOK, true},
    {"{\"draft\": false}", BOOK, true},
    {"{\"draft\": 0}", BOOK, false},
    {"{\"year\": true}", "{\"year\": 1}", false},
    {"{\"note\": null}", BOOK, true},
    {"{\"missing\": null}", BOOK, true},
    {"{\"missing\": null}", NULL, true},
    {"{\"year\": null}", BOOK, false},
    {"{\"note\": {\"$exists\": true}}", BOOK, true},
    {"{\"missing\": {\"$exists\": true}}", BOOK, false},
    {"{\"missing\": {\"$exists\": false}}", BOOK, true},
    {"{\"lang\": {\"$in\": [\"fr\", \"en\", \"de\", \"e\", \"english\"]}}", BOOK, true},
    {"{\"lang\": {\"$in\": [\"fr\", \"enn\", \"de\", \"e\", \"\"]}}", BOOK, false},
    {"{\"x\": {\"$in\": [\"z\", \"a\\nb\", \"a\"]}}", "{\"x\": \"a\\u000ab\"}", true},
    {"{\"x\": {\"$in\": [9, 3, -5, 7, 3]}}", "{\"x\": -5}", true},
    {"{\"x\": {\"$in\": [9, 3, -5, 7, 3]}}", "{\"x\": 3.0}", true},
    {"{\"x\": {\"$in\": [9, 3, -5, 7, 3]}}", "{\"x\": 4}", false},
    {"{\"x\": {\"$in\": [9, 3, -5, 7, 3]}}", "{\"x\": \"3\"}", false},
    {"{\"x\": {\"$in\": [9, 3, -5, 7, 3]}}", "{\"x\": [1, 7]}", true},
    {"{\"x\": {\"$nin\": [9, 3, -5]}}", "{\"x\": 4}", true},
    {"{\"x\": {\"$nin\": [9, 3, -5]}}", "{\"x\": 9}", false},
    {"{\"x\": {\"$in\": [9, \"a\", 2.5, true]}}", "{\"x\": 2.5}", true},
    {"{\"tags\": \"b\"}", BOOK, true},
    {"{\"tags\": {\"$contains\": \"b\"}}", BOOK, true},
    {"{\"tags\": {\"$contains\": 3}}", BOOK, true},
    {"{\"tags\": {\"$contains\": \"c\"}}", BOOK, false},
    {"{\"tags\": {\"$gt\": 2}}", BOOK, true},
    {"{\"tags\": {\"$ne\": \"a\"}}", BOOK, false},
    {"{\"tags\": null}", BOOK, false},
    {"{\"lang\": {\"$contains\": \"n\"}}", BOOK, true},
    {"{\"lang\": {\"$contains\": \"\"}}", BOOK, true},
    {"{\"lang\": {\"$contains\": \"ne\"}}", BOOK, false},
    {"{\"owner.name\": \"Ann\"}", BOOK, true},
    {"{\"owner\": \"Ann\"}", BOOK, false},
    {"{\"owner.name.first\": {\"$exists\": false}}", BOOK, true},
    {"{\"a.b\": 1}", BOOK, false},
    {"{\"\\\"a.b\\\"\": 1}", BOOK, true},
    {"{\"owner.born\": {\"$date\": \"1970-03-01T01:00:00Z\"}}", BOOK, true},
    {"{\"owner.born\": {\"$gt\": {\"$date\": \"1970-03-01\"}}}", BOOK, true},
    {"{\"owner.born\": {\"$lt\": {\"$date\": \"1970-03-01\"}}}", BOOK, false},
    {"{\"lang\": {\"$lt\": {\"$date\": \"1970-03-01\"}}}", BOOK, false},
    {"{\"$and\": [{\"year\": 2001}, {\"lang\": \"en\"}]}", BOOK, true},
    {"{\"$or\": [{\"year\": 1}, {\"lang\": \"en\"}]}", BOOK, true},
    {"{\"$or\": [{\"year\": 1}, {\"lang\": \"de\"}]}", BOOK, false},
    {"{\"$not\": {\"year\": 2001, \"lang\": \"de\"}}", BOOK, true},
    {"{\"$not\": {\"year\": 2001, \"lang\": \"en\"}}", BOOK, false},
    {"{\"$not\": {\"$or\": [{\"year\": 1}, {\"$not\": {\"lang\": \"en\"}}]}}", BOOK, true},
    {"{\"caf\\u00e9\": \"\\ud83d\\ude00\"}", "{\"caf\\u00e9\": \"\\ud83d\\ude00\"}", true},
    {"{\"caf\xc3\xa9\": \"\xf0\x9f\x98\x80\"}", "{\"caf\\u00e9\": \"\\ud83d\\ude00\"}", true},
    {"{\"x\": {\"$contains\": \"\\n\"}}", "{\"x\": \"a\\nb\"}", true},
    {"{\"x\": 1}", "[1, 2]", false},
    {"{\"x\": 1}", "7", false},
    {"{\"x\": 2}", " { \"y\" : [ { \"x\" : 2 } , \"]}\" ] , \"x\" : 2 } ", true},
};

static void a_filter_admits_the_rows_that_meet_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof admissions / sizeof *admissions; i++)
        if (admits(admissions[i].filter, admissions[i].payload) != admissions[i].admitted)
            fail_msg("%s should %sadmit %s", admissions[i].filter, admissions[i].admitted ? "" : "not ",
                     admissions[i].payload ? admissions[i].payload : "a row without a payload");
}

static void a_wrong_filter_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *filter;
        ww_status status;
        const char *message;
    } cases[] = {
        {"", WW_INVALID_ARGUMENT, "filter: not JSON"},
        {"{\"a\": }", WW_INVALID_ARGUMENT, "filter: not JSON"},
        {"[]", WW_INVALID_ARGUMENT, "an object is needed"},
        {"{\"year\": {\"$gtt\": 1}}", WW_INVALID_ARGUMENT, "filter: year.$gtt: unknown operator"},
        {"{\"$xor\": []}", WW_INVALID_ARGUMENT, "filter: $xor: unknown operator"},
        {"{\"$or\": []}", WW_INVALID_ARGUMENT, "filter: $or: a list of filters"},
        {"{\"$or\": [{\"a\": 1}, 5]}", WW_INVALID_ARGUMENT, "filter: $or.1: an object is needed"},
        {"{\"$or\": [{\"a\": 1}, {\"b\": {\"$in\": 5}}]}", WW_INVALID_ARGUMENT, "filter: $or.1.b.$in: a list of values"},
        {"{\"a\": [1]}", WW_INVALID_ARGUMENT, "filter: a: a list is not a value"},
        {"{\"a\": {\"b\": 1}}", WW_INVALID_ARGUMENT, "named \"a.b\""},
        {"{\"a\": {}}", WW_INVALID_ARGUMENT, "an object of operators"},
        {"{\"a\": {\"$gt\": true}}", WW_INVALID_ARGUMENT, "filter: a.$gt: a number, a text or a date"},
        {"{\"a\": {\"$exists\": 1}}", WW_INVALID_ARGUMENT, "filter: a.$exists: true or false"},
        {"{\"a\": {\"$contains\": null}}", WW_INVALID_ARGUMENT, "filter: a.$contains: a text"},
        {"{\"a\": {\"$gt\": {\"$date\": \"soon\"}}}", WW_INVALID_ARGUMENT, "'soon' is not a date"},
        {"{\"a\": {\"$date\": \"2023-02-29\"}}", WW_INVALID_ARGUMENT, "is not a date"},
        {"{\"a..b\": 1}", WW_INVALID_ARGUMENT, "is empty"},
        {"{\"\": 1}", WW_INVALID_ARGUMENT, "is empty"},
        {"{\"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q\": 1}", WW_OUT_OF_RANGE, "more than 16 parts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ww_filter *f = NULL;
        CHECK_FAILS(cases[i].status, ww_filter_read(cases[i].filter, &f));
        if (!strstr(ww_error_message(), cases[i].message))
            fail_msg("%s: '%s' is not in '%s'", cases[i].filter, cases[i].message, ww_error_message());
        assert_null(f);
    }
}

static void a_filter_that_is_too_deep_or_too_long_is_refused(void **state)
{
    (void)state;
    char deep[1024] = "";
    ww_filter *f = NULL;
    for (int i = 0; i < 40; i++)
        strcat(deep, "{\"$not\": ");
    strcat(deep, "{}");
    for (int i = 0; i < 40; i++)
        strcat(deep, "}");
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_filter_read(deep, &f));
    char *large = malloc(WW_FILTER_JSON_MAX + 16);
    assert_non_null(large);
    memset(large, ' ', WW_FILTER_JSON_MAX + 15);
    memcpy(large, "{}", 2);
    large[WW_FILTER_JSON_MAX + 15] = '\0';
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_filter_read(large, &f));
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_admits_the_rows_that_meet_it),
        cmocka_unit_test(a_wrong_filter_is_refused_with_its_place),
        cmocka_unit_test(a_filter_that_is_too_deep_or_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
