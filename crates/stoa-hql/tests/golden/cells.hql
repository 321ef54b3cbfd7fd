CREATE TABLE t (name, tag, phone);
INSERT INTO t VALUES ('foo', 'name', 'Joe'), ('foo', 'tag', 'none'), ('foo', 'tag:height', 'tall'),
  ('foo', 'tag:hair', 'none'), ('foo', 'tag:weight', 'light'), ('foo', 'phone', '12'),
  ('gnu', 'name', 'Jill'), ('gnu', 'tag:horns', '2');
SELECT * FROM t WHERE CELL = 'foo','tag:height';
SELECT * FROM t WHERE CELL = 'foo','tag';
SELECT * FROM t WHERE CELL =^ 'foo','tag:h';
SELECT * FROM t WHERE CELL =^ 'foo','tag:';
# cells are ordered by row, then by family as it was created, then by qualifier
SELECT * FROM t WHERE 'foo','tag' <= CELL < 'foo','phone';
SELECT * FROM t WHERE 'foo','tag:height' < CELL;
SELECT * FROM t WHERE CELL > 'foo','tag:height' LIMIT 1;
SELECT * FROM t WHERE (CELL = 'gnu','name' OR CELL =^ 'foo','tag:w');
SELECT tag FROM t WHERE CELL >= 'foo','tag:hair' AND ROW = 'foo';
# a marker for the whole row counts, although it stands before the interval
DELETE * FROM t WHERE ROW = 'foo';
SELECT * FROM t WHERE CELL > 'foo','tag:height';
SELECT * FROM t WHERE CELL = 'foo','none';
SELECT * FROM t WHERE 'foo','tag:foo' < CELL >= 'foo','tag:b';
SELECT * FROM t WHERE 'z','tag' < CELL < 'foo','name';
