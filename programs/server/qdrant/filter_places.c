/* Reads conditions on places: {"center": {"lat": 52.5, "lon": 13.4}, "radius": 1000} and so on. */
#include "server/qdrant/filter_places.h"

#include <math.h>

#include "base/json/json_value.h"
#include "base/memory.h"

typedef struct numbers {
    ww_filter_value *list; /* has room for all */
    int64_t count;
} numbers;

static const char *member(const char *object, const char *key)
{
    return object && json_type_of(object) == JSON_OBJECT ? filter_given(object, key) : NULL;
}

static bool read_number(const char *value, double *number)
{
    if (!value || json_type_of(value) != JSON_NUMBER)
        return false;
    const json_number n = json_number_of(value);
    *number = n.is_integer ? (double)n.integer : n.real;
    return isfinite(*number);
}

static void put_number(numbers *to, double number)
{
    to->list[to->count++] = (ww_filter_value){.type = WW_FILTER_REAL, .real = number};
}

static ww_status add_place(const filter_reader *r, numbers *to, const char *value, const char *what)
{
    double lat = 0, lon = 0;
    if (!read_number(member(value, "lat"), &lat) || !read_number(member(value, "lon"), &lon))
        return filter_refuse(r, WW_INVALID_ARGUMENT, "%s: a place is needed, as in {\"lat\": 52.5, \"lon\": 13.4}", what);
    if (lat < -90 || lat > 90 || lon < -180 || lon > 180)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "%s: lat is from -90 to 90, lon from -180 to 180", what);
    put_number(to, lat);
    put_number(to, lon);
    return WW_OK;
}

static int64_t corners_of(const char *points)
{
    int64_t count = 0;
    for (const char *at = points && json_type_of(points) == JSON_LIST ? json_first(points) : NULL; at; at = json_next(at))
        count++;
    return count;
}

/* {"points": [...]}: the number of places and the places. */
static ww_status add_ring(const filter_reader *r, numbers *to, const char *ring, const char *what)
{
    const char *points = member(ring, "points");
    const int64_t count = corners_of(points);
    if (count > PLACES_MAX)
        return filter_refuse(r, WW_OUT_OF_RANGE, "%s: %lld places; the maximum is %d", what, (long long)count, PLACES_MAX);
    if (count < 4)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "%s: at least four \"points\" are needed, the last of which is the first",
                             what);
    ww_status status = WW_OK;
    put_number(to, (double)count);
    for (const char *at = json_first(points); status == WW_OK && at; at = json_next(at))
        status = add_place(r, to, at, what);
    return status;
}

static ww_status read_polygon(const filter_reader *r, const char *value, numbers *to)
{
    const char *holes = member(value, "interiors");
    ww_status status = add_ring(r, to, member(value, "exterior"), "exterior");
    if (status != WW_OK || !holes)
        return status;
    if (json_type_of(holes) != JSON_LIST)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "interiors: a list is needed");
    for (const char *at = json_first(holes); status == WW_OK && at; at = json_next(at))
        status = add_ring(r, to, at, "interiors");
    return status;
}

/* How many numbers there can be at most. */
static int64_t room_for(const char *value)
{
    const char *holes = member(value, "interiors");
    int64_t count = 5 + 2 * corners_of(member(member(value, "exterior"), "points"));
    for (const char *at = holes && json_type_of(holes) == JSON_LIST ? json_first(holes) : NULL; at; at = json_next(at))
        count += 1 + 2 * corners_of(member(at, "points"));
    return count;
}

ww_status filter_read_places(filter_reader *r, const char *value, ww_filter_test test, ww_filter_value **list, int64_t *count)
{
    const size_t room = (size_t)room_for(value);
    numbers to = {memory_alloc(room * sizeof *to.list), 0};
    ww_status status = WW_OK;
    double radius = 0;
    *list = to.list;
    if (!to.list)
        return memory_failed("a filter", room * sizeof *to.list);
    if (test == WW_FILTER_POLYGON) {
        status = read_polygon(r, value, &to);
    } else if (test == WW_FILTER_BOX) {
        status = add_place(r, &to, member(value, "top_left"), "top_left");
        if (status == WW_OK)
            status = add_place(r, &to, member(value, "bottom_right"), "bottom_right");
    } else if (!read_number(member(value, "radius"), &radius) || radius < 0) {
        status = filter_refuse(r, WW_INVALID_ARGUMENT, "\"radius\": metres are needed");
    } else {
        status = add_place(r, &to, member(value, "center"), "center");
        put_number(&to, radius);
    }
    *count = to.count;
    return status;
}
