#!/usr/bin/env python3
"""Reports as BI tools write them, on the ad-report table: what one costs the server.

    bench/peers/shapes.py --stoa PATH --warehouse DIR [--set short_path=off …] [--only SHAPE]

`DIR` is made by `stoa bench generate` (10 M rows, seed 1). Each shape is asked by clients with a connection each, as a
prepared statement, for accounts in proportion to their rows and the last 1 to 31 days; needs psycopg. `--mode unnamed`
sends Parse, Bind, Describe and Execute with each report, as drivers do that prepare nothing; `--mode text` puts the
values into the statement. Shapes with a list of literals are always sent as text. Printed per shape: reports per second,
p50, CPU time of the server per report, and the share that took the short path.
"""

import argparse
import multiprocessing
import pathlib
import sys
import time
from datetime import timedelta
from random import Random

import psycopg
import stoa_server
import workload

ACCOUNT = "account_id = %(account)s AND day BETWEEN %(first)s AND %(last)s"
BEFORE = "account_id = %(account)s AND day BETWEEN %(before)s AND %(eve)s"

# As Tableau and Power BI name things.
TABLEAU = '("ad_report"."account_id" = %(account)s AND ("ad_report"."day" >= %(first)s AND "ad_report"."day" <= %(last)s))'
POWER_BI = '"_"."account_id" = %(account)s and "_"."day" >= %(first)s and "_"."day" < %(after)s'

