-- Ten thousand rows to search; nothing here is special to Warpwave.
CREATE TABLE docs (id bigint PRIMARY KEY, embedding float4[], title text);
INSERT INTO docs SELECT i, array[cos(i), sin(i), cos(2 * i), sin(2 * i)]::float4[], 'document ' || i FROM generate_series(1, 10000) AS i;
