/* Hits in the answers of shards, as text, merged in the order of one collection: by the bits of their scores and by their ids.
 * What a hit says is copied as it is. */
#ifndef WW_SERVER_NODES_HITS_H
#define WW_SERVER_NODES_HITS_H

#include "server/qdrant/search.h"

typedef struct part_hit {
    const char *text;   /* the hit's JSON; NULL: it has only an id */
    char *id;           /* as the store has it */
    double rank;        /* smaller is earlier: a score with its sign, or the value by which the list is ordered */
    double score;       /* 1 if it has none */
    const char *vector; /* its numbers as JSON; NULL: they were not asked for */
} part_hit;

/* Starts zeroed. A list that failed stays as it is. */
typedef struct hit_list {
    part_hit *hits;
    int64_t count, capacity;
    ww_status status;
} hit_list;

void hits_free(hit_list *l);

/* What orders hits: the number with this key, NULL: nothing but the ids; -1: the largest comes first. */
typedef struct hit_order {
    const char *key;
    double sign;
} hit_order;

/* The metric of the vectors that a search is by; `metric` if they are not known here. */
ww_metric hits_metric(const request *r, const search *s, ww_metric metric);

/* The order of a search's hits. */
hit_order hits_order(const request *r, const search *s, ww_metric metric);

/* Appends the points of a JSON list. */
void hits_add(hit_list *l, const char *list, hit_order order);

/* Appends one hit; copies the id. */
void hits_append(hit_list *l, const part_hit *hit);

void hits_sort(hit_list *l);

/* Keeps those from `offset` on, at most `limit`. */
void hits_cut(hit_list *l, int64_t offset, int64_t limit);

/* The hit with this id in a list that is sorted by nothing but ids; NULL: there is none. */
const part_hit *hits_find(const hit_list *l, const char *id);

/* Writes hits number `first` to `end` as a list, with the text that each has. */
void hits_put(out *o, const hit_list *l, int64_t first, int64_t end);

/* Copies an id in JSON as the store has it; NULL if out of memory. */
char *hits_copy_id(const char *value);

/* A shard's answer makes no sense. */
ww_status odd_answer(void);

#endif
