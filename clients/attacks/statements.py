"""What one seed says over the PostgreSQL protocol, and the answers to many of them sent at once.

The messages of a seed end each with one ReadyForQuery, and leave the session as it was: so a seed does the
same wherever it stands, but for the rows in `scratch`, which all sessions change.
"""

import struct

import extremes
import wire
from grammar import PLACE, Grammar
from values import ANY, KINDS

SYNC = wire.message(b"S")


def simple(text):
    return wire.message(b"Q", text.replace("\0", "").encode("utf-8", "surrogatepass") + b"\0")


class Statement:
    """The messages of a seed, and their text to be shown."""

    def __init__(self, seed):
        self.seed = seed
        self.grammar = Grammar(seed)
        self.rng, self.draw, self.pick = self.grammar.rng, self.grammar.draw, self.grammar.pick
        self.texts = []
        self.messages = []
        at = self.grammar.random()
        for share, form in SHARES:
            if at < share:
                form(self)
                break

    def say(self, *texts):
        for text in texts:
            self.texts.append(text)
            self.messages.append(simple(text))

    def alone(self, text):
        self.say(text)
        self.clean(text)

    def clean(self, text):
        """Takes back what a statement may have left in the session."""
        if text.startswith(("BEGIN", "USE", "PREPARE", "SET")):
            self.say("ROLLBACK", "DEALLOCATE ALL", "RESET ALL")

    def query(self):
        self.say(self.draw("query"))

    def command(self):
        self.alone(self.draw("command"))

    def odd(self):
        """Words in no order, statements that are cut, bytes that are no text."""
        form = self.rng.randrange(4)
        text = self.draw("words") if form < 2 else self.draw("query")
        if form >= 2:
            text = text[: self.rng.randrange(len(text)) + 1]
        self.say(text)
        if form == 3:
            body = bytearray(text.encode())
            body[self.rng.randrange(len(body))] = self.rng.randrange(1, 256)
            self.messages = [wire.message(b"Q", body + b"\0")]

    def heavy(self):
        self.say(self.draw("heavy"))

    def deep(self):
        self.alone(extremes.deep(self.rng))

    def wide(self):
        self.alone(extremes.wide(self.rng))

    def prepared(self):
        """The extended protocol, with parameters of all types in both formats."""
        rng, pick = self.rng, self.pick
        self.grammar.parameters = kinds = []
        kind = pick(["query", "query", "query", "query", "core", "command", "change"])
        text = self.draw(kind)
        self.grammar.parameters = None
        name = pick([b"", b"", b"s"]) + b"\0"
        typed = rng.random() < 0.7
        known = [pick(KINDS.get(kind, ANY)) if rng.random() < 0.95 else pick(ANY) for kind in kinds]
        types = [struct.pack("!I", oid) for oid, _, _ in known] if typed else []
        parse = name + text.replace("\0", "").encode() + b"\0" + struct.pack("!h", len(types)) + b"".join(types)
        out = [wire.message(b"P", parse)]
        if rng.random() < 0.5:
            out.append(wire.message(b"D", b"S" + name))
        for _ in range(pick([1, 1, 2])):
            binary = typed and rng.random() < 0.6
            values = [pick(binaries if binary else texts) for _, texts, binaries in known]
            formats = struct.pack("!hh", 1, binary)
            body = b"".join(b"\xff\xff\xff\xff" if one is None else struct.pack("!i", len(one)) + one for one in values)
            results = struct.pack("!hh", 1, rng.randrange(2)) if rng.random() < 0.9 else struct.pack("!hhh", 2, 0, 1)
            out.append(wire.message(b"B", b"\0" + name + formats + struct.pack("!h", len(values)) + body + results))
            if rng.random() < 0.5:
                out.append(wire.message(b"D", b"P\0"))
            rows = pick([0, 0, 1, 3])
            out.append(wire.message(b"E", b"\0" + struct.pack("!i", rows)))
            if rows:
                out.append(wire.message(b"E", b"\0" + struct.pack("!i", 0)))
        out.append(SYNC)
        self.texts = [f"{text} -- parameters {[(oid, texts) for oid, texts, _ in known]}"]
        self.messages = [b"".join(out)]
        if len(name) > 1:
            self.messages.append(wire.message(b"C", b"S" + name) + SYNC)
        if kind == "change":
            self.messages = [simple("BEGIN"), *self.messages, simple("ROLLBACK")]
        self.clean(text)

    def changes(self):
        """Rows are changed, mostly in a transaction that is rolled back."""
        if self.rng.random() < 0.2:
            self.say(self.draw("change"))
            return
        changes = [self.draw(self.pick(["change", "change", "core"])) for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.3:
            changes.insert(self.rng.randrange(len(changes) + 1), self.pick(["SAVEPOINT a", "ROLLBACK TO a", "RELEASE a"]))
        began = self.pick(["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION READ ONLY"])
        self.say(began, *changes, "SELECT count(*), sum(n) FROM scratch", self.pick(["ROLLBACK", "ROLLBACK", "COMMIT"]))
        self.say("ROLLBACK")

    def own_table(self):
        """A table is made, filled, read and dropped."""
        name = f"own{self.seed}"
        self.say(f"CREATE TABLE {name} {self.draw('table')}")
        insert = self.pick(["VALUES ({i}, {t}), ({small}, NULL)", "SELECT {e}, {e} FROM facts", "{core}"])
        self.say(f"INSERT INTO {name} {self.drawn(insert)}")
        self.say(self.pick([f"FLUSH TABLE {name}", f"ALTER TABLE {name} ADD COLUMN z {self.draw('type')}", f"ALTER TABLE {name} RENAME COLUMN y TO z"]))
        self.say(f"SELECT * FROM {name} {self.draw('tail')}", f"SELECT x, count(*), max(y) FROM {name} GROUP BY 1")
        self.say(f"DROP TABLE IF EXISTS {name}")

    def copied(self):
        """Rows that the client sends."""
        rng = self.rng
        columns, how = self.pick(["", "", " (k, t, d, n)"]), self.pick(["", "", " WITH (FORMAT csv, HEADER off)", " WITH (DELIMITER ';')"])
        mark = "," if "csv" in how else ";" if ";" in how else "\t"
        lines = []
        for _ in range(rng.randint(0, 6)):
            fields = [self.pick(["1", "-7", "\\N"]), self.pick(["a", "", "é"]), self.pick(["2015-01-05", "\\N"]), self.pick(["1.5", "0"])]
            if rng.random() < 0.15:
                fields[rng.randrange(4)] = self.pick(["x;y", '"', "9" * 30, "\\", "\\x41", "\0", "\t", ""])
            lines.append(mark.join(fields))
        data = "\n".join([*lines, self.pick(["", "", "\\.", "1"])]).encode()
        if rng.random() < 0.1:
            data = rng.randbytes(50)
        text = f"COPY scratch{columns} FROM STDIN{how}"
        end = wire.message(b"c") if rng.random() < 0.5 else wire.message(b"f", b"no\0")
        self.texts = [f"{text} -- {data!r}"]
        self.messages = [simple(text) + wire.message(b"d", data) + end]

    def cursor(self):
        self.say("BEGIN", f"DECLARE c {self.pick(['', 'BINARY ', 'NO SCROLL '])}CURSOR FOR {self.draw('query')}")
        self.say(*(self.drawn(self.pick(["FETCH {small} FROM c", "FETCH c", "FETCH ALL FROM c", "MOVE 2 FROM c", "CLOSE c", "{core}"])) for _ in range(3)))
        self.say("ROLLBACK")

    def named(self):
        """PREPARE and EXECUTE; the values are written."""
        self.grammar.parameters = kinds = []
        text = self.draw("query")
        self.grammar.parameters = None
        types = f" ({', '.join(self.draw('type') for _ in kinds)})" if kinds and self.rng.random() < 0.5 else ""
        self.say(f"PREPARE p{types} AS {text}")
        for _ in range(2):
            values = ", ".join(self.draw("lit") for _ in kinds)
            self.say(f"EXECUTE p{f' ({values})' if kinds else ''}")
        self.say("DEALLOCATE ALL")

    def settings(self):
        self.say(f"SET {self.draw('setting')} = {self.draw('value')}", self.draw("query"), f"SHOW {self.draw('setting')}")
        self.say(f"SET TIME ZONE {self.draw('value')}", self.draw("core"))
        self.say("RESET ALL")

    def drawn(self, template):
        """A template of kinds that stands here."""
        return "".join(self.draw(part) if n % 2 else part for n, part in enumerate(PLACE.split(template)))


# Of a thousand statements, how many have which form. Much work is rare: most of a million are to be cheap.
FORMS = {
    "query": 460, "prepared": 150, "command": 150, "odd": 130, "named": 20, "cursor": 20, "settings": 20, "deep": 15,
    "wide": 15, "copied": 10, "changes": 7, "own_table": 2, "heavy": 1,
}  # fmt: skip
SHARES, _at = [], 0
for _name, _share in FORMS.items():
    _at += _share
    SHARES.append((_at / 1000, getattr(Statement, _name)))


class Defect(Exception):
    """The connection ended, or nothing came any more, before `answered` messages were."""

    def __init__(self, answered, what):
        super().__init__(what)
        self.answered = answered


def answers(sock, count):
    """Waits for as many ReadyForQuery; for each, the error before it as (SQLSTATE, message), or None."""
    found, error, data = [], None, bytearray()
    try:
        while len(found) < count:
            chunk = sock.recv(1 << 18)
            if not chunk:
                raise Defect(len(found), "the server closed the connection")
            data += chunk
            at, end = 0, len(data)
            while at + 5 <= end:
                after = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
                if after > end:
                    break
                if data[at] == 90:
                    found.append(error)
                    error = None
                elif data[at] == 69 and error is None:
                    fields = bytes(data[at + 5 : after]).decode("utf-8", "replace").split("\0")
                    fields = {field[0]: field[1:] for field in fields if field}
                    error = fields.get("C", ""), fields.get("M", "")
                at = after
            del data[:at]
    except ConnectionError as failure:
        raise Defect(len(found), f"the connection broke: {failure}") from None
    except TimeoutError:
        raise Defect(len(found), "no end") from None
    return found
