# The session of 2008, header line without '#'.
CREATE TABLE "query-log" ( Query, ItemRank, ClickURL );
LOAD DATA INFILE ROW_KEY_COLUMN=AnonID 'query-log.tsv' INTO TABLE "query-log";
SHOW CREATE TABLE "query-log";
select * from "query-log"; quit;
status;
