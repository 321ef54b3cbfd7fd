"""The two servers: what each answers to a statement."""

from dataclasses import dataclass

from psycopg import pq


@dataclass(frozen=True)
class Answer:
    """Rows as text, the object ids of their types, the columns' names, and how many rows were changed."""

    types: tuple
    rows: tuple
    names: tuple = ()
    changed: int | None = None


@dataclass(frozen=True)
class Refusal:
    """An error."""

    sqlstate: str
    message: str


# Types by object id, as far as either server sends them.
TYPES = {
    16: "boolean", 17: "bytea", 18: "char", 19: "text", 20: "bigint", 21: "smallint", 23: "integer",
    25: "text", 114: "json", 3802: "jsonb", 1003: "text[]", 199: "json[]", 3807: "jsonb[]", 26: "oid", 700: "real", 701: "double", 705: "text", 1000: "boolean[]", 1005: "smallint[]",
    1007: "integer[]", 1009: "text[]", 1015: "text[]", 1016: "bigint[]", 1021: "real[]", 1022: "double[]",
    1042: "text", 1043: "text", 1082: "date", 1083: "time", 1114: "timestamp", 1115: "timestamp[]",
    1182: "date[]", 1184: "timestamptz", 1185: "timestamptz[]", 1186: "interval", 1187: "interval[]",
    1231: "numeric[]", 1700: "numeric", 2249: "record", 2950: "uuid",
}  # fmt: skip


class Side:
    """A connection to a server; with several daemons, the statements of `in_turn` go to each in turn."""

    def __init__(self, conninfo, *others):
        self.conninfo = conninfo
        self.connection = None
        self.setup = []
        self.daemons = []
        self.connect()
        if others:
            self.daemons = [self, *map(Side, others)]

    def in_turn(self, sql, parameters=None):
        """What the next daemon answers to a statement by itself, which shows what was done on any other before."""
        if not self.daemons:
            return self.ask(sql, parameters)
        self.daemons.append(self.daemons.pop(0))
        return self.daemons[0].ask(sql, parameters)

    def connect(self):
        self.connection = pq.PGconn.connect(self.conninfo.encode())
        if self.connection.status != pq.ConnStatus.OK:
            raise SystemExit(f"cannot connect: {self.connection.error_message.decode()}")
        # Notices are not looked at.
        self.connection.notice_handler = lambda notice: None
        for statement in self.setup:
            self.must(statement)

    def prepare_session(self, *statements):
        """Statements that each connection begins with."""
        self.setup += statements
        for statement in statements:
            self.must(statement)
        for daemon in self.daemons:
            if daemon is not self:
                daemon.prepare_session(*statements)

    def ask(self, sql, parameters=None, binary=False):
        """What the server answers: by the simple protocol, or with parameters by the extended one."""
        if parameters is None and not binary:
            result = self.connection.exec_(sql.encode())
        else:
            values = [None if value is None else str(value).encode() for value in parameters or ()]
            result = self.connection.exec_params(sql.encode(), values)
        return self.outcome(result)

    def copy(self, sql, rows):
        """What the server answers to `COPY … FROM STDIN` of these bytes."""
        begun = self.connection.exec_(sql.encode())
        if begun.status != pq.ExecStatus.COPY_IN:
            return self.outcome(begun)
        self.connection.put_copy_data(rows)
        self.connection.put_copy_end()
        outcome = self.outcome(self.connection.get_result())
        while self.connection.get_result() is not None:
            pass
        return outcome

    def outcome(self, result):
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            columns = range(result.nfields)
            types = tuple(TYPES.get(result.ftype(c), str(result.ftype(c))) for c in columns)
            names = tuple(result.fname(c).decode() for c in columns)
            rows = tuple(self.row(result, r) for r in range(result.ntuples))
            return Answer(types, rows, names, result.command_tuples)
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        if state is None:
            # The connection broke: whatever comes next needs a new one.
            text = self.connection.error_message.decode(errors="replace").strip()
            self.connect()
            return Refusal("08006", text)
        return Refusal(state.decode(), (message or b"").decode(errors="replace"))

    @staticmethod
    def row(result, row):
        values = (result.get_value(row, column) for column in range(result.nfields))
        return tuple(None if value is None else value.decode(errors="replace") for value in values)

    def must(self, sql):
        """Runs what has to work."""
        outcome = self.ask(sql)
        if isinstance(outcome, Refusal):
            raise SystemExit(f"{outcome.sqlstate} {outcome.message}\n  {sql[:300]}")
        return outcome
