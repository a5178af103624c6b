"""A client that answers, leaves and closes while something for it is unread has answered."""

from __future__ import annotations

import asyncio
import socket

import mqtt5
from mqtt5 import DisconnectPacket, PubAckPacket, PublishPacket

from sojourn.live.client.client import Client
from tests.live.building import address, building, url
from tests.live.raw_client import Raw
from tests.live.test_roaming import started, stop


def test_answers_before_a_reset_count_though_a_write_failed_first() -> None:
    """The kernel resets a connection that is closed with bytes unread; a write then fails before any read."""

    async def scenario() -> None:
        config = building()
        servers = await started(config)
        node = servers[0].node
        assert node is not None
        loop = asyncio.get_running_loop()
        port = int(address(config, 0).rpartition(":")[2])
        reader = await loop.run_in_executor(None, Raw, port)
        await loop.run_in_executor(None, lambda: reader.connect("reader", session_expiry_interval=60))
        await loop.run_in_executor(None, lambda: reader.subscribe("news"))
        (connection,) = node.connections.values()
        async with Client(url(config, 0)) as source:
            await source.publish("news", "first")
            await source.publish("news", "second")
            await asyncio.sleep(0.1)
            unread = reader.socket.recv(65536, socket.MSG_PEEK)
            words = b""
            while unread:
                packet, length = mqtt5.read(memoryview(unread))
                unread = unread[length:]
                assert isinstance(packet, PublishPacket)
                assert packet.packet_id is not None
                words += PubAckPacket(packet.packet_id).write()
            # No turn of the loop from here on: the broker has read nothing when its write fails. And one
            # segment: a second would wait at the client for the first's answer, and die with the socket.
            reader.send(words + DisconnectPacket().write())
            reader.drop()
            connection.write(b"\x00")
            await asyncio.sleep(0.1)
            assert len(node.connections) == 1, "the reader's connection is gone, the source's is not"
            again = await loop.run_in_executor(None, Raw, port)
            answer = await loop.run_in_executor(
                None, lambda: again.connect("reader", clean_start=False, session_expiry_interval=60)
            )
            assert answer.session_present
            await loop.run_in_executor(None, again.expect_nothing)
            again.drop()
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 30))