# Name and statement; of `regions` there are 1,000. `{list}` are 2,000 accounts as literals, %(accounts)s the same as an array.
SHAPES = {
    "sums per day (a report)": f"SELECT account_id, day, sum(clicks), sum(cost) FROM ad_report WHERE {ACCOUNT} GROUP BY account_id, day ORDER BY day",
    "click-through rate per day": "SELECT day, sum(clicks) AS clicks, sum(clicks)::float8 / nullif(sum(impressions), 0) AS ctr "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY day ORDER BY day",
    "HAVING, ORDER BY an expression": "SELECT campaign_id, sum(clicks) AS clicks, sum(cost) AS cost FROM ad_report "
    f"WHERE {ACCOUNT} GROUP BY campaign_id HAVING sum(clicks) > 0 ORDER BY sum(cost) * 1.0 / sum(clicks) DESC LIMIT 10",
    "CASE of sums": "SELECT device, CASE WHEN sum(cost) > 1000000 THEN 'large' ELSE 'small' END AS size "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY device",
    "weeks": f"SELECT date_trunc('week', day) AS week, sum(clicks), sum(cost) FROM ad_report WHERE {ACCOUNT} GROUP BY 1 ORDER BY 1",
    "FILTER": "SELECT day, sum(clicks) FILTER (WHERE device = 'mobile') AS mobile, sum(clicks) AS clicks "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY day ORDER BY day",
    "count(DISTINCT)": f"SELECT day, count(DISTINCT campaign_id) FROM ad_report WHERE {ACCOUNT} GROUP BY day ORDER BY day",
    "sum of a product of rows": f"SELECT device, sum(clicks * cost) FROM ad_report WHERE {ACCOUNT} GROUP BY device",
    "moving sum": "SELECT day, sum(sum(clicks)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY day ORDER BY day",
    "rank within devices": "SELECT device, region, sum(cost) AS cost, rank() OVER (PARTITION BY device ORDER BY sum(cost) DESC) AS place "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY device, region ORDER BY 1, 4",
    "join with 1,000 names": "SELECT r.name, sum(a.clicks) FROM ad_report a JOIN regions r ON r.region = a.region "
    f"WHERE {ACCOUNT} GROUP BY r.name ORDER BY 2 DESC LIMIT 10",
    "two periods, full join": f"WITH now AS (SELECT device, sum(clicks) AS c FROM ad_report WHERE {ACCOUNT} GROUP BY device), "
    f"was AS (SELECT device, sum(clicks) AS c FROM ad_report WHERE {BEFORE} GROUP BY device) "
    "SELECT coalesce(now.device, was.device), now.c, was.c FROM now FULL JOIN was ON now.device = was.device",
    "two periods, UNION ALL": f"SELECT 'now', sum(clicks) FROM ad_report WHERE {ACCOUNT} "
    f"UNION ALL SELECT 'was', sum(clicks) FROM ad_report WHERE {BEFORE}",
    "ROLLUP": f"SELECT device, region, sum(clicks) FROM ad_report WHERE {ACCOUNT} GROUP BY ROLLUP (device, region)",
    "IN list of 2,000 literals (a report)": "SELECT day, sum(clicks), sum(cost) FROM ad_report WHERE account_id IN ({list}) "
    "AND day BETWEEN %(first)s AND %(last)s GROUP BY day ORDER BY day",
    "= ANY of 2,000 (a report)": "SELECT day, sum(clicks), sum(cost) FROM ad_report WHERE account_id = ANY(%(accounts)s) "
    "AND day BETWEEN %(first)s AND %(last)s GROUP BY day ORDER BY day",
    "IN list of 2,000, rate per account": "SELECT account_id, sum(clicks)::float8 / nullif(sum(impressions), 0) AS ctr FROM ad_report "
    "WHERE account_id IN ({list}) AND day BETWEEN %(first)s AND %(last)s GROUP BY account_id ORDER BY 2 DESC NULLS LAST LIMIT 100",
    "IN list of 20 regions": f"SELECT region, sum(clicks) FROM ad_report WHERE {ACCOUNT} AND region IN ('de', 'at', 'ch', 'fr', 'it', 'es', 'pt', 'nl', "
    "'be', 'lu', 'dk', 'se', 'no', 'fi', 'pl', 'cz', 'jp', 'us', 'gb', 'ie') GROUP BY region ORDER BY 2 DESC",
    "Metabase: month, quoted names": 'SELECT CAST(DATE_TRUNC(\'month\', "public"."ad_report"."day") AS date) AS "day", SUM("public"."ad_report"."cost") AS "sum", '
    'COUNT(*) AS "count" FROM "public"."ad_report" WHERE ("public"."ad_report"."account_id" = %(account)s) AND ("public"."ad_report"."day" >= %(first)s) '
    'AND ("public"."ad_report"."day" < %(after)s) GROUP BY CAST(DATE_TRUNC(\'month\', "public"."ad_report"."day") AS date) '
    'ORDER BY CAST(DATE_TRUNC(\'month\', "public"."ad_report"."day") AS date) ASC',
    "Metabase: week in a time zone": "SELECT DATE_TRUNC('week', day::timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo') AS week, SUM(clicks) AS sum "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY 1 ORDER BY 1 ASC",
    "Superset: series limit by a join": "SELECT DATE_TRUNC('day', day) AS __timestamp, ad_report.device AS device, sum(clicks) AS \"SUM(clicks)\" FROM ad_report "
    f"JOIN (SELECT device AS device__, sum(clicks) AS mme_inner__ FROM ad_report WHERE {ACCOUNT} GROUP BY device ORDER BY mme_inner__ DESC LIMIT 3) "
    f"AS series_limit ON device = device__ WHERE {ACCOUNT} GROUP BY DATE_TRUNC('day', day), device ORDER BY \"SUM(clicks)\" DESC LIMIT 10000",
    "Superset: virtual dataset": f"SELECT region AS region, sum(revenue - cost) AS margin FROM (SELECT * FROM ad_report WHERE {ACCOUNT}) AS virtual_table "
    "GROUP BY region ORDER BY margin DESC LIMIT 1000",
    "Tableau: HAVING COUNT(1)": 'SELECT "ad_report"."device" AS "device", SUM("ad_report"."clicks") AS "sum:clicks:ok", SUM("ad_report"."cost") AS "sum:cost:ok" '
    f'FROM "public"."ad_report" "ad_report" WHERE {TABLEAU} GROUP BY 1 HAVING (COUNT(1) > 0)',
    "Tableau: month truncated": 'SELECT DATE_TRUNC( \'MONTH\', CAST("ad_report"."day" AS TIMESTAMP) ) AS "tmn:day:ok", SUM("ad_report"."clicks") AS "sum:clicks:ok" '
    f'FROM "public"."ad_report" "ad_report" WHERE {TABLEAU} GROUP BY 1',
    "Tableau: weekday": 'SELECT CAST(EXTRACT(DOW FROM "ad_report"."day") + 1 AS INTEGER) AS "wd:day:ok", AVG("ad_report"."clicks") AS "avg:clicks:ok" '
    f'FROM "public"."ad_report" "ad_report" WHERE {TABLEAU} GROUP BY 1',
    "Power BI: nested selects": 'select "_"."device", "_"."a0" from (select "rows"."device" as "device", sum("rows"."clicks") as "a0" from '
    '(select "_"."account_id", "_"."day", "_"."device", "_"."clicks" from "public"."ad_report" "_" '
    f'where {POWER_BI}) "rows" group by "device") "_" where not "_"."a0" is null limit 1000001',
    "Power BI: columns renamed": 'select "_"."Tag", sum("_"."Kosten") as "a0", count("_"."Kosten") as "a1" from (select "_"."day" as "Tag", "_"."cost" as "Kosten" '
    f'from "public"."ad_report" "_" where {POWER_BI}) "_" group by "_"."Tag" order by "_"."Tag" limit 1001',
    "OR of ranges of days": "SELECT day, sum(clicks) FROM ad_report WHERE account_id = %(account)s AND (day BETWEEN %(first)s AND %(last)s "
    "OR day BETWEEN %(before)s AND %(eve)s) GROUP BY day ORDER BY day",
    "approximate distinct": f"SELECT device, approx_distinct(campaign_id) FROM ad_report WHERE {ACCOUNT} GROUP BY device ORDER BY device",
    "last day of the month": "SELECT (date_trunc('month', day) + interval '1 month' - interval '1 day')::date AS month_end, sum(cost) "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY 1 ORDER BY 1",
    "share of the total": "SELECT device, sum(cost) AS cost, 100.0 * sum(cost) / nullif(sum(sum(cost)) OVER (), 0) AS share "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY device ORDER BY cost DESC",
    "share by a scalar subquery": f"SELECT device, sum(cost) * 100.0 / nullif((SELECT sum(cost) FROM ad_report WHERE {ACCOUNT}), 0) AS share "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY device ORDER BY share DESC",
    "day before beside it": "SELECT day, sum(clicks) AS clicks, lag(sum(clicks)) OVER (ORDER BY day) AS was FROM ad_report "
    f"WHERE {ACCOUNT} GROUP BY day ORDER BY day",
    "GROUPING SETS": f"SELECT device, region, grouping(device, region) AS level, sum(clicks) FROM ad_report WHERE {ACCOUNT} "
    "GROUP BY GROUPING SETS ((device), (region), ()) ORDER BY level, 4 DESC",
    "LIKE on a group": f"SELECT region, sum(clicks) FROM ad_report WHERE {ACCOUNT} AND region LIKE 'u%%' GROUP BY region ORDER BY 2 DESC",
    "best three of each": "SELECT * FROM (SELECT device, campaign_id, sum(clicks) AS clicks, row_number() OVER (PARTITION BY device ORDER BY sum(clicks) DESC, campaign_id) AS place "
    f"FROM ad_report WHERE {ACCOUNT} GROUP BY device, campaign_id) t WHERE place <= 3 ORDER BY device, place",
    "Grafana: seconds since 1970": "SELECT floor(extract(epoch FROM day) / 86400) * 86400 AS time, device AS metric, sum(impressions) AS value FROM ad_report "
    f"WHERE {ACCOUNT} GROUP BY 1, 2 ORDER BY 1, 2",
}

