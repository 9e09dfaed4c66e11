/* Gathering what a search needs to know of all shards. */
#include "server/nodes/prepare.h"

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/nodes/hits.h"
#include "server/nodes/step.h"

static bool needs(const search *s)
{
    bool needed = s->words != NULL;
    for (size_t i = 0; i < s->example_count; i++)
        needed = needed || s->examples[i].id[0] != '\0';
    for (size_t i = 0; i < s->child_count; i++)
        needed = needed || needs(&s->children[i]);
    return needed;
}

bool prepare_needed(const request *r)
{
    const search_plan *p = r->plan;
    for (size_t i = 0; i < p->count; i++)
        if (needs(&p->searches[i]))
            return true;
    return false;
}

static int64_t integer_of(const char *value)
{
    return value && json_type_of(value) == JSON_NUMBER ? json_number_of(value).integer : -1;
}

/* What a shard says under a key about search `number`, from `at` on; NULL: nothing. */
static const char *find(const shard_answer *answer, const char *key, size_t number)
{
    const char *result = merge_result(answer), *list = result ? json_given(result, key) : NULL;
    for (const char *at = list && json_type_of(list) == JSON_LIST ? json_first(list) : NULL; at; at = json_next(at))
        if (json_type_of(at) == JSON_LIST && integer_of(json_first(at)) == (int64_t)number)
            return at;
    return NULL;
}

/* ---- examples ------------------------------------------------------------------------------------------------------------ */

/* The example of a search in the answers; NULL: no shard has the point. */
static const char *find_example(const shard_answers *from, size_t number, size_t example)
{
    for (size_t k = 0; k < from->count; k++)
        for (const char *at = find(&from->list[k], "examples", number); at; at = json_next(at)) {
            const char *first = json_type_of(at) == JSON_LIST ? json_first(at) : NULL,
                       *second = first ? json_next(first) : NULL;
            if (second && integer_of(first) == (int64_t)number && integer_of(second) == (int64_t)example)
                return at;
        }
    return NULL;
}

static ww_status put_examples(const shard_answers *from, const search *s, size_t number, out *step)
{
    for (size_t i = 0; i < s->example_count; i++) {
        if (s->examples[i].id[0] == '\0')
            continue;
        const char *found = find_example(from, number, i);
        if (!found)
            return ww_fail(WW_NOT_FOUND, "Not found: No point with id %s found", s->examples[i].id);
        out_bytes(step, found, (size_t)(json_end(found) - found));
        out_text(step, ",");
    }
    return WW_OK;
}

/* ---- words --------------------------------------------------------------------------------------------------------------- */

/* Adds a shard's counts, which begin at `at`, to `counts`; the first shard's say how many words there are. */
static bool add_counts(const char *at, ww_word_counts *counts, bool first)
{
    const char *texts = json_next(json_first(at)), *words = texts ? json_next(texts) : NULL,
               *list = words ? json_next(words) : NULL;
    int64_t count = 0;
    if (!list || json_type_of(list) != JSON_LIST)
        return false;
    counts->texts += integer_of(texts);
    counts->words += integer_of(words);
    for (const char *one = json_first(list); one; one = json_next(one), count++) {
        if (count == (first ? WW_MATCH_WORDS_MAX : counts->count))
            return false;
        counts->found[count] = (first ? 0 : counts->found[count]) + integer_of(one);
    }
    counts->count = first ? count : counts->count;
    return count == counts->count;
}

static ww_status put_words(const shard_answers *from, const search *s, size_t number, out *step)
{
    int64_t found[WW_MATCH_WORDS_MAX];
    ww_word_counts counts = {.found = found};
    bool first = true;
    for (size_t k = 0; s->words && k < from->count; k++) {
        const char *at = find(&from->list[k], "words", number);
        if (at && !add_counts(at, &counts, first))
            return odd_answer();
        first = first && !at;
    }
    if (first)
        return WW_OK; /* the search is for no words, or the vectors are sparse */
    out_format(step, "[%zu,%lld,%lld,[", number, (long long)counts.texts, (long long)counts.words);
    for (int64_t i = 0; i < counts.count; i++)
        out_format(step, i > 0 ? ",%lld" : "%lld", (long long)found[i]);
    out_text(step, "]],");
    return WW_OK;
}

/* ---- both ---------------------------------------------------------------------------------------------------------------- */

typedef ww_status (*writer)(const shard_answers *from, const search *s, size_t number, out *step);

static ww_status put_list(const request *r, const shard_answers *from, out *step, writer put)
{
    const search_plan *p = r->plan;
    ww_status status = WW_OK;
    const size_t begun = step->length;
    for (size_t number = 0; status == WW_OK && number < p->nodes; number++) {
        size_t left = number;
        const search *s = step_search(p->searches, p->count, &left);
        status = s ? put(from, s, number, step) : WW_OK;
    }
    if (step->length > begun)
        step->length--; /* the comma after the last one */
    return status;
}

ww_status prepare_take(const request *r, const shard_answers *from, out *step)
{
    out_text(step, ",\"examples\":[");
    ww_status status = put_list(r, from, step, put_examples);
    out_text(step, "],\"words\":[");
    if (status == WW_OK)
        status = put_list(r, from, step, put_words);
    out_text(step, "]");
    return status == WW_OK && step->failed ? memory_failed("a request to other nodes", step->length) : status;
}
