/* Texts: what is UTF-8, what can be printed unescaped, and that messages contain nothing else. */
#include <string.h>

#include "base/message.h"
#include "base/status.h"
#include "base/strings/base64.h"
#include "base/text.h"
#include "support/check.h"

/* Every code point there is, coded by hand, is read back; everything next to a valid form is not. */
static void every_character_is_read_and_nothing_else(void **state)
{
    (void)state;
    for (uint32_t c = 1; c < 0x120000; c++) {
        char text[8] = "";
        size_t length = 0;
        uint32_t found = 0;
        if (c < 0x80) {
            text[length++] = (char)c;
        } else if (c < 0x800) {
            text[length++] = (char)(0xc0 | c >> 6);
        } else if (c < 0x10000) {
            text[length++] = (char)(0xe0 | c >> 12);
            text[length++] = (char)(0x80 | (c >> 6 & 0x3f));
        } else {
            text[length++] = (char)(0xf0 | c >> 18);
            text[length++] = (char)(0x80 | (c >> 12 & 0x3f));
            text[length++] = (char)(0x80 | (c >> 6 & 0x3f));
        }
        if (c >= 0x80)
            text[length++] = (char)(0x80 | (c & 0x3f));
        const bool valid = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        const size_t read = utf8_read(text, length, &found);
        if (read != (valid ? length : 0) || (valid && found != c))
            fail_msg("U+%04X: %zu bytes of %zu, U+%04X", c, read, length, found);
        if (length > 1 && utf8_read(text, length - 1, &found) != 0)
            fail_msg("U+%04X is read though it is cut off", c);
    }
    static const char *const wrong[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80",
                                        "\xff", "\xc3(",    "\xe2\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(utf8_check(wrong[i], strlen(wrong[i])));
    assert_true(utf8_check("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 16));
    assert_true(utf8_check("a\0b", 3));
}

/* NOLINTBEGIN(misc-misleading-bidirectional): they are what is tested */
static void plain_text_stays_and_orders_are_spelt(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"", ""},
        {"plain, \"quoted\" \\ and ~", "plain, \"quoted\" \\ and ~"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\x1b[2J\n\t\x7f", "\\x1b[2J\\x0a\\x09\\x7f"},
        {"\xc2\x9b|\xc2\xa0", "\\xc2\\x9b|\xc2\xa0"},
        {"\x9b|\xff", "\\x9b|\\xff"},
        {"\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f"},
        {"\xe2\x80\x8d|\xe2\x80\xa7|\xe2\x80\xaf", "\xe2\x80\x8d|\xe2\x80\xa7|\xe2\x80\xaf"}, /* the neighbours are plain */
        {"\xe2\x80\xa8\xe2\x80\xae", "\\xe2\\x80\\xa8\\xe2\\x80\\xae"},
        {"\xe2\x81\xa5|\xe2\x81\xa6|\xe2\x81\xa9|\xe2\x81\xb0", "\xe2\x81\xa5|\\xe2\\x81\\xa6|\\xe2\\x81\\xa9|\xe2\x81\xb0"},
        {"\xef\xbb\xbf\xef\xbf\xbf\xf3\xa0\x80\xa0", "\\xef\\xbb\\xbf\\xef\\xbf\\xbf\\xf3\\xa0\\x80\\xa0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char to[128];
        size_t bad;
        text_plain_copy(to, sizeof to, cases[i].from);
        assert_string_equal(to, cases[i].to);
        const size_t span = text_plain_span(cases[i].from, strlen(cases[i].from), &bad);
        assert_int_equal(bad > 0, strcmp(cases[i].from, cases[i].to) != 0);
        assert_true(bad > 0 || span == strlen(cases[i].from));
    }
}

/* For every buffer size, the copy ends with a NUL and contains only whole characters. */
static void copies_are_cut_between_characters(void **state)
{
    (void)state;
    static const char from[] = "a\xc3\xbc\x1b\xe2\x82\xac\xe2\x80\xae!";
    for (size_t room = 0; room < 40; room++) {
        char to[48];
        memset(to, 'x', sizeof to);
        text_plain_copy(to, room, from);
        if (room > 0)
            assert_true(memchr(to, '\0', room) && utf8_check(to, strlen(to)));
        assert_true(to[room] == 'x');
        if (room > 0 && strlen(to) + 12 < room)
            assert_string_equal(to, "a\xc3\xbc\\x1b\xe2\x82\xac\\xe2\\x80\\xae!");
    }
}

/* Programs print messages, and messages quote unchecked input. */
static void messages_are_plain_whatever_they_quote(void **state)
{
    (void)state;
    ww_matrix *matrix = NULL;
    char name[1200];
    CHECK_FAILS(WW_IO_ERROR, ww_matrix_open("/nowhere/\x1b[2J\xe2\x80\xae\x9b.npy", &matrix));
    assert_non_null(strstr(ww_error_message(), "/nowhere/\\x1b[2J\\xe2\\x80\\xae\\x9b.npy: "));
    (void)ww_fail(WW_INTERNAL, "%s", "twice \x1b");
    (void)ww_fail(WW_INTERNAL, "%s", ww_error_message());
    assert_string_equal(ww_error_message(), "twice \\x1b");
    for (size_t length = 1000; length < 1040; length++) { /* cut inside a character */
        memset(name, 'n', length);
        strcpy(name + length, "\xe2\x82\xac\xe2\x82\xac\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b");
        (void)ww_fail(WW_INTERNAL, "%s", name);
        assert_true(utf8_check(ww_error_message(), strlen(ww_error_message())));
        assert_null(strchr(ww_error_message(), '\x1b'));
    }
}
/* NOLINTEND(misc-misleading-bidirectional) */

static void users_of_other_surfaces_see_no_names_of_c(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"ww_store_open: there is no file a.db", "there is no file a.db"},
        {"member cuda:0 of the group: ww_device_open: ww_driver: lost", "member cuda:0 of the group: lost"},
        {"collection 'ww_a: b': no id", "collection 'ww_a: b': no id"},
        {"ww_vector:5", "ww_vector:5"},
        {"ww_: a", "ww_: a"},
        {"ww_query: ", ""},
        {"", ""},
    };
    char text[64], cut[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_without_calls(text, sizeof text, cases[i][0]);
        assert_string_equal(text, cases[i][1]);
    }
    text_without_calls(cut, sizeof cut, "ww_score: twelve and more");
    assert_string_equal(cut, "twelve ");
}

static void a_message_does_not_show_the_empty_name_of_a_collection(void **state)
{
    (void)state;
    (void)ww_fail(WW_INVALID_ARGUMENT, "collection '%s': k is %d", "", 5);
    assert_string_equal(ww_error_message(), "k is 5");
    (void)ww_fail(WW_INVALID_ARGUMENT, "no room in collection '%s', which is full", "");
    assert_string_equal(ww_error_message(), "no room in the collection, which is full");
    (void)ww_fail(WW_INVALID_ARGUMENT, "collection '%s'", "");
    assert_string_equal(ww_error_message(), "the collection");
    CHECK_FAILS(WW_NOT_FOUND, ww_fail(WW_NOT_FOUND, "there is no collection '%s' in the store", ""));
    assert_string_equal(ww_error_message(), "there is no collection '' in the store");
    (void)ww_fail(WW_INVALID_ARGUMENT, "collection '%s': k is %d", "docs", 5);
    assert_string_equal(ww_error_message(), "collection 'docs': k is 5");
}

static void base64_is_decoded_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *text, *last, *bytes; /* NULL: refused */
        int64_t count;
    } CASES[] = {{"", "+/", "", 0},
                 {"Zg", "+/", "f", 1},
                 {"Zm8", "+/", "fo", 2},
                 {"Zm9vYmFy", "-_", "foobar", 6},
                 {"-_-_", "-_", "\373\377\277", 3},
                 {"+/+/", "+/", "\373\377\277", 3},
                 {"AA", "-_", "\0", 1},
                 {"+/+/", "-_", NULL, -1},
                 {"Z", "+/", NULL, -1},
                 {"Zh", "+/", NULL, -1},
                 {"Zm9=", "+/", NULL, -1},
                 {"Zm 9", "+/", NULL, -1}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char to[16];
        memset(to, 'x', sizeof to);
        assert_int_equal(base64_decode(CASES[i].text, strlen(CASES[i].text), CASES[i].last, to), CASES[i].count);
        if (CASES[i].bytes)
            assert_memory_equal(to, CASES[i].bytes, (size_t)CASES[i].count + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_character_is_read_and_nothing_else),
                                       cmocka_unit_test(plain_text_stays_and_orders_are_spelt),
                                       cmocka_unit_test(copies_are_cut_between_characters),
                                       cmocka_unit_test(messages_are_plain_whatever_they_quote),
                                       cmocka_unit_test(users_of_other_surfaces_see_no_names_of_c),
                                       cmocka_unit_test(a_message_does_not_show_the_empty_name_of_a_collection),
                                       cmocka_unit_test(base64_is_decoded_strictly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
