-- The extension in the sqlite3 shell; check-shell compares what this prints with check.expected.
.bail on
.mode list
CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=cosine);
INSERT INTO docs(id, vector, payload) VALUES
  ('north', '[0, 1]', '{"lang": "en", "year": 1999}'),
  ('east', '[1, 0]', '{"lang": "en", "year": 2001}'),
  ('north-east', '[1, 1]', '{"lang": "de", "year": 2005}');
SELECT id, score, distance FROM docs WHERE vector MATCH '[0, 2]' AND k = 2;
SELECT id FROM docs WHERE vector MATCH '[1, 0.1]' AND k = 2 AND filter = 'payload->>''$.lang'' = ''en'' AND payload->>''$.year'' > 2000';
SELECT id, payload->>'$.year' FROM docs WHERE vector MATCH '[1, 1]' AND payload->>'$.year' < 2003 ORDER BY distance LIMIT 1;
SELECT id FROM docs WHERE vector MATCH '[1, 1]' AND k = 1 AND rowid IN (SELECT handle FROM docs_rows WHERE id LIKE 'n%t%h');
WITH queries(name, v) AS (VALUES ('a', '[1, 0]'), ('b', '[0, 1]'))
SELECT name, id FROM queries JOIN docs ON vector MATCH v AND k = 1 ORDER BY name;
SAVEPOINT s;
DELETE FROM docs WHERE id = 'east';
ROLLBACK TO s;
RELEASE s;
SELECT count(*), ww_to_json(vector) FROM docs WHERE id = 'east';