# Reports of a client before it asks for the first one again; those with lists of accounts.
PICKS, LISTS = 500, 60
# Accounts in a list.
LISTED = 2000


def values(report, options, random):
    account, first, last = report
    eve, after = first - timedelta(days=1), last + timedelta(days=1)
    days = {"first": first, "last": last, "before": eve - (last - first), "eve": eve, "after": after}
    return {"account": account, **days}, lambda: [workload.FIRST_ACCOUNT + random.randrange(options.accounts) for _ in range(LISTED)]


def asked_by(number, sql, options):
    """The statements of a client, with their values."""
    picker = workload.Picker(options.rows, options.accounts, options.seed, number)
    has_list, has_array = "{list}" in sql, "%(accounts)s" in sql
    random = Random(number)
    asked = []
    for _ in range(LISTS if has_list or has_array else PICKS):
        chosen, accounts = values(picker.pick("recent"), options, random)
        if has_array:
            chosen["accounts"] = accounts()
        asked.append((sql.replace("{list}", ", ".join(map(str, accounts()))) if has_list else sql, chosen))
    return asked


def sender(connection, sql, options):
    """A function that asks one statement and takes the answer."""
    if options.mode == "text" or "{list}" in sql:
        cursor = psycopg.ClientCursor(connection)
        return lambda one: cursor.execute(*one).fetchall()
    prepare = options.mode == "prepared"
    cursor = connection.cursor()
    return lambda one: cursor.execute(*one, prepare=prepare).fetchall()


