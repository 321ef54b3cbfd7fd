CREATE TABLE t (a, b);
INSERT INTO t VALUES ('a','a','1'),('az','a','2'),('b','a','3'),('bz','b','4'),('c','a','5'),('d','a','6');
SELECT * FROM t WHERE ROW = 'b';
SELECT * FROM t WHERE ROW =^ 'b';
SELECT * FROM t WHERE ROW =^ '';
SELECT * FROM t WHERE 'a' < ROW < 'c';
SELECT * FROM t WHERE 'a' <= ROW <= 'c';
SELECT * FROM t WHERE ROW > 'bz';
SELECT * FROM t WHERE 'bz' >= ROW;
# each interval is answered by itself, in the order in which it is written
SELECT * FROM t WHERE ('a' < ROW <= 'b' OR ROW = 'd' OR ROW = 'b');
SELECT * FROM t WHERE (ROW < 'b' OR ROW > 'c') LIMIT 1;
# ... unless they are filtered on the way
SELECT * FROM t WHERE (ROW = 'd' OR 'a' < ROW <= 'b' OR ROW = 'b' OR ROW = 'x') SCAN_AND_FILTER_ROWS;
# AND cuts intervals
SELECT * FROM t WHERE ROW > 'a' AND ROW < 'b';
SELECT * FROM t WHERE (ROW = 'a' OR ROW =^ 'b') AND ROW > 'a' AND ROW REGEXP 'z$';
SELECT * FROM t WHERE ROW = 'a' AND ROW = 'b';
SELECT * FROM t WHERE ROW = 'a' OR ROW = 'c';
SELECT * FROM t WHERE ROW REGEXP "^[a-c]z?$";
SELECT * FROM t WHERE ('z' < ROW < 'a');
SELECT * FROM t WHERE ROW REGEXP '(';
SELECT * FROM t WHERE ROW = b;
SELECT * FROM t WHERE 'a' < ROW > 'b';
SELECT * FROM t WHERE ROW = 'a' AND ROW = 'b' OR ROW = 'c';
