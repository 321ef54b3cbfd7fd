CREATE TABLE t (a, b, c);
INSERT INTO t VALUES ('r', 'a', '1'), ('r', 'a:x', '2'), ('r', 'a:xy', '3'), ('r', 'a:z w', '4'),
  ('r', 'b:^x', '5'), ('r', 'b:x/y', '6'), ('s', 'c:x', '7'), ('s', 'b:', '8');
SELECT a FROM t;
SELECT a:x FROM t;
SELECT a:"z w", c FROM t;
SELECT "a:xy" FROM t;
SELECT a:^x FROM t;
SELECT b:^"^" FROM t;
SELECT a:*, b:"" FROM t;
SELECT a:/^x/ FROM t;
SELECT b:/x\/y/, a:/^$/ FROM t;
SELECT a, a:x FROM t;
SELECT c, a FROM t;
SELECT d FROM t;
SELECT a:/[/ FROM t;
SELECT FROM t;