def client(number, port, sql, options, start, results):
    """Asks as fast as it is answered; what it took, in milliseconds."""
    asked = asked_by(number, sql, options)
    with psycopg.connect(host="127.0.0.1", port=port, user="bench", dbname="stoa", autocommit=True) as connection:
        for setting in options.set:
            name, value = setting.split("=")
            connection.execute(f"SET {name} = {value}")
        ask = sender(connection, sql, options)
        for one in asked[:100]:
            ask(one)
        start.wait()
        took, until = [], time.monotonic() + options.seconds
        while (begun := time.monotonic()) < until:
            ask(asked[len(took) % len(asked)])
            took.append(1000 * (time.monotonic() - begun))
    results.put(took)


def measured(server, sql, options):
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(options.clients + 1), context.Queue()
    arguments = (server.pg_port, sql, options, start, results)
    clients = [context.Process(target=client, args=(number, *arguments)) for number in range(options.clients)]
    for one in clients:
        one.start()
    start.wait()
    cpu = server.cpu_seconds()
    took = sorted(ms for _ in clients for ms in results.get())
    cpu = server.cpu_seconds() - cpu
    for one in clients:
        one.join()
    return len(took) / options.seconds, took[len(took) // 2], 1e6 * cpu / len(took)


def share_of_short_path(server):
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="me", dbname="stoa", autocommit=True) as connection:
        asked = "SELECT avg(short_path::int) FROM (SELECT short_path FROM system.queries WHERE \"user\" = 'bench' ORDER BY id DESC LIMIT 100) t"
        return float(connection.execute(asked).fetchone()[0] or 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoa", required=True)
    parser.add_argument("--warehouse", required=True, type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--accounts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--set", action="append", default=["result_reuse=off"])
    parser.add_argument("--only", default="")
    parser.add_argument("--mode", choices=["prepared", "unnamed", "text"], default="prepared")
    options = parser.parse_args()
    with stoa_server.serve(options, options.warehouse) as server:
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="me", dbname="stoa", autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS regions (region text, name text)")
            if connection.execute("SELECT count(*) FROM regions").fetchone()[0] == 0:
                known = [row[0] for row in connection.execute("SELECT DISTINCT region FROM ad_report WHERE account_id < 1000100")]
                known += [f"region {number}" for number in range(1000 - len(known))]
                rows = ", ".join(f"('{region}', 'Name of {region}')" for region in known)
                connection.execute(f"INSERT INTO regions VALUES {rows}")
        print(f"{'shape':37} {'reports/s':>10} {'p50 ms':>8} {'CPU µs':>8} {'/CPU s':>8} {'short':>6}")
        for name, sql in SHAPES.items():
            if options.only in name:
                per_second, p50, cpu = measured(server, sql, options)
                share = share_of_short_path(server)
                print(f"{name:37} {per_second:10,.0f} {p50:8.2f} {cpu:8.0f} {1e6 / cpu:8,.0f} {share:6.0%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
