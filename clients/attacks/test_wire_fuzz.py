"""Damaged conversations in each protocol: the server answers or hangs up, and goes on.

A message is one of the protocol: a message of PostgreSQL's, a request of HTTP, a frame of HTTP/2. Those
are counted that the server has to look at.
"""

import contextlib
import re
import socket
from collections import Counter

import pytest

import wire
from conftest import number
from conversations import Conversation
from crowd import crowd

FIRST, COUNT = number("SEED", 1), number("MESSAGES", 6000)
# Parts of the messages; requests of HTTP cost the server most.
SHARES = {"pg": 0.4, "http": 0.2, "flight": 0.4}
# Codes of errors that are defects: in an ErrorResponse, in JSON, in the server's log.
CODE = re.compile(rb'\0CXX...\0|"XX[0-9A-Z]{3}"')


class Talker:
    """Leads conversations, each on a connection of its own."""

    def __init__(self, name, port, asks):
        self.name, self.port, self.asks = name, port, asks

    def take(self, seeds):
        done, defects = Counter(), []
        for seed in seeds:
            said = Conversation(seed, self.name)
            try:
                done["done"] += self.converse(said, seed, defects)
            except TimeoutError:
                raise AssertionError(f"{self.name}: neither an answer nor an end of seed {seed}") from None
            done["conversations"] += 1
        return done, defects

    def converse(self, said, seed, defects):
        """Says all of it, and waits until the server has said all it has to say. Returns what it looked at."""
        answer = bytearray()
        with wire.connect(self.port) as sock:
            try:
                sock.sendall(said.data)
                if self.name == "flight":
                    until_ended(sock, said.calls, answer)
                if said.tail is not None:
                    sock.sendall(said.tail)
                    sock.shutdown(socket.SHUT_WR)
            except TimeoutError:
                raise
            except OSError:
                # A server that hangs up in the middle is right; shutdown() does not like it.
                pass
            with contextlib.suppress(ConnectionError):
                while chunk := sock.recv(1 << 18):
                    answer += chunk
        if found := CODE.search(answer):
            about = bytes(answer[max(found.start() - 50, 0) : found.end() + 300])
            defects.append((repr(found[0]), f"{self.name}: seed {seed}: {about!r}"))
        if self.name == "http":
            # Behind a request that it does not understand, the server looks at no other.
            return min(answer.count(b"HTTP/1.1 "), said.count) + (said.tail is not None)
        if self.asks and self.name == "pg":
            # The first message, and the one that is no password.
            return min(said.count, 2)
        return said.count + bool(said.tail)


def until_ended(sock, calls, answer):
    """Reads frames until as many calls have ended, or the connection."""
    ended, at = set(), 0
    while len(ended) < calls:
        chunk = sock.recv(1 << 18)
        if not chunk:
            return
        answer += chunk
        while at + 9 <= len(answer):
            after = at + 9 + int.from_bytes(answer[at : at + 3], "big")
            if after > len(answer):
                break
            kind, flags = answer[at + 3], answer[at + 4]
            # The end of a stream, or its reset.
            if (kind < 2 and flags & 1) or kind == 3:
                ended.add(bytes(answer[at + 5 : at + 9]))
            at = after


@pytest.mark.parametrize("name", ["pg", "http", "flight"])
@pytest.mark.parametrize("asks", [False, True], ids=["open", "with logins"])
def test_damaged_conversations_end(server, say, name, asks):
    victim = server(asks=asks)
    victim.sql("CREATE TABLE target (account bigint, day int, imps bigint)")
    port = victim.ports[name]
    # Who has not logged in is soon told so, and connections take more time than messages.
    count = int(COUNT * SHARES[name] / (20 if asks else 1))
    sums, defects = crowd(victim, say, lambda: Talker(name, port, asks), FIRST, count, chunk=4)
    log = victim.log_file.read_text(errors="replace")
    # Calls of Flight tell their codes in compressed headers only; the log has them, too, and all panics.
    lines = [line for line in log.splitlines() if "a bug in Stoa" in line or '"XX' in line]
    assert not defects and not lines, "\n".join([defects, *lines[:100]])
    assert sums["done"] >= count
    victim.is_well()
