# all versions are kept unless the family says otherwise
CREATE TABLE t (a, b MAX_VERSIONS 2, c TTL 3 SECONDS, d TTL 6);
INSERT INTO t VALUES ('r', 'a', '1'), ('r', 'a', '2'), ('r', 'a', '3');
INSERT INTO t VALUES ('r', 'b', '1'), ('r', 'b', '2'), ('r', 'b', '3');
INSERT INTO t VALUES ('r', 'c', '1'), ('r', 'd', '1');
SELECT * FROM t;
SELECT * FROM t MAX_VERSIONS 1;
SELECT * FROM t REVS=2;
SELECT a FROM t WHERE VALUE REGEXP '2' MAX_VERSIONS 1;
SELECT a FROM t WHERE VALUE REGEXP '2' MAX_VERSIONS 2;
pause 4;
SELECT c, d FROM t;
pause 4;
SELECT c, d FROM t;
COMPACT TABLE t;
SELECT * FROM t;
# a version that is deleted makes room for an older one
CREATE TABLE u (a MAX_VERSIONS 2);
INSERT INTO u VALUES ('2020-01-01', 'r', 'a', '1'), ('2020-01-02', 'r', 'a', '2'), ('2020-01-03', 'r', 'a', '3');
DELETE a FROM u WHERE ROW = 'r' VERSION '2020-01-02';
SELECT * FROM u;
# the family's limit counts all versions, the query's those of its time
SELECT * FROM u WHERE TIMESTAMP < '2020-01-03';
INSERT INTO u VALUES ('2020-01-04', 'r', 'a', '4'), ('2020-01-05', 'r', 'a', '5');
SELECT * FROM u WHERE TIMESTAMP < '2020-01-04';
SELECT * FROM u WHERE TIMESTAMP < '2020-01-05' MAX_VERSIONS 1;
