# Without CELLS, rows that meet the conditions; with CELLS, the cells that do.
CREATE TABLE user (name, address, age, info, index name, index age);
INSERT INTO user VALUES
  ('2014-01-17 03:41:29', '123', 'name', 'Doug'), ('2014-01-17 03:41:29', '123', 'age', '45'),
  ('2014-01-17 03:41:29', '123', 'address', '2999 Canyon Rd.'),
  ('2014-01-17 03:41:30', '234', 'name', 'Joe'), ('2014-01-17 03:41:30', '234', 'age', '57'),
  ('2014-01-17 03:41:30', '234', 'info:pet', 'dog'),
  ('2014-01-17 03:41:31', '345', 'name', 'Doug'), ('2014-01-17 03:41:31', '345', 'age', '12'),
  ('2014-01-17 03:41:31', '345', 'info:pet', 'cat'), ('2014-01-17 03:41:31', '345', 'info:car', 'none');
SELECT * FROM user WHERE address = "2999 Canyon Rd.";
SELECT * FROM user WHERE name =^ "D";
SELECT age FROM user WHERE name = "Doug";
SELECT CELLS * FROM user WHERE name = "Doug";
SELECT CELLS age FROM user WHERE name = "Doug";
SELECT * FROM user WHERE name = "Doug" AND age = "45";
SELECT name FROM user WHERE age = '57' OR info:pet = 'cat';
SELECT CELLS * FROM user WHERE age = '57' OR info:pet = 'cat';
SELECT name FROM user WHERE info:pet =~ /^[cd]/;
SELECT name FROM user WHERE Regexp(info, 'o');
SELECT name FROM user WHERE Exists(info:/^c/);
SELECT name FROM user WHERE EXISTS(info:^p) AND age =^ '1';
SELECT age FROM user WHERE ROW > '123' AND (name = 'Doug' OR name = 'Joe') LIMIT 1;
SELECT age FROM user WHERE name = "Doug" AND TIMESTAMP > "2014-01-17 03:41:30";
SELECT * FROM user WHERE VALUE REGEXP 'o';
SELECT name, info FROM user WHERE name = 'Doug' AND VALUE REGEXP 'c';
SELECT CELLS * FROM user WHERE age = '57' KEYS_ONLY;
# the version that is seen counts
INSERT INTO user VALUES ('234', 'name', 'Jack');
SELECT age FROM user WHERE name = 'Joe';
SELECT age FROM user WHERE name = 'Joe' MAX_VERSIONS 1;
REBUILD INDICES user;
REBUILD VALUE INDICES none;
SELECT * FROM user WHERE name = 'x' AND age = 'y' OR age = 'z';
SELECT * FROM user WHERE (name = 'x' OR age = 'y') AND age = 'z';
SELECT * FROM user WHERE name < 'x';
SELECT * FROM user WHERE nam = 'x';
SELECT * FROM user WHERE name = 'x' OR ROW = 'y';
SELECT * FROM user WHERE name =~ /(/;
