CREATE TABLE t (a, b, n COUNTER);
INSERT INTO t VALUES ('2010-01-01 00:00:01', 'r1', 'a:q1', 'v1'),
  ('2010-01-01 00:00:02', 'r1', 'a:q1', 'v2'), ('2010-01-01 00:00:03', 'r1', 'a:q1', 'v3'),
  ('2010-01-01 00:00:00', 'r1', 'a:q', 'v4'), ('2010-01-01 00:00:05', 'r1', 'a:q1', 'v5');
SELECT * FROM t DISPLAY_TIMESTAMPS;
DELETE "a:q1" FROM t WHERE ROW = "r1" VERSION "2010-01-01 00:00:02";
SELECT * FROM t DISPLAY_TIMESTAMPS;
DELETE a:q1 FROM t WHERE ROW = "r1" TIMESTAMP "2010-01-01 00:00:01";
SELECT * FROM t DISPLAY_TIMESTAMPS;
DELETE * FROM t WHERE ROW = "r1" TIMESTAMP "2010-01-01 00:00:00.5";
SELECT * FROM t DISPLAY_TIMESTAMPS;
SELECT * FROM t RETURN_DELETES DISPLAY_TIMESTAMPS;
# a marker hides what is not newer, also what is written after it
INSERT INTO t VALUES ('2010-01-01 00:00:00.25', 'r1', 'b', 'too old');
SELECT b FROM t;
# families, and the cell without qualifier
INSERT INTO t VALUES ('r2', 'a', '1'), ('r2', 'a:x', '2'), ('r2', 'b', '3'), ('r2', 'b:y', '4');
DELETE a FROM t WHERE ROW = 'r2';
SELECT * FROM t WHERE ROW = 'r2';
DELETE 'b:' FROM t WHERE ROW = 'r2';
SELECT * FROM t WHERE ROW = 'r2';
INSERT INTO t VALUES ('r2', 'a', 'again');
DELETE b, a FROM t WHERE ROW = 'r2';
SELECT * FROM t WHERE ROW = 'r2';
SELECT * FROM t WHERE ROW = 'r2' RETURN_DELETES;
# cells that are equal but for the value: the last one stays
INSERT INTO t VALUES ('2010-01-01', 'r3', 'a', 'first'), ('2010-01-01', 'r3', 'a', 'second');
INSERT INTO t VALUES ('2010-01-01', 'r3', 'a', 'third');
SELECT * FROM t WHERE ROW = 'r3';
# literals have no escapes; quotes may hold the other quote
INSERT INTO t VALUES ("row\t25", "a", "it's"), ('foo;', 'a', 'say "hi"'), ('e', 'a', ''), (7, 'a', 8);
SELECT a FROM t;
# what is refused changes nothing
INSERT INTO t VALUES ('r4', 'a', 'no'), ('r4', 'c', 'such');
INSERT INTO t VALUES ('', 'a', 'v');
INSERT INTO t VALUES ('yesterday', 'r', 'a', 'v');
INSERT INTO t VALUES ('r', 'a');
INSERT INTO t VALUES (GUID(), GUID(), 'v');
INSERT INTO t VALUES ('r', 'n', 'many');
INSERT INTO tt VALUES ('r', 'a', 'v');
DELETE c FROM t WHERE ROW = 'r1';
DELETE * FROM t WHERE ROW = 'r1' VERSION '2010-01-01';
DELETE * FROM t WHERE ROW =^ 'r1';
SELECT a FROM t WHERE ROW =^ 'r4';
# TIMESTAMP of a family reaches all of its qualifiers, VERSION the one without
INSERT INTO t VALUES ('2010-01-01 00:00:01', 'r5', 'a', 'old'), ('2010-01-01 00:00:01', 'r5', 'a:x', 'old'),
  ('2010-01-01 00:00:03', 'r5', 'a', 'new'), ('2010-01-01 00:00:03', 'r5', 'a:x', 'new');
DELETE a FROM t WHERE ROW = 'r5' VERSION '2010-01-01 00:00:03';
SELECT * FROM t WHERE ROW = 'r5';
DELETE a FROM t WHERE ROW = 'r5' TIMESTAMP '2010-01-01 00:00:01';
SELECT * FROM t WHERE ROW = 'r5';
