/* Conditions on places, {"lat": 52.5, "lon": 13.4}. A circle is tested with the haversine formula without its arcsine: a place
 * is nearer than the radius if its haversine is smaller than the radius's. Places on an edge of a box or on the outer ring of a
 * polygon are outside; places on a hole's ring are in the hole. */
#include <math.h>
#include <string.h>

#include "arithmetic/math/f64.h"
#include "vectors/filter/filter_match.h"

static const double EARTH_RADIUS_METRES = 6371008.8; /* the mean radius, as the IUGG recommends */
static const double RADIANS = 3.14159265358979323846 / 180;

typedef struct place {
    double lat, lon;
} place;

/* ---- checking ------------------------------------------------------------------------------------------------------------ */

static bool on_earth(const filter_operand *operands)
{
    const double lat = operands[0].number.real, lon = operands[1].number.real;
    return lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180;
}

static const char *ring_wrong(const filter_operand *operands, int64_t count, int64_t *taken)
{
    const double corners = operands[0].number.real;
    const int64_t places = (count - 1) / 2;
    if (!(corners >= 4) || corners > (double)places || corners != floor(corners))
        return "a ring needs at least four places, the last of which is the first";
    *taken = 1 + 2 * (int64_t)corners;
    for (int64_t i = 1; i < *taken; i += 2)
        if (!on_earth(operands + i))
            return "lat is from -90 to 90, lon from -180 to 180";
    if (operands[1].number.real != operands[*taken - 2].number.real ||
        operands[2].number.real != operands[*taken - 1].number.real)
        return "a ring needs at least four places, the last of which is the first";
    return NULL;
}

const char *filter_place_wrong(ww_filter_test test, const filter_operand *operands, int64_t count)
{
    const int64_t fixed = test == WW_FILTER_CIRCLE ? 3 : test == WW_FILTER_BOX ? 4 : count;
    const char *wrong = NULL;
    if (count != fixed || count < 3)
        return test == WW_FILTER_CIRCLE ? "three numbers are needed: lat, lon, metres"
               : test == WW_FILTER_BOX  ? "four numbers are needed: top, left, bottom, right"
                                        : "a ring needs at least four places, the last of which is the first";
    if (test == WW_FILTER_POLYGON) {
        for (int64_t at = 0, taken = 0; !wrong && at < count; at += taken)
            wrong = ring_wrong(operands + at, count - at, &taken);
        return wrong;
    }
    if (!on_earth(operands) || (test == WW_FILTER_BOX && !on_earth(operands + 2)))
        return "lat is from -90 to 90, lon from -180 to 180";
    return test == WW_FILTER_CIRCLE && !(operands[2].number.real >= 0) ? "the radius in metres must not be negative" : NULL;
}

/* ---- testing ------------------------------------------------------------------------------------------------------------- */

static bool read_number(const char *value, double *number)
{
    if (!value || json_type_of(value) != JSON_NUMBER)
        return false;
    const json_number n = json_number_of(value);
    *number = n.is_integer ? (double)n.integer : n.real;
    return isfinite(*number);
}

static bool read_place(const char *value, place *p)
{
    return json_type_of(value) == JSON_OBJECT && read_number(json_find(value, "lat", 3), &p->lat) &&
           read_number(json_find(value, "lon", 3), &p->lon);
}

static double square(double x)
{
    return x * x;
}

/* The square of the sine of half the angle between two places. */
static double haversine(place a, place b)
{
    const double half_lat = (b.lat - a.lat) * RADIANS / 2, half_lon = (b.lon - a.lon) * RADIANS / 2;
    return square(canon_sin_f64(half_lat)) +
           canon_cos_f64(a.lat * RADIANS) * canon_cos_f64(b.lat * RADIANS) * square(canon_sin_f64(half_lon));
}

static double operand(const ww_filter *f, const filter_node *node, int64_t number)
{
    return f->operands[node->operand + number].number.real;
}

static bool in_circle(const ww_filter *f, const filter_node *node, place p)
{
    const double half_angle = operand(f, node, 2) / (2 * EARTH_RADIUS_METRES);
    const double limit = half_angle < 90 * RADIANS ? square(canon_sin_f64(half_angle)) : 2;
    return haversine(p, (place){operand(f, node, 0), operand(f, node, 1)}) < limit;
}

/* If the left edge of a box is east of its right edge, the box crosses the 180th meridian. */
static bool in_box(const ww_filter *f, const filter_node *node, place p)
{
    const double top = operand(f, node, 0), left = operand(f, node, 1);
    const double bottom = operand(f, node, 2), right = operand(f, node, 3);
    const bool between = left > right ? p.lon > left || p.lon < right : p.lon > left && p.lon < right;
    return between && p.lat < top && p.lat > bottom;
}

static bool on_edge(place p, place a, place b)
{
    return p.lon * (a.lat - b.lat) + a.lon * (b.lat - p.lat) + b.lon * (p.lat - a.lat) == 0 &&
           (a.lat - p.lat) * (b.lat - p.lat) <= 0 && (a.lon - p.lon) * (b.lon - p.lon) <= 0;
}

/* Returns true if the place is inside the ring that starts at operand `first`. For a place on the ring itself, returns
 * `edge`. */
static bool in_ring(const ww_filter *f, const filter_node *node, int64_t first, place p, bool edge)
{
    const int64_t edges = (int64_t)operand(f, node, first) - 1;
    bool inside = false;
    for (int64_t i = 0; i < edges; i++) {
        const int64_t at = first + 1 + 2 * i;
        const place a = {operand(f, node, at), operand(f, node, at + 1)};
        const place b = {operand(f, node, at + 2), operand(f, node, at + 3)};
        if (on_edge(p, a, b))
            return edge;
        if ((a.lon > p.lon) != (b.lon > p.lon) && p.lat < (b.lat - a.lat) * (p.lon - a.lon) / (b.lon - a.lon) + a.lat)
            inside = !inside;
    }
    return inside;
}

static bool in_polygon(const ww_filter *f, const filter_node *node, place p)
{
    int64_t ring = 0;
    bool inside = in_ring(f, node, ring, p, false);
    for (;;) {
        ring += 1 + 2 * (int64_t)operand(f, node, ring);
        if (!inside || ring >= node->operand_count)
            return inside;
        inside = !in_ring(f, node, ring, p, true);
    }
}

void filter_test_place(filter_testing *t, const char *value)
{
    const filter_node *node = t->node;
    place p;
    if (!read_place(value, &p))
        return;
    t->found = node->test == WW_FILTER_CIRCLE ? in_circle(t->filter, node, p)
               : node->test == WW_FILTER_BOX  ? in_box(t->filter, node, p)
                                              : in_polygon(t->filter, node, p);
}
