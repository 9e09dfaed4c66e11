/* The tree of special tokens, and reading a text by it. */
#include "model/tokenizer/special.h"

#include "base/array.h"
#include "base/memory.h"
#include "base/status.h"
#include "model/tokenizer/byte_children.h"
#include "model/tokenizer/vocabulary.h"

/* Tokens of a node: order[from..to). */
typedef struct token_range {
    int32_t from, to;
} token_range;

typedef struct tree_builder {
    special_tree *tree;
    const ww_gguf_span *pieces;
    const unsigned char *kinds;
    int32_t *order; /* the special tokens, sorted by their bytes from the last to the first, and by id */
    int32_t order_count;
    token_range *ranges; /* by node */
} tree_builder;

static bool is_special(const tree_builder *b, int32_t id)
{
    const unsigned char kind = b->kinds[id];
    return b->pieces[id].bytes > 0 && (kind == TOKEN_CONTROL || kind == TOKEN_UNKNOWN || kind == TOKEN_USER_DEFINED);
}

static unsigned char byte_from_end(ww_gguf_span piece, size_t at)
{
    return (unsigned char)piece.text[piece.bytes - 1 - at];
}

/* The length of the common suffix of two tokens. */
static size_t shared_end(ww_gguf_span a, ww_gguf_span b)
{
    size_t same = 0;
    while (same < a.bytes && same < b.bytes && byte_from_end(a, same) == byte_from_end(b, same))
        same++;
    return same;
}

static int compare_tokens(const tree_builder *b, int32_t x, int32_t y)
{
    const ww_gguf_span p = b->pieces[x], q = b->pieces[y];
    const size_t same = shared_end(p, q);
    if (same < p.bytes && same < q.bytes)
        return byte_from_end(p, same) < byte_from_end(q, same) ? -1 : 1;
    if (p.bytes != q.bytes)
        return p.bytes < q.bytes ? -1 : 1;
    return (x > y) - (x < y);
}

/* Heap sort: there may be thousands of tokens, in any order. */
static void sift_down(const tree_builder *b, int32_t at, int32_t count)
{
    int32_t *ids = b->order;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare_tokens(b, ids[child], ids[child + 1]) < 0)
            child++;
        if (compare_tokens(b, ids[at], ids[child]) >= 0)
            return;
        const int32_t held = ids[at];
        ids[at] = ids[child];
        ids[child] = held;
        at = child;
    }
}

static void sort_tokens(const tree_builder *b)
{
    for (int32_t i = b->order_count / 2 - 1; i >= 0; i--)
        sift_down(b, i, b->order_count);
    for (int32_t last = b->order_count - 1; last > 0; last--) {
        const int32_t held = b->order[0];
        b->order[0] = b->order[last];
        b->order[last] = held;
        sift_down(b, 0, last);
    }
}

/* The root, and a node for each byte that a token does not share with the previous one. */
static size_t count_nodes(const tree_builder *b)
{
    size_t nodes = 1;
    for (int32_t i = 0; i < b->order_count; i++) {
        const ww_gguf_span piece = b->pieces[b->order[i]];
        nodes += piece.bytes - (i > 0 ? shared_end(b->pieces[b->order[i - 1]], piece) : 0);
    }
    return nodes;
}

static int32_t find_child(const special_tree *tree, int32_t node, unsigned char byte)
{
    if (node == 0)
        return tree->children[byte] > 0 ? tree->children[byte] : -1;
    return child_with_byte(tree->bytes, tree->nodes[node].children, tree->nodes[node + 1].children, byte);
}

/* The node that a byte leads to, through fallbacks; the root if no token matches. */
static int32_t follow(const special_tree *tree, int32_t node, unsigned char byte)
{
    for (;;) {
        const int32_t child = find_child(tree, node, byte);
        if (child >= 0 || node == 0)
            return child >= 0 ? child : 0;
        node = tree->nodes[node].fallback;
    }
}

/* Takes the tokens that end at a node, which come first in its range, or otherwise those of its fallback. Returns their
 * number. */
static int32_t take_ends(const tree_builder *b, int32_t node, size_t depth)
{
    special_node *to = &b->tree->nodes[node];
    const token_range range = b->ranges[node];
    int32_t i = range.from;
    to->any = to->user_defined = -1;
    for (; i < range.to && b->pieces[b->order[i]].bytes == depth; i++) {
        const int32_t id = b->order[i];
        to->any = to->any < 0 ? id : to->any;
        to->user_defined = to->user_defined < 0 && b->kinds[id] == TOKEN_USER_DEFINED ? id : to->user_defined;
    }
    if (node > 0) {
        const special_node *shorter = &b->tree->nodes[to->fallback];
        to->any = to->any < 0 ? shorter->any : to->any;
        to->user_defined = to->user_defined < 0 ? shorter->user_defined : to->user_defined;
    }
    return i - range.from;
}

