#!/usr/bin/env python3
"""Reports as BI tools write them, on the ad-report table: what one costs the server.

    bench/peers/shapes.py --stoa PATH --warehouse DIR [--set short_path=off …] [--only SHAPE]

`DIR` is made by `stoa bench generate` (10 M rows, seed 1). Each shape is asked by clients with a connection each, as a
prepared statement, for accounts in proportion to their rows and the last 1 to 31 days; needs psycopg. Printed per
shape: reports per second, p50, CPU time of the server per report, and the share that took the short path.
"""

import argparse
import multiprocessing
import pathlib
import sys
import time
from datetime import timedelta

import psycopg
import stoa_server
import workload

ACCOUNT = "account_id = %(account)s AND day BETWEEN %(first)s AND %(last)s"
BEFORE = "account_id = %(account)s AND day BETWEEN %(before)s AND %(eve)s"

# Name and statement; of `regions` there are 1,000.
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
}

# Reports of a client before it asks for the first one again.
PICKS = 500


def values(report):
    account, first, last = report
    eve = first - timedelta(days=1)
    return {"account": account, "first": first, "last": last, "before": eve - (last - first), "eve": eve}


def client(number, port, sql, options, start, results):
    """Asks as fast as it is answered; what it took, in milliseconds."""
    picker = workload.Picker(options.rows, options.accounts, options.seed, number)
    asked = [values(picker.pick("recent")) for _ in range(PICKS)]
    with psycopg.connect(host="127.0.0.1", port=port, user="bench", dbname="stoa", autocommit=True) as connection:
        for setting in options.set:
            name, value = setting.split("=")
            connection.execute(f"SET {name} = {value}")
        for one in asked[:100]:
            connection.execute(sql, one, prepare=True).fetchall()
        start.wait()
        took, until = [], time.monotonic() + options.seconds
        while (begun := time.monotonic()) < until:
            connection.execute(sql, asked[len(took) % PICKS], prepare=True).fetchall()
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
    options = parser.parse_args()
    with stoa_server.serve(options, options.warehouse) as server:
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="me", dbname="stoa", autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS regions (region text, name text)")
            if connection.execute("SELECT count(*) FROM regions").fetchone()[0] == 0:
                known = [row[0] for row in connection.execute("SELECT DISTINCT region FROM ad_report WHERE account_id < 1000100")]
                known += [f"region {number}" for number in range(1000 - len(known))]
                rows = ", ".join(f"('{region}', 'Name of {region}')" for region in known)
                connection.execute(f"INSERT INTO regions VALUES {rows}")
        print(f"{'shape':34} {'reports/s':>10} {'p50 ms':>8} {'CPU µs':>8} {'/CPU s':>8} {'short':>6}")
        for name, sql in SHAPES.items():
            if options.only in name:
                per_second, p50, cpu = measured(server, sql, options)
                share = share_of_short_path(server)
                print(f"{name:34} {per_second:10,.0f} {p50:8.2f} {cpu:8.0f} {1e6 / cpu:8,.0f} {share:6.0%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
