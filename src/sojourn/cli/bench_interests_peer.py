"""The peer of `sojourn bench interests`: how long Mosquitto takes to answer a SUBSCRIBE."""

from __future__ import annotations

import socket
import statistics
import time

import mqtt5
from mqtt5 import ConnAckPacket, ConnectPacket, QoS, SubAckPacket, SubscribePacket, TopicFilter

from sojourn.cli.bench_live import BenchError, mosquitto_broker
from sojourn.cli.benchmarks import Row

PATTERNS_A_PACKET = 1_000
PATIENCE_S = 60.0


class Client:
    """One connection that sends a packet and waits for the answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""
        self._socket.sendall(ConnectPacket("bench", keep_alive=0).write())
        assert isinstance(self._answer(), ConnAckPacket), "a broker answers CONNECT first"

    def subscribe(self, patterns: list[str]) -> float:
        """Subscribe, and return how long the answer took, in milliseconds."""
        wanted = [TopicFilter(pattern, max_qos=QoS.AT_LEAST_ONCE) for pattern in patterns]
        packet = SubscribePacket(1, wanted).write()
        start = time.perf_counter()
        self._socket.sendall(packet)
        answer = self._answer()
        took_ms = (time.perf_counter() - start) * 1e3
        assert isinstance(answer, SubAckPacket), "nothing else is due"
        return took_ms

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _answer(self) -> object:
        while True:
            if self._data:
                try:
                    packet, length = mqtt5.read(memoryview(self._data))
                except IndexError:
                    pass
                else:
                    self._data = self._data[length:]
                    return packet
            more = self._socket.recv(65_536)
            if not more:
                raise BenchError("The broker closed the connection.")
            self._data += more


def mosquitto_row(count: int, samples: int) -> Row:
    """Give Mosquitto so many patterns, then new ones one by one."""
    with mosquitto_broker() as running:
        return _measured(running.port, count, samples)


def _measured(port: int, count: int, samples: int) -> Row:
    client = Client(port)
    patterns = [f"device/{number}/#" for number in range(count + samples)]
    for start in range(0, count, PATTERNS_A_PACKET):
        client.subscribe(patterns[start : min(start + PATTERNS_A_PACKET, count)])
    took_ms = sorted(client.subscribe([pattern]) for pattern in patterns[count:])
    client.close()
    return {
        "row": "device/<id>/#, Mosquitto's SUBACK",
        "subscriptions": count,
        "new_median_ms": round(statistics.median(took_ms), 3),
        "new_p99_ms": round(took_ms[int(0.99 * len(took_ms))], 3),
    }
