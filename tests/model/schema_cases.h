/* Schemas with texts that fit them and texts that do not, for a function of test_grammar.c. */
static const struct {
    const char *schema;
    const char *good[8], *bad[10];
} cases[] = {
    {"{\"type\": \"integer\"}", {"0", "-12", "999999999999999999"}, {"", "01", "1.0", "-", "1e3", "1000000000000000000000"}},
    {"{\"type\": \"number\"}", {"0", "-1.5", "2e-7", "10.25E+3"}, {".5", "1.", "e3", "+1", "NaN"}},
    {"{\"type\": [\"boolean\", \"null\"]}", {"true", "false", "null"}, {"", "tru", "0", "\"null\""}},
    {"{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 3}",
     {"\"a\"", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", "\"\\n\\\"\\\\\"", "\"\\u001f\""},
     {"\"\"", "\"abcd\"", "\"a", "\"\n\"", "\"\\x\"", "\"\\u0000\"", "\"\xC3\"", "\"\x80\""}},
    {"{\"const\": \"a\\\"\\\\\\n\"}", {"\"a\\\"\\\\\\n\""}, {"\"a\"", "a"}},
    {"{\"enum\": [1, \"x\", null, {\"a\": [1]}], \"title\": \"t\"}", {"1", "\"x\"", "null", "{\"a\":[1]}"}, {"2", "x", "{}"}},
    {"{\"type\": \"string\", \"enum\": [1, \"x\"]}", {"\"x\""}, {"1"}},
    {"{\"type\": \"array\", \"items\": {\"type\": \"null\"}, \"minItems\": 1, \"maxItems\": 3}",
     {"[null]", "[ null,\n  null ]", "[null,null,null]"},
     {"[]", "[null,]", "[null,null,null,null]", "[1]", "[,null]"}},
    {"{\"items\": {\"type\": \"integer\"}, \"minItems\": 2}", {"[1,2]", "[1,2,3,4]"}, {"[1]", "[]"}},
    {"{\"items\": true, \"maxItems\": 0}", {"[]", "[ ]"}, {"[1]"}},
    {"{\"type\": \"array\", \"maxItems\": 1}", {"[]", "[{\"a\":[]}]"}, {"[1,2]"}},
    {"{\"type\": \"object\"}", {"{}", "{\"a\": {\"b\": [1, \"c\"]}, \"d\": null}"}, {"{\"a\"}", "{a:1}", "[]", "{\"a\":1,}"}},
    {"{\"properties\": {\"a\": {\"type\": \"null\"}, \"b\": {\"type\": \"integer\"}, \"c\": true}, \"required\": [\"b\"]}",
     {"{\"b\":1}", "{\"a\":null,\"b\":1}", "{ \"b\": 1, \"c\": [] }", "{\"a\":null,\"b\":1,\"c\":\"\"}"},
     {"{}", "{\"a\":null}", "{\"b\":1,\"a\":null}", "{\"b\":1,\"d\":1}", "{\"a\":null\"b\":1}", "{,\"b\":1}", "{\"b\":1.5}"}},
    {"{\"properties\": {\"a\": {\"type\": \"null\"}, \"b\": {\"type\": \"null\"}}}",
     {"{}", "{\"a\":null}", "{\"b\":null}", "{\"a\":null,\"b\":null}"},
     {"{\"a\":null,\"a\":null}", "{\"b\":null,}"}},
    {"{\"properties\": {\"ab\": {\"type\": \"null\"}, \"ac\\u00e9\": {\"type\": \"null\"}},"
     " \"additionalProperties\": {\"type\": \"integer\"}}",
     {"{}", "{\"ab\":null,\"x\":1,\"\":2}", "{\"a\":1}", "{\"abc\":1,\"ac\":2,\"ac\xC3\xA8\":3}", "{\"ac\xC3\xA9\":null,\"b\":7}"},
     {"{\"ab\":1}", "{\"ac\xC3\xA9\":1}", "{\"x\":1,\"ab\":1}", "{\"\\u0061b\":1}", "{\"x\":null}"}},
    {"{\"required\": [\"x\"], \"additionalProperties\": {\"type\": \"integer\"}}",
     {"{\"x\":1}", "{\"x\":1,\"y\":2}"},
     {"{}", "{\"y\":2}", "{\"x\":null}"}},
    {"{\"required\": [\"x\"]}", {"{\"x\":[]}"}, {"{}"}},
    {"{\"anyOf\": [{\"type\": \"integer\"}, {\"const\": \"x\"}]}", {"1", "\"x\""}, {"\"y\"", "null"}},
    {"{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"string\"}]}", {"1", "\"y\""}, {"null"}},
    {"{\"oneOf\": [{\"$ref\": \"#/$defs/a\"}, {\"$ref\": \"#/$defs/b\"}], \"$defs\": {"
     "\"a\": {\"type\": \"object\", \"properties\": {\"k\": {\"const\": 1}}, \"required\": [\"k\"]},"
     "\"b\": {\"type\": \"object\", \"properties\": {\"k\": {\"const\": 2}}, \"required\": [\"k\"]}}}",
     {"{\"k\":1}", "{\"k\":2}"},
     {"{\"k\":3}", "{}"}},
    {"{\"allOf\": [{\"$ref\": \"#/definitions/a~1b~0\"}], \"definitions\": {\"a/b~\": {\"type\": \"null\"}}}", {"null"}, {"1"}},
    {"{\"type\": \"object\", \"properties\": {\"next\": {\"anyOf\": [{\"$ref\": \"#\"}, {\"type\": \"null\"}]}},"
     " \"required\": [\"next\"]}",
     {"{\"next\":null}", "{\"next\":{\"next\":{\"next\":null}}}"},
     {"{}", "null", "{\"next\":{}}"}},
    {"{\"type\": \"string\", \"pattern\": \"^[A-Z]{2}-\\\\d+(?:\\\\.\\\\w)?$\"}",
     {"\"AB-1\"", "\"XY-123.z\""},
     {"\"AB-\"", "\"A-1\"", "\"AB-1.\"", "\"AB-1 \"", "\" AB-1\""}},
    {"{\"pattern\": \"b|c\"}", {"\"b\"", "\"abc\"", "\"xxc\\n\""}, {"\"\"", "\"a\""}},
    {"{\"pattern\": \"^[^a ]\\\\S.\\\"\\\\\\\\[ -~]$\"}", {"\"bcd\\\"\\\\e\""}, {"\"acd\\\"\\\\e\"", "\"bcd\\\"\\\\\\\"\""}},
    {"true", {"1", "{}", "[[]]", "\"a\""}, {"", "[", "nul"}},
};
