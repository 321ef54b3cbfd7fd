CREATE TABLE sourced (a);
INSERT INTO sourced VALUES ('r', 'a', 'from a file');
