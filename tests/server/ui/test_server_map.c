/* The map of a collection over HTTP: made by a thread, sent as numbers, coloured by a field. */
#include <string.h>
#include <unistd.h>

#include "server/client.h"
#include "server/out.h"

static server *running;
static int port;

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static const char *body_text(json_t *answer, const char *key)
{
    return json_string_value(json_object_get(json_object_get(answer, "result"), key));
}

static json_t *body_value(json_t *answer, const char *key)
{
    return json_object_get(json_object_get(answer, "result"), key);
}

static void fill(void)
{
    out body = {0};
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Cosine\"}}");
    out_text(&body, "{\"points\":[{\"id\":18446744073709551615,\"vector\":[3,4],\"payload\":{\"n\":0,\"tag\":\"last\"}}");
    for (int i = 1; i < 30; i++)
        out_format(&body, ",{\"id\":%d,\"vector\":[1,%d],\"payload\":{\"n\":%d,\"author\":{\"name\":\"ann\"}}}", i, i, i);
    out_text(&body, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", body.bytes);
    out_free(&body);
}

static json_t *row_at(json_t *answer, size_t i)
{
    return json_array_get(body_value(answer, "rows"), i);
}

#define MAP "/warpwave/collections/docs/map"

/* Waits until no map is made any more, and gives the state; the caller decrefs it. */
static json_t *map_finished_at(json_t *answer, const char *path)
{
    for (int i = 0; i < 2000 && json_is_true(body_value(answer, "running")); i++) {
        json_decref(answer);
        usleep(10000);
        answer = ASK(port, 200, "GET", path, NULL);
    }
    assert_true(json_is_false(body_value(answer, "running")));
    return answer;
}

static json_t *map_finished(json_t *answer)
{
    return map_finished_at(answer, MAP);
}

static long long generation_of(json_t *answer)
{
    return (long long)json_integer_value(json_object_get(body_value(answer, "map"), "generation"));
}

static void a_map_has_a_place_and_a_handle_for_each_row(void **state)
{
    (void)state;
    fill();
    ASK_STATUS(port, 404, "GET", MAP "/points", NULL);
    json_t *answer = ASK(port, 200, "GET", MAP, NULL);
    assert_true(json_is_null(body_value(answer, "map")));
    json_decref(answer);
    answer = map_finished(ASK(port, 200, "POST", MAP, "{}"));
    assert_string_equal(body_text(answer, "failure"), "");
    assert_int_equal(json_integer_value(json_object_get(body_value(answer, "map"), "rows")), 30);
    const long long generation = generation_of(answer);
    json_decref(answer);
    http_answer points = http_ask(port, "GET", MAP "/points", NULL);
    uint32_t head[2];
    int64_t run[2] = {0};
    float place[2];
    assert_int_equal(points.status, 200);
    assert_int_equal(points.length, 8 + 30 * 8 + 16); /* all handles are one run */
    memcpy(head, points.body, sizeof head);
    assert_int_equal(head[0], generation);
    assert_int_equal(head[1], 30);
    memcpy(place, points.body + 8 + 29 * 8, sizeof place);
    assert_true(place[0] - place[0] == 0 && place[1] - place[1] == 0);
    memcpy(run, points.body + 8 + 30 * 8, sizeof run);
    assert_int_equal(run[1], 30);
    char body[64];
    snprintf(body, sizeof body, "{\"handles\": [\"%lld\"]}", (long long)run[0]);
    answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows", body);
    assert_string_equal(json_string_value(json_object_get(row_at(answer, 0), "id")), "18446744073709551615");
    json_decref(answer);
    http_free(&points);
}

static void a_map_follows_the_rows_and_is_made_again_when_asked(void **state)
{
    (void)state;
    fill();
    json_decref(map_finished(ASK(port, 200, "POST", MAP, "{}")));
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 77, \"vector\": [1, 7]}]}");
    json_t *answer = map_finished(ASK(port, 200, "POST", MAP, "{}")), *map = body_value(answer, "map");
    assert_string_equal(json_string_value(json_object_get(map, "origin")), "grown");
    assert_int_equal(json_integer_value(json_object_get(map, "rows_placed")), 1);
    json_decref(answer);
    answer = map_finished(ASK(port, 200, "POST", MAP "/remake", "{}"));
    map = body_value(answer, "map");
    assert_string_equal(json_string_value(json_object_get(map, "origin")), "made");
    assert_int_equal(json_integer_value(json_object_get(map, "rows")), 31);
    json_decref(answer);
}

