-- Grafana's query editor.
SELECT current_setting('server_version_num')::int/100 as version;
SELECT quote_ident(table_name) as "table" FROM information_schema.tables WHERE table_schema IN ('public') ORDER BY table_name;
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE quote_ident(table_name) = '$name';
