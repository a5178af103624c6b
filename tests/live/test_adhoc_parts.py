"""The senses and hands of a device, one by one: its log, its segment, and what it hears."""

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace

import mqtt5
import pytest

from sojourn.adhoc.election import messages as m
from sojourn.live.adhoc.air import FRAMES_MAX, Air
from sojourn.live.adhoc.notebook import Notebook, NotebookError
from sojourn.live.adhoc.segment import Segment, SegmentError
from sojourn.live.client.inbox import Inbox, Receipt
from sojourn.live.config import Address
from sojourn.mqtt import conventions

NOTES: list[m.Note] = [m.Began(1), m.Elected(1, (2.0, 3)), m.GaveAway(), m.Saw(7)]


def test_a_notebook_that_was_cut_short_anywhere_holds_what_was_whole(tmp_path: Path) -> None:
    """A process may die in the middle of a line; what stands before it is read, and it is written on."""
    notebook = Notebook.open(tmp_path)
    assert notebook.read() == []
    notebook.write(NOTES)
    notebook.close()
    log = tmp_path / "custody.log"
    whole = log.read_bytes()
    found = set()
    for length in range(len(whole) + 1):
        log.write_bytes(whole[:length])
        notebook = Notebook.open(tmp_path)
        notes = notebook.read()
        assert notes == NOTES[: len(notes)]
        notebook.write([m.Saw(9)])
        notebook.close()
        again = Notebook.open(tmp_path)
        assert again.read() == [*notes, m.Saw(9)]
        again.close()
        found.add(len(notes))
    assert found == {0, 1, 2, 3, 4}


def test_a_damaged_notebook_is_refused_and_so_is_a_second_process(tmp_path: Path) -> None:
    """What is wrong in the middle is not read past."""
    notebook = Notebook.open(tmp_path)
    notebook.read()
    notebook.write(NOTES)
    with pytest.raises(NotebookError, match="Another process"):
        Notebook.open(tmp_path)
    notebook.close()
    log = tmp_path / "custody.log"
    data = bytearray(log.read_bytes())
    data[10] ^= 1
    log.write_bytes(data)
    notebook = Notebook.open(tmp_path)
    with pytest.raises(NotebookError, match="damaged at byte 0"):
        notebook.read()
    notebook.close()


def test_a_notebook_written_anew_says_the_same_and_keeps_its_number(tmp_path: Path) -> None:
    """It is replaced whole."""
    notebook = Notebook.open(tmp_path)
    number = notebook.number
    notebook.read()
    notebook.write(NOTES)
    notebook.replace(NOTES[:2])
    notebook.write([m.Saw(1)])
    notebook.close()
    again = Notebook.open(tmp_path)
    assert again.read() == [*NOTES[:2], m.Saw(1)]
    assert again.number == number
    again.close()


def test_a_segment_is_a_group_or_a_list_that_may_change(tmp_path: Path) -> None:
    """A list is read anew; what is neither is refused with both ways out."""
    path = tmp_path / "list"
    path.write_text("127.0.0.1:7001\n127.0.0.1:7002\n")
    segment = Segment.parse(str(path))
    assert segment.targets() == [("127.0.0.1", 7001), ("127.0.0.1", 7002)]
    assert segment.hears("127.0.0.1", 7001)
    path.write_text("127.0.0.1:7002")
    assert not segment.hears("127.0.0.1", 7001)
    assert Segment.parse("239.255.18.3:7018").targets() == [("239.255.18.3", 7018)]
    with pytest.raises(SegmentError, match="neither a multicast group"):
        Segment.parse("10.0.0.1:7018")


def test_a_group_is_heard_by_all_who_joined_it_and_know_the_secret() -> None:
    """Floods go to everybody, the rest to one; who has another secret hears and says nothing."""

    async def story() -> None:
        heard: list[tuple[int, m.Message]] = []
        came = asyncio.Event()

        def ear(number: int) -> "object":
            def hear(message: m.Message) -> None:
                heard.append((number, message))
                came.set()

            return hear

        segment = Segment.parse("239.255.77.3:27018")
        secrets = (b"one", b"one", b"one", b"another")
        airs = [Air(number, segment, secret, ear(number)) for number, secret in enumerate(secrets)]  # type: ignore[arg-type]  # a stand-in
        for air in airs:
            await air.open(Address("127.0.0.7", 0))  # not what the system would speak from by itself
        flood = m.Flood(0, 0, 1, m.Search())
        airs[0].say(flood)
        async with asyncio.timeout(60):
            while {number for number, _ in heard} != {1, 2}:
                came.clear()
                await came.wait()
        answer = m.Routed(1, 0, 1, 0, 9, m.Stored((("s", 1),)))
        for _ in range(2 * FRAMES_MAX):
            airs[1].say(answer)
        async with asyncio.timeout(60):
            while (0, answer) not in heard:
                came.clear()
                await came.wait()
        assert airs[1].counts["frames dropped"] >= FRAMES_MAX - 1, "so many wait, and no more"
        back = m.Routed(0, 1, 0, 1, 9, m.Stored((("s", 2),)))
        airs[0].say(back)
        async with asyncio.timeout(60):
            while (1, back) not in heard and not airs[0].counts["frames dropped"]:
                came.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(came.wait(), 0.1)
        assert (1, back) in heard, "who spoke by a stream is answered where it listens"
        assert not [number for number, _ in heard if number == 3]
        assert airs[3].counts["dropped"] >= 1
        for air in airs:
            air.close()

    asyncio.run(story())


def test_what_is_said_to_be_anothers_hides_nothing_of_that_other() -> None:
    """Of two that pass on one event the second is known; who says it is car's does not hide car's own."""

    def came(*properties: tuple[str, str]) -> bool:
        packet = mqtt5.PublishPacket("a", b"", user_properties=list(properties))
        before = inbox.repeated
        inbox.put(packet, Receipt(SimpleNamespace(alive=True), mqtt5.QoS.AT_MOST_ONCE, None))  # type: ignore[arg-type]  # a stand-in
        return inbox.repeated == before

    inbox = Inbox(100)
    assert came((conventions.ORIGIN, "car:7"), (conventions.NUMBER, "device-1-1:3"))
    assert not came((conventions.NUMBER, "device-2-1:9"), (conventions.ORIGIN, "car:7"))
    assert came((conventions.NUMBER, "car:7"))
    assert not came((conventions.NUMBER, "car:7"))