/* The points of the map, and its generation and number of points. The caller frees them. */
static http_answer points_of_map(uint32_t head[2])
{
    http_answer points = http_ask(port, "GET", MAP "/points", NULL);
    assert_int_equal(points.status, 200);
    memcpy(head, points.body, 2 * sizeof *head);
    return points;
}

static void handles_are_sent_in_runs_and_an_equal_map_keeps_its_generation(void **state)
{
    (void)state;
    uint32_t before[2] = {0}, after[2] = {0};
    int64_t runs[2][2] = {{0}};
    fill();
    json_decref(map_finished(ASK(port, 200, "POST", MAP, "{}")));
    http_answer points = points_of_map(before);
    http_free(&points);
    json_decref(map_finished(ASK(port, 200, "POST", MAP, "{}")));
    points = points_of_map(after);
    assert_int_equal(after[0], before[0]);
    http_free(&points);
    ASK_STATUS(port, 200, "POST", "/warpwave/collections/docs/rows/delete", "{\"ids\": [\"7\"]}");
    json_decref(map_finished(ASK(port, 200, "POST", MAP, "{}")));
    points = points_of_map(after);
    assert_int_equal(after[0], before[0] + 1);
    assert_int_equal(after[1], 29);
    assert_int_equal(points.length, 8 + 29 * 8 + sizeof runs);
    memcpy(runs, points.body + 8 + 29 * 8, sizeof runs);
    assert_int_equal(runs[0][1], 7);
    assert_int_equal(runs[1][0], runs[0][0] + 8); /* without the deleted row */
    assert_int_equal(runs[1][1], 22);
    http_free(&points);
}

/* The legend of colours by a key, which the caller decrefs, and the byte of the second point. */
static json_t *colours_by(const char *key, long long generation, int *second)
{
    char body[128];
    uint32_t bytes = 0;
    snprintf(body, sizeof body, "{\"key\": \"%s\", \"generation\": %lld}", key, generation);
    http_answer a = http_ask(port, "POST", MAP "/colours", body);
    assert_int_equal(a.status, 200);
    memcpy(&bytes, a.body, sizeof bytes);
    assert_int_equal(a.length, 4 + bytes + 30);
    json_t *legend = json_loadb(a.body + 4, bytes, 0, NULL);
    *second = (unsigned char)a.body[4 + bytes + 1];
    http_free(&a);
    return legend;
}

static void points_are_coloured_by_a_field(void **state)
{
    (void)state;
    fill();
    json_t *answer = map_finished(ASK(port, 200, "POST", MAP, "{}"));
    const long long generation = generation_of(answer);
    int second = 0;
    json_decref(answer);
    json_t *legend = colours_by("author.name", generation, &second), *values = json_object_get(legend, "values");
    assert_string_equal(json_string_value(json_object_get(legend, "kind")), "values");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(values, 0), "count")), 29);
    assert_int_equal(json_integer_value(json_object_get(legend, "missing")), 1);
    assert_int_equal(second, 0);
    json_decref(legend);
    legend = colours_by("n", generation, &second); /* 30 numbers: too many for a colour each */
    assert_string_equal(json_string_value(json_object_get(legend, "kind")), "scale");
    assert_float_equal(json_real_value(json_object_get(legend, "max")), 29, 0);
    assert_int_equal(second, 250 / 29);
    json_decref(legend);
    legend = colours_by("none", generation, &second);
    assert_int_equal(json_integer_value(json_object_get(legend, "missing")), 30);
    assert_int_equal(second, 255);
    json_decref(legend);
    ASK_STATUS(port, 409, "POST", MAP "/colours", "{\"key\": \"n\", \"generation\": 99}");
    ASK_STATUS(port, 400, "POST", MAP "/colours", "{\"generation\": 1}");
}

