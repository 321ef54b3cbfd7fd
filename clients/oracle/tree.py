"""Statements as trees, so that one that is answered differently can be made small.

A node is text and other nodes in a row. What may stand in its place is told by its kind: nodes of one
kind can replace each other, optional ones can go, lists can lose items.
"""


class Node:
    """Part of a statement. `kind` is the type of an expression, or `None` for what cannot be replaced."""

    __slots__ = ("kind", "parts", "optional", "redraw")

    def __init__(self, kind, *parts, optional=False, redraw=None):
        self.kind = kind
        self.parts = parts
        self.optional = optional
        # Makes another literal of the kind; for literals that a repeated statement may vary.
        self.redraw = redraw

    def __str__(self):
        return "".join(map(str, self.parts))

    def rebuilt(self, parts):
        """The same node with other parts."""
        return Node(self.kind, *parts, optional=self.optional, redraw=self.redraw)

    def simpler(self):
        """Nodes of which one may stand in this one's place, the most daring first."""
        if self.optional:
            yield Node(None, "")
        if self.kind is not None:
            yield from below(self, self.kind)
            yield from (Node(self.kind, leaf) for leaf in LEAVES.get(self.kind, ()))


class Items(Node):
    """A list with a separator, of which at least `least` items stay."""

    __slots__ = ("separator", "least")

    def __init__(self, items, separator=", ", least=1):
        super().__init__(None, *items)
        self.separator = separator
        self.least = least

    def __str__(self):
        return self.separator.join(map(str, self.parts))

    def rebuilt(self, parts):
        return Items(parts, self.separator, self.least)

    def simpler(self):
        count = len(self.parts)
        if count > max(2, self.least + 1):
            middle = max(count // 2, self.least)
            yield self.rebuilt(self.parts[:middle])
            yield self.rebuilt(self.parts[-middle:])
        if count > self.least:
            for index in range(count):
                yield self.rebuilt(self.parts[:index] + self.parts[index + 1 :])


# What an expression of a type may become.
LEAVES = {
    "bool": ("true", "NULL::boolean"),
    "int": ("1", "NULL::int"),
    "big": ("1::bigint",),
    "dec": ("1.5",),
    "f8": ("1.5::double precision",),
    "f4": ("1.5::real",),
    "text": ("'a'", "NULL::text"),
    "date": ("DATE '2024-02-29'",),
    "ts": ("TIMESTAMP '2024-02-29 12:34:56'",),
    "tstz": ("TIMESTAMP WITH TIME ZONE '2024-02-29 12:34:56+00'",),
    "interval": ("INTERVAL '1 day'",),
}


def below(node, kind):
    """The nodes of a kind below a node, the nearest first."""
    level = [part for part in node.parts if isinstance(part, Node)]
    while level:
        yield from (part for part in level if part.kind == kind)
        level = [part for node in level for part in node.parts if isinstance(part, Node)]


def paths(node, at=()):
    """Where the nodes are, from the outside to the inside."""
    yield at
    for index, part in enumerate(node.parts):
        if isinstance(part, Node):
            yield from paths(part, at + (index,))


def node_at(root, path):
    for index in path:
        root = root.parts[index]
    return root


def replaced(root, path, new):
    if not path:
        return new
    parts = list(root.parts)
    parts[path[0]] = replaced(parts[path[0]], path[1:], new)
    return root.rebuilt(tuple(parts))


def redrawn(root, rng):
    """The same statement with other literals."""
    if root.redraw is not None:
        return root.redraw(rng)
    parts = tuple(redrawn(part, rng) if isinstance(part, Node) else part for part in root.parts)
    return root.rebuilt(parts)


def reduced(root, still, attempts):
    """The smallest statement found for which `still` holds, after at most so many attempts."""
    shrank = True
    while shrank:
        shrank = False
        position = 0
        while True:
            places = list(paths(root))
            if position >= len(places):
                break
            path = places[position]
            length = len(str(root))
            for simpler in node_at(root, path).simpler():
                candidate = replaced(root, path, simpler)
                if len(str(candidate)) >= length:
                    continue
                if attempts == 0:
                    return root
                attempts -= 1
                if still(candidate):
                    root, shrank = candidate, True
                    break
            else:
                position += 1
    return root
