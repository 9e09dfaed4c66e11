/* Conditions on places. A circle is tested with the haversine formula without its arcsine: a place is nearer than the radius if
 * its haversine is smaller than the radius's. Places on an edge of a box or on the outer ring of a polygon are outside; places
 * on a hole's ring are in the hole. */
#include "vectors/filter/filter_geo.h"

#include <math.h>
#include <string.h>

#include "arithmetic/math/f64.h"

static const double EARTH_RADIUS_METRES = 6371008.8; /* the mean radius, as the IUGG recommends */
static const double RADIANS = 3.14159265358979323846 / 180;

typedef struct place {
    double lat, lon;
} place;

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

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
    return value && json_type_of(value) == JSON_OBJECT && read_number(json_find(value, "lat", 3), &p->lat) &&
           read_number(json_find(value, "lon", 3), &p->lon);
}

static const char *member(const char *object, const char *key)
{
    return json_type_of(object) == JSON_OBJECT ? json_find(object, key, strlen(key)) : NULL;
}

/* A number as an operand of the condition. */
static ww_status add_real(filter_reader *r, double value)
{
    const ww_status status = filter_add_operand(r, "0");
    if (status == WW_OK)
        r->out->operands[r->out->operand_count - 1].number = (json_number){.real = value};
    return status;
}

static ww_status add_place(filter_reader *r, const char *value, const char *what)
{
    place p;
    if (!read_place(value, &p))
        return FILTER_REFUSE(r, "%s: a place is needed, as in {\"lat\": 52.5, \"lon\": 13.4}", what);
    if (p.lat < -90 || p.lat > 90 || p.lon < -180 || p.lon > 180)
        return FILTER_REFUSE(r, "%s: lat is from -90 to 90, lon from -180 to 180", what);
    const ww_status status = add_real(r, p.lat);
    return status == WW_OK ? add_real(r, p.lon) : status;
}

/* {"points": [...]}: the number of places and the places. */
static ww_status add_ring(filter_reader *r, const char *ring, const char *what)
{
    const char *points = ring ? member(ring, "points") : NULL, *first = NULL, *last = NULL;
    int64_t count = 0;
    if (!points || json_type_of(points) != JSON_LIST)
        return FILTER_REFUSE(r, "%s: a list of \"points\" is needed", what);
    for (const char *at = json_first(points); at; at = json_next(at), count++) {
        first = first ? first : at;
        last = at;
    }
    place a, b;
    if (count < 4 || !read_place(first, &a) || !read_place(last, &b) || a.lat != b.lat || a.lon != b.lon)
        return FILTER_REFUSE(r, "%s: at least four places are needed, the last of which is the first", what);
    ww_status status = add_real(r, (double)count);
    for (const char *at = json_first(points); status == WW_OK && at; at = json_next(at))
        status = add_place(r, at, what);
    return status;
}

ww_status filter_read_geo(filter_reader *r, const char *value, filter_operation operation)
{
    double radius = 0;
    if (operation == FILTER_GEO_RADIUS) {
        const char *given = member(value, "radius");
        if (!read_number(given, &radius) || radius < 0)
            return FILTER_REFUSE(r, "\"radius\": metres are needed");
        const ww_status status = add_place(r, member(value, "center"), "center");
        return status == WW_OK ? add_real(r, radius) : status;
    }
    if (operation == FILTER_GEO_BOX) {
        const ww_status status = add_place(r, member(value, "top_left"), "top_left");
        return status == WW_OK ? add_place(r, member(value, "bottom_right"), "bottom_right") : status;
    }
    const char *holes = member(value, "interiors");
    ww_status status = add_ring(r, member(value, "exterior"), "exterior");
    if (status != WW_OK || !holes || json_type_of(holes) == JSON_NULL)
        return status;
    if (json_type_of(holes) != JSON_LIST)
        return FILTER_REFUSE(r, "interiors: a list is needed");
    for (const char *at = json_first(holes); status == WW_OK && at; at = json_next(at))
        status = add_ring(r, at, "interiors");
    return status;
}

/* ---- deciding ------------------------------------------------------------------------------------------------------------ */

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

static double operand(const filter *f, const filter_node *node, int32_t number)
{
    return f->operands[node->operand + number].number.real;
}

static bool in_circle(const filter *f, const filter_node *node, place p)
{
    const double half_angle = operand(f, node, 2) / (2 * EARTH_RADIUS_METRES);
    const double limit = half_angle < 90 * RADIANS ? square(canon_sin_f64(half_angle)) : 2;
    return haversine(p, (place){operand(f, node, 0), operand(f, node, 1)}) < limit;
}

/* If the left edge of a box is east of its right edge, the box crosses the 180th meridian. */
static bool in_box(const filter *f, const filter_node *node, place p)
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
static bool in_ring(const filter *f, const filter_node *node, int32_t first, place p, bool edge)
{
    const int32_t edges = (int32_t)operand(f, node, first) - 1;
    bool inside = false;
    for (int32_t i = 0; i < edges; i++) {
        const int32_t at = first + 1 + 2 * i;
        const place a = {operand(f, node, at), operand(f, node, at + 1)};
        const place b = {operand(f, node, at + 2), operand(f, node, at + 3)};
        if (on_edge(p, a, b))
            return edge;
        if ((a.lon > p.lon) != (b.lon > p.lon) && p.lat < (b.lat - a.lat) * (p.lon - a.lon) / (b.lon - a.lon) + a.lat)
            inside = !inside;
    }
    return inside;
}

static bool in_polygon(const filter *f, const filter_node *node, place p)
{
    int32_t ring = 0;
    bool inside = in_ring(f, node, ring, p, false);
    for (;;) {
        ring += 1 + 2 * (int32_t)operand(f, node, ring);
        if (!inside || ring >= node->operand_count)
            return inside;
        inside = !in_ring(f, node, ring, p, true);
    }
}

bool filter_geo_matches(const filter *f, const filter_node *node, const char *value)
{
    place p;
    if (!read_place(value, &p))
        return false;
    return node->operation == FILTER_GEO_RADIUS ? in_circle(f, node, p)
           : node->operation == FILTER_GEO_BOX  ? in_box(f, node, p)
                                                : in_polygon(f, node, p);
}