/* Adds points to the collection `pair`; every third has no second vector. */
static void fill_named(void)
{
    out body = {0};
    ASK_STATUS(
        port, 200, "PUT", "/collections/pair",
        "{\"vectors\": {\"a b\": {\"size\": 2, \"distance\": \"Cosine\"}, \"c\": {\"size\": 3, \"distance\": \"Euclid\"}}}");
    for (int i = 0; i < 30; i++) {
        out_format(&body, "%s{\"id\":%d,\"vector\":{\"a b\":[1,%d]", i > 0 ? "," : "{\"points\":[", i, i);
        if (i % 3 > 0)
            out_format(&body, ",\"c\":[%d,%d,2]", i, i % 7);
        out_format(&body, "},\"payload\":{\"n\":%d}}", i);
    }
    out_text(&body, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/pair/points", body.bytes);
    out_free(&body);
}

#define PAIR "/warpwave/collections/pair"

static void each_vector_with_a_name_has_a_map(void **state)
{
    (void)state;
    static const struct {
        const char *post, *get, *points, *colours, *rows;
        int count, dim;
    } maps[] = {
        {PAIR "/map?using=a%20b", PAIR "/map?using=a%20b", PAIR "/map/points?using=a%20b", PAIR "/map/colours?using=a%20b",
         PAIR "/rows?using=a%20b", 30, 2},
        {PAIR "/map/remake?using=c", PAIR "/map?using=c", PAIR "/map/points?using=c", PAIR "/map/colours?using=c",
         PAIR "/rows?using=c", 20, 3},
    };
    fill_named();
    ASK_STATUS(port, 400, "POST", PAIR "/map", "{}");
    ASK_STATUS(port, 404, "POST", PAIR "/map?using=d", "{}");
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        ASK_STATUS(port, 404, "GET", maps[i].points, NULL);
        json_t *answer = map_finished_at(ASK(port, 200, "POST", maps[i].post, "{}"), maps[i].get);
        assert_int_equal(json_integer_value(json_object_get(body_value(answer, "map"), "rows")), maps[i].count);
        json_decref(answer);
        http_answer points = http_ask(port, "GET", maps[i].points, NULL);
        uint32_t generation = 0;
        int64_t first = 0;
        char body[96];
        assert_int_equal(points.length, 8 + maps[i].count * 8 + 16);
        memcpy(&generation, points.body, sizeof generation);
        memcpy(&first, points.body + 8 + maps[i].count * 8, sizeof first);
        http_free(&points);
        snprintf(body, sizeof body, "{\"handles\": [\"%lld\"], \"with_vector\": true}", (long long)first + 1);
        answer = ASK(port, 200, "POST", maps[i].rows, body);
        assert_string_equal(json_string_value(json_object_get(row_at(answer, 0), "id")), i == 0 ? "1" : "2");
        assert_int_equal(json_array_size(json_object_get(row_at(answer, 0), "vector")), maps[i].dim);
        json_decref(answer);
        snprintf(body, sizeof body, "{\"key\": \"n\", \"generation\": %u}", generation);
        http_answer colours = http_ask(port, "POST", maps[i].colours, body);
        assert_int_equal(colours.status, 200);
        http_free(&colours);
    }
    json_t *answer = ASK(port, 200, "POST", PAIR "/rows", "{\"ids\": [\"2\"], \"with_vector\": true}");
    json_t *vector = json_object_get(row_at(answer, 0), "vector");
    assert_int_equal(json_array_size(json_object_get(vector, "a b")), 2);
    assert_float_equal(json_number_value(json_array_get(json_object_get(vector, "a b"), 1)), 2, 0); /* unchanged */
    assert_int_equal(json_array_size(json_object_get(vector, "c")), 3);
    json_decref(answer);
}

/* The thread that makes the map must stop and is joined. */
static void a_server_stops_while_a_map_is_made(void **state)
{
    (void)state;
    out body = {0};
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 4, \"distance\": \"Euclid\"}}");
    for (int i = 0; i < 4000; i++)
        out_format(&body, "%s{\"id\":%d,\"vector\":[%d,%d,%d,%d]}", i > 0 ? "," : "{\"points\":[", i, i % 7, i % 31, i % 101,
                   i);
    out_text(&body, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", body.bytes);
    out_free(&body);
    json_t *answer = ASK(port, 200, "POST", MAP, "{}");
    assert_true(json_is_true(body_value(answer, "running")));
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_map_has_a_place_and_a_handle_for_each_row, begin, end),
        cmocka_unit_test_setup_teardown(handles_are_sent_in_runs_and_an_equal_map_keeps_its_generation, begin, end),
        cmocka_unit_test_setup_teardown(a_map_follows_the_rows_and_is_made_again_when_asked, begin, end),
        cmocka_unit_test_setup_teardown(points_are_coloured_by_a_field, begin, end),
        cmocka_unit_test_setup_teardown(each_vector_with_a_name_has_a_map, begin, end),
        cmocka_unit_test_setup_teardown(a_server_stops_while_a_map_is_made, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
