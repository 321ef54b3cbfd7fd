"""Plain Flight, as pyarrow speaks it."""

import json

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from conftest import URI


@pytest.fixture
def client():
    with flight.connect(URI.replace("grpc:", "grpc+tcp:")) as client:
        yield client


def batch(start, count):
    return pa.record_batch({"id": pa.array(range(start, start + count), pa.int64())})


def test_each_batch_of_a_put_is_answered(client, cursor, name):
    cursor.execute(f"CREATE TABLE {name} (id bigint)")
    path = flight.FlightDescriptor.for_path("public", name)
    writer, answers = client.do_put(path, batch(0, 1).schema)
    with writer:
        for n in range(5):
            writer.write_batch(batch(n * 10, 10))
            assert json.loads(answers.read().to_pybytes()) == {"rows": 10}
            cursor.execute(f"SELECT count(*) FROM {name}")
            assert cursor.fetchone() == ((n + 1) * 10,)
        writer.done_writing()

    info = client.get_flight_info(path)
    assert info.schema.names == ["id"]
    table = client.do_get(info.endpoints[0].ticket).read_all()
    assert sorted(table["id"].to_pylist()) == list(range(50))


def test_errors_have_their_kind(client):
    path = flight.FlightDescriptor.for_path("public", "nowhere")
    with pytest.raises(KeyError, match="public.nowhere"):
        client.get_flight_info(path)
    with pytest.raises(pa.ArrowInvalid, match="command"):
        client.get_flight_info(flight.FlightDescriptor.for_command(b"noise"))


def test_logging_in_and_actions(client):
    header = client.authenticate_basic_token("me", "any")
    options = flight.FlightCallOptions(headers=[header])
    names = {action.type for action in client.list_actions(options)}
    assert {"CreatePreparedStatement", "CancelFlightInfo", "SetSessionOptions"} <= names
    wrong = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer 00")])
    with pytest.raises(flight.FlightUnauthenticatedError, match="connect again"):
        client.get_flight_info(flight.FlightDescriptor.for_path("x"), wrong)