/* Appends the children of a node. Nodes are made by depth, so that a fallback exists before it is needed. */
static void add_children(const tree_builder *b, int32_t node, size_t depth)
{
    special_tree *tree = b->tree;
    const token_range range = b->ranges[node];
    tree->nodes[node].children = tree->count;
    for (int32_t i = range.from + take_ends(b, node, depth); i < range.to;) {
        const unsigned char byte = byte_from_end(b->pieces[b->order[i]], depth);
        const int32_t child = tree->count++;
        token_range *own = &b->ranges[child];
        *own = (token_range){.from = i, .to = i};
        while (own->to < range.to && byte_from_end(b->pieces[b->order[own->to]], depth) == byte)
            own->to++;
        tree->bytes[child] = byte;
        tree->nodes[child].fallback = node == 0 ? 0 : follow(tree, tree->nodes[node].fallback, byte);
        if (node == 0)
            tree->children[byte] = child;
        i = own->to;
    }
    tree->nodes[node + 1].children = tree->count;
}

static void build(const tree_builder *b)
{
    b->ranges[0] = (token_range){.from = 0, .to = b->order_count};
    b->tree->count = 1;
    size_t depth = 0;
    for (int32_t node = 0, level_end = 1; node < b->tree->count; node++) {
        if (node == level_end) {
            level_end = b->tree->count;
            depth++;
        }
        add_children(b, node, depth);
    }
}

static ww_status make_order(tree_builder *b, int32_t count)
{
    int32_t special = 0;
    for (int32_t id = 0; id < count; id++)
        special += is_special(b, id);
    b->order = memory_alloc((size_t)special * sizeof *b->order);
    if (!b->order)
        return memory_failed("special tokens", (size_t)special * sizeof *b->order);
    for (int32_t id = 0; id < count; id++)
        if (is_special(b, id))
            b->order[b->order_count++] = id;
    sort_tokens(b);
    return WW_OK;
}

ww_status special_make(special_tree *tree, const ww_gguf_span *pieces, const unsigned char *kinds, int32_t count)
{
    tree_builder b = {.tree = tree, .pieces = pieces, .kinds = kinds};
    ww_status status = make_order(&b, count);
    const size_t nodes = status == WW_OK ? count_nodes(&b) : 0;
    *tree = (special_tree){0};
    if (status == WW_OK && nodes >= INT32_MAX)
        status = ww_fail(WW_UNSUPPORTED, "special tokens of %zu bytes; the maximum is %d", nodes, INT32_MAX);
    if (status == WW_OK && b.order_count > 0) {
        tree->nodes = memory_alloc_zeroed(nodes + 1, sizeof *tree->nodes);
        tree->bytes = memory_alloc(nodes);
        b.ranges = memory_alloc(nodes * sizeof *b.ranges);
        if (tree->nodes && tree->bytes && b.ranges)
            build(&b);
        else
            status = memory_failed("special tokens", nodes * (sizeof *tree->nodes + sizeof *b.ranges + 1));
    }
    memory_free(b.ranges);
    memory_free(b.order);
    return status;
}

void special_free(special_tree *tree)
{
    memory_free(tree->nodes);
    memory_free(tree->bytes);
    *tree = (special_tree){0};
}

/* ---- reading a text ------------------------------------------------------------------------------------------------------ */

static ww_status add_place(special_list *list, size_t at, int32_t id)
{
    const ww_status grown =
        array_reserve(&list->places, &list->capacity, list->count + 1, sizeof *list->places, "special tokens of a text");
    if (grown != WW_OK)
        return grown;
    list->places[list->count++] = (special_place){.at = (uint32_t)at, .id = id};
    return WW_OK;
}

void special_list_free(special_list *list)
{
    memory_free(list->places);
    *list = (special_list){0};
}

ww_status special_find_all(const special_tree *tree, const searched_text *text, special_list *found)
{
    ww_status status = WW_OK;
    int32_t node = 0;
    size_t spans = text->plain_count; /* number of spans that begin at or before the byte */
    found->count = 0;
    if (tree->count == 0)
        return WW_OK;
    for (size_t at = text->bytes; status == WW_OK && at-- > 0;) {
        const unsigned char byte = (unsigned char)text->text[at];
        if (node == 0 && tree->children[byte] == 0)
            continue;
        node = follow(tree, node, byte);
        while (spans > 0 && text->plain[spans - 1].from > at)
            spans--;
        const bool plain = spans > 0 && at < text->plain[spans - 1].to;
        const int32_t id = plain ? tree->nodes[node].user_defined : tree->nodes[node].any;
        if (id >= 0)
            status = add_place(found, at, id);
    }
    return status;
}
