/* Conditions on places, {"lat": 52.5, "lon": 13.4}: within a circle, a box or a polygon. */
#ifndef WW_VECTORS_FILTER_GEO_H
#define WW_VECTORS_FILTER_GEO_H

#include "vectors/filter/filter_reader.h"

/* Appends the operands of "geo_radius", "geo_bounding_box" or "geo_polygon"; node.operation says which. */
ww_status filter_read_geo(filter_reader *r, const char *value, filter_operation operation);

/* Returns true if the value is a place for which the condition holds. */
bool filter_geo_matches(const filter *f, const filter_node *node, const char *value);

#endif
