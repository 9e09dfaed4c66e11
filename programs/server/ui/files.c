/* The files of the page, and the table of routes of the page. */
#include <string.h>

#include "server/ui/ui.h"

/* Allows scripts, styles, images and requests of this origin only, no frames around the page, no HTML from strings. */
static const char *const HEADERS[][2] = {
    {"content-security-policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
    {"referrer-policy", "no-referrer"},
    {"cross-origin-opener-policy", "same-origin"},
    {"cross-origin-resource-policy", "same-origin"},
    {"cache-control", "no-cache"},
    {"vary", "accept"},
    {NULL, NULL}};

static const char *type_of(const char *name)
{
    static const char *const TYPES[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".svg", "image/svg+xml"}};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(TYPES[i][0], dot) == 0)
            return TYPES[i][1];
    return "application/octet-stream";
}

static bool send_file(request *r, const char *name)
{
    for (const page_file *file = page_files; file->name; file++) {
        if (strcmp(file->name, name) != 0)
            continue;
        r->status = 200;
        r->content_type = type_of(name);
        r->headers = HEADERS;
        out_bytes(&r->answer, file->bytes, (size_t)(file->end - file->bytes));
        return true;
    }
    return request_fail(r, 404, "the page has no file '%s'", name);
}

bool page_root(request *r)
{
    const char *accept = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "accept");
    return accept && strstr(accept, "text/html") ? send_file(r, "index.html") : false;
}

static bool page_file_send(request *r)
{
    return send_file(r, r->names[0]);
}

#define COLLECTION "/warpwave/collections/{collection_name}"

static const route routes[] = {
    {"GET", "/ui/{file}", RIGHT_NONE, WORK_HERE, page_file_send, NULL, "A file of the page for browsers", NULL, "The file.",
     false},
    {"GET", "/warpwave/overview", RIGHT_LIST, WORK_STORE_READ, NULL, run_overview, "The server, its models and its collections",
     NULL, "An object.", false},
    {"POST", "/warpwave/backup", RIGHT_COPY, WORK_STORE_READ, NULL, run_backup, "Download a consistent copy of the store", NULL,
     "The copy, a SQLite file; 429 while another one is made, 507 if the disk has no room for it.", false},
    {"GET", COLLECTION "/fields", RIGHT_READ, WORK_READ, NULL, run_fields, "The keys that payloads have", NULL,
     "Keys with their types and how many rows have them.", false},
    {"POST", COLLECTION "/rows", RIGHT_READ, WORK_READ, prepare_rows, run_rows,
     "Rows in the order of their handles, or by handles or ids, which are texts; of a vector with a name by ?using=NAME",
     "\"offset\":{\"type\":\"integer\"},\"limit\":{\"type\":\"integer\"},\"filter\":{\"type\":\"object\"},\"ids\":{\"type\":"
     "\"array\",\"items\":{\"type\":\"string\"}},\"handles\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
     "\"with_payload\":{\"type\":\"boolean\"},\"with_vector\":{\"type\":\"boolean\"},\"payload_bytes\":{\"type\":\"integer\"}",
     "The rows, and their number in all.", false},
    {"PUT", COLLECTION "/rows", RIGHT_CHANGE, WORK_COLLECTION, prepare_row_payload, run_row_payload,
     "Replace the payload of a row", "\"id\":{\"type\":\"string\"},\"payload\":{\"type\":\"object\"}", "True.", false},
    {"POST", COLLECTION "/rows/delete", RIGHT_CHANGE, WORK_COLLECTION, prepare_rows_delete, run_rows_delete, "Delete rows",
     "\"ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", "How many existed.", false},
    {"POST", COLLECTION "/map", RIGHT_READ, WORK_COLLECTION, NULL, run_map,
     "Make the map, or bring it up to date; here and below ?using=NAME chooses a vector with a name", NULL, "Its progress.",
     false},
    {"GET", COLLECTION "/map", RIGHT_READ, WORK_COLLECTION, NULL, run_map_state, "Progress of the map", NULL, "Its progress.",
     false},
    {"POST", COLLECTION "/map/remake", RIGHT_CHANGE, WORK_COLLECTION, NULL, run_map_remake, "Make the map again", NULL,
     "Its progress.", false},
    {"GET", COLLECTION "/map/points", RIGHT_READ, WORK_COLLECTION, NULL, run_map_points, "The points of the map", NULL,
     "Binary: generation and count, 32 bits each; x and y of each point as f32; the rows' handles as runs of consecutive ones, "
     "first handle and length, 64 bits each.",
     false},
    {"POST", COLLECTION "/map/colours", RIGHT_READ, WORK_COLLECTION, prepare_colours, run_colours,
     "The points' values of a key of payloads", "\"key\":{\"type\":\"string\"},\"generation\":{\"type\":\"integer\"}",
     "Binary: the bytes of a legend, 32 bits; the legend as JSON; a byte for each point.", false},
};

const route_table routes_page = {routes, sizeof routes / sizeof *routes};
