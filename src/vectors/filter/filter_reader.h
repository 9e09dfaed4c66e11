/* Shared by the readers of filters: the tree that grows, and the place for messages. */
#ifndef WW_VECTORS_FILTER_READER_H
#define WW_VECTORS_FILTER_READER_H

#include "vectors/filter/filter.h"

enum { FILTER_PLACE_BYTES = 256 };

typedef struct filter_reader {
    filter *out;
    char *free_text;                /* the next text without escapes goes here */
    char place[FILTER_PLACE_BYTES]; /* "$or.1.year.$gt", for messages */
    int depth;
    int32_t made; /* the node that was made last */
} filter_reader;

/* Append a node, whose number r->made receives; an operand; a part of a field's name. */
ww_status filter_add_node(filter_reader *r, filter_node node);
ww_status filter_add_operand(filter_reader *r, const char *value);
ww_status filter_add_part(filter_reader *r, filter_part part);

/* Returns the text of a value, without escapes and without a NUL. It is valid as long as the filter. */
void filter_read_text(filter_reader *r, const char *value, const char **text, size_t *length);

/* Goes one level down. Returns the length to which filter_leave() cuts the place again. */
size_t filter_enter(filter_reader *r, const char *name, size_t length);
void filter_leave(filter_reader *r, size_t before);

/* Fails with a message that names the place. */
__attribute__((format(printf, 3, 4))) ww_status filter_refuse(const filter_reader *r, ww_status status, const char *format,
                                                              ...);
#define FILTER_REFUSE(r, ...) filter_refuse(r, WW_INVALID_ARGUMENT, __VA_ARGS__)

/* Reads {"must": ...} into the node r->made. */
ww_status filter_read_qdrant(filter_reader *r, const char *value, bool negated);

#endif
