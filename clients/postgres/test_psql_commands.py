"""psql's backslash commands: each answers, with the columns that it has on a real PostgreSQL."""

import os
import subprocess

import psycopg
import pytest

TABLE = "CREATE TABLE described (id bigint NOT NULL, name text, price numeric(10, 2), PRIMARY KEY (id))"
VIEW = "CREATE VIEW described_view AS SELECT id, name FROM described"

COMMANDS = """
\\d
\\d described
\\d+ described
\\d described_view
\\d+ described_view
\\d described_pkey
\\da pg_catalog.s*
\\dA
\\dAc
\\dAf
\\dAo
\\dAp
\\db
\\db+
\\dc
\\dC
\\dd
\\dD
\\ddp
\\dE
\\des
\\det
\\deu
\\dew
\\df
\\df+ pg_catalog.ab*
\\dF
\\dFd
\\dFp
\\dFt
\\dg
\\di
\\di+
\\dl
\\dL
\\dm
\\dn
\\dn+
\\do
\\dO
\\dp
\\dP
\\drds
\\dRp
\\dRs
\\ds
\\dt
\\dt+
\\dt public.desc*
\\dT
\\dT+
\\du
\\du+
\\dv
\\dv+
\\dx
\\dx+
\\dX
\\dy
\\l
\\l+
\\sv described_view
\\z
\\encoding
\\conninfo
""".split("\n")

# What a real server has and Stoa has not is of other kinds; these are compared by their columns only.
COMMANDS = [command for command in COMMANDS if command]


def psql(command, port):
    environment = {**os.environ, "PGPORT": str(port), "PGUSER": "stoa", "PGDATABASE": "stoa"}
    ran = subprocess.run(
        ["psql", "-X", "-A", "-P", "footer=off", "-c", command],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def ports(postgres):
    ports = (int(os.environ["PGPORT"]), postgres)
    for port in ports:
        with psycopg.connect(port=port, user="stoa", dbname="stoa", autocommit=True) as connection:
            connection.execute(TABLE)
            connection.execute(VIEW)
    yield ports
    with psycopg.connect(port=ports[0], autocommit=True) as connection:
        connection.execute("DROP VIEW described_view")
        connection.execute("DROP TABLE described")


def columns(printed):
    return next((line for line in printed.splitlines() if "|" in line), "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers_as_on_postgresql(ports, command):
    (told, failed), (expected, complaint) = (psql(command, port) for port in ports)
    assert "ERROR" not in failed, failed
    # "Did not find any …" is an answer, too.
    if told and expected:
        assert columns(told) == columns(expected)


def test_a_key_is_shown_with_its_table(ports):
    for port in ports:
        told, _ = psql("\\d described", port)
        assert '"described_pkey" PRIMARY KEY, btree (id)' in told
        assert "described_pkey|index|stoa|described" in psql("\\di", port)[0]
