"""A store that is slow, refuses, loses answers and breaks off."""

import json
import threading

import pytest

from warehouse import StoaError

ROWS = 300_000


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_faults_change_no_answer(warehouse, proxy, seed):
    bad = proxy("--latency", "0ms", "--errors", "0.1", "--lost", "0.03", "--truncated", "0.1", "--seed", seed)
    warehouse.endpoint = bad.url
    warehouse.run("bench", "generate", "--rows", str(ROWS), "--table", "report")
    server = warehouse.server()
    server.sql("CREATE TABLE kept (id bigint)")
    for n in range(10):
        server.sql(f"INSERT INTO kept VALUES ({n})")
        server.sql("FLUSH TABLE kept")
    assert server.sql("SELECT count(*) AS n, sum(id) AS s FROM kept") == [{"n": 10, "s": 45}]
    assert server.sql("SELECT count(*) AS n FROM report") == [{"n": ROWS}]
    by_server = server.sql("SELECT sum(impressions) AS i, sum(clicks) AS c FROM report")
    server.sql("COMPACT TABLE kept FULL")
    assert server.sql("SELECT sum(id) AS s FROM kept") == [{"s": 45}]
    server.stop()
    faults = bad.counts()["faults"]
    assert all(faults[kind] > 0 for kind in ("error", "lost", "truncated")), faults
    warehouse.endpoint = bad.upstream
    report = json.loads(warehouse.run("table", "check", "--json"))
    assert "problems" in json.dumps(report)
    straight = warehouse.sql("SELECT sum(impressions) AS i, sum(clicks) AS c FROM report")
    assert [int(value) for value in straight[0].values()] == [int(value) for value in by_server[0].values()]




def test_large_uploads_survive_lost_answers(warehouse, proxy):
    for seed in range(5):
        bad = proxy("--latency", "0ms", "--errors", "0.1", "--lost", "0.2", "--seed", str(seed))
        warehouse.endpoint = bad.url
        warehouse.sql(f"CREATE TABLE big{seed} AS SELECT value, md5(cast(value AS text)) AS m FROM generate_series(1, 700000) AS s(value)")
        assert bad.counts()["faults"]["lost"] > 0 and bad.counts()["methods"]["POST"] >= 2
        warehouse.endpoint = bad.upstream
        assert warehouse.sql(f"SELECT count(DISTINCT m) AS n FROM big{seed}") == [{"n": 700000}]


def test_a_store_that_comes_back_is_used_again(warehouse, proxy):
    """The server outlives its store."""
    first = proxy("--latency", "0ms")
    port = first.url.rsplit(":", 1)[1]
    warehouse.endpoint = first.url
    server = warehouse.server()
    server.sql("CREATE TABLE t (id bigint)")
    server.sql("INSERT INTO t VALUES (1)")
    first.stop()
    # Small writes need the log only.
    server.sql("INSERT INTO t VALUES (2)")
    again = threading.Timer(2, lambda: proxy("--latency", "0ms", port=port))
    again.start()
    # What needs the store waits for it, or fails and may be tried again.
    for _ in range(10):
        try:
            server.sql("FLUSH TABLE t")
            break
        except StoaError as error:
            assert "57P03" in str(error) or "unavailable" in str(error)
    again.join()
    assert server.sql("SELECT count(*) AS n FROM t") == [{"n": 2}]
    server.stop()
    assert warehouse.sql("SELECT sum(id) AS s FROM t") == [{"s": 3}]


def test_a_report_from_afar_is_few_requests(warehouse, proxy):
    warehouse.run("bench", "generate", "--rows", str(ROWS), "--table", "report")
    far = proxy("--latency", "30ms", "--bandwidth", "90")
    warehouse.endpoint = far.url
    server = warehouse.server("--no-maintenance")
    account = server.sql("SELECT min(account_id) AS a FROM report")[0]["a"]
    before = far.counts()["requests"]
    query = f"SELECT day, sum(impressions) AS i FROM report WHERE account_id = {account} GROUP BY day ORDER BY day"
    assert server.sql(query)
    first = far.counts()["requests"] - before
    assert server.sql(query)
    again = far.counts()["requests"] - before - first
    files = len(json.loads(warehouse.run("table", "list", "--json")))
    assert files == 1
    print(f"requests: {first} for the first report, {again} for the second")
    # What is known of the files is not read twice.
    assert again <= first
