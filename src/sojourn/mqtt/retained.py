"""The last retained message of each topic, found by topic filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sojourn.mqtt.message import Message


class _Node:
    __slots__ = ("below", "message")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.message: Message | None = None


class Retained:
    """Messages by topic, within limits on their number and bytes."""

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self._root = _Node()
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self.count = 0
        self.bytes = 0

    def keep(self, message: Message) -> bool:
        """Keep a message in place of its topic's earlier one; say whether there was room."""
        previous = self.get(message.topic)
        count = self.count + (previous is None)
        size = self.bytes + message.size - (previous.size if previous else 0)
        if count > self._messages_max or size > self._bytes_max:
            return False
        self._put(message)
        self.count, self.bytes = count, size
        return True

    def _put(self, message: Message) -> None:
        node = self._root
        for level in message.topic.split("/"):
            below = node.below.get(level)
            if below is None:
                below = node.below[level] = _Node()
            node = below
        node.message = message

    def forget(self, topic: str) -> None:
        """Keep nothing for a topic."""
        levels = topic.split("/")
        path = [self._root]
        for level in levels:
            below = path[-1].below.get(level)
            if below is None:
                return
            path.append(below)
        message = path[-1].message
        if message is None:
            return
        path[-1].message = None
        self.count -= 1
        self.bytes -= message.size
        for depth in range(len(levels), 0, -1):
            node = path[depth]
            if node.below or node.message is not None:
                break
            del path[depth - 1].below[levels[depth - 1]]

    def get(self, topic: str) -> Message | None:
        """Return the message kept for a topic."""
        node: _Node | None = self._root
        for level in topic.split("/"):
            node = node.below.get(level) if node is not None else None
        return node.message if node is not None else None

    def messages(self) -> Iterator[Message]:
        """Yield all messages, in an order in which `restore` finds every level where it was."""
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            if node.message is not None:
                yield node.message
            waiting += reversed(node.below.values())

    def restore(self, messages: Iterable[Message]) -> None:
        """Keep messages that were kept before, whatever the limits are now."""
        for message in messages:
            self._put(message)
            self.count += 1
            self.bytes += message.size

    def matching(self, pattern: str, now: float) -> list[Message]:
        """Return the messages whose topics meet a topic filter and whose time has not run out."""
        levels = pattern.split("/")
        nodes = [self._root]
        for depth, level in enumerate(levels):
            following: list[_Node] = []
            for node in nodes:
                if level == "#":
                    following += self._all_below(node, first=depth == 0)
                elif level == "+":
                    following += [
                        below for name, below in node.below.items() if depth > 0 or not name.startswith("$")
                    ]
                elif level in node.below:
                    following.append(node.below[level])
            nodes = following
        found = [node.message for node in nodes if node.message is not None]
        for message in [message for message in found if message.expires_s <= now]:
            found.remove(message)
            self.forget(message.topic)
        return found

    def _all_below(self, node: _Node, *, first: bool) -> list[_Node]:
        found = [node]
        waiting = [below for name, below in node.below.items() if not (first and name.startswith("$"))]
        while waiting:
            below = waiting.pop()
            found.append(below)
            waiting += below.below.values()
        return found
