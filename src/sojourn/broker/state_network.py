"""What of a broker's place in a network is stored: every class of its state, and each of its attributes.

The rules are those of `state_sessions.py`; this is a file of its own because a broker without neighbours does
without the kernels that routing brings along.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any

from sojourn.broker import state_sessions
from sojourn.broker.arrivals import Arrivals
from sojourn.broker.carried import Carried
from sojourn.broker.channel import Channel, _Waiting
from sojourn.broker.clients import Clients
from sojourn.broker.confirming import Answer, Confirming, Passing
from sojourn.broker.doubting import Doubts
from sojourn.broker.forgetting import Forgetting
from sojourn.broker.frame_heads import Position
from sojourn.broker.hello import Hello
from sojourn.broker.links import Links
from sojourn.broker.names import LiveInterests, Names
from sojourn.broker.network import Network
from sojourn.broker.pressure import Pressure
from sojourn.broker.reconciling import Reconciling
from sojourn.broker.roamers import Roamer, Timers, Waiting
from sojourn.broker.sharing import Kept, Pick, Shares
from sojourn.broker.state_fields import (
    NUMBERS,
    REF,
    REF_VALUES,
    SET,
    TUPLE,
    Choice,
    Codec,
    Masks,
    OrderedSets,
    PairKeys,
    PairSets,
    Reader,
    RefKeys,
    RefLists,
    Refs,
    RefsByRef,
    Row,
    RowLists,
    Rows,
    RowValues,
    Struct,
    Witnesses,
    Writer,
    fields,
)
from sojourn.broker.state_kinds import Part, Record, Table, Value
from sojourn.interest import Advertisement
from sojourn.mobility.accounts import Account, Accounts
from sojourn.mobility.broker import Broker, Stay
from sojourn.mobility.copies import State as CopyState
from sojourn.mobility.deliveries import Deliveries
from sojourn.mobility.epochs import EpochClock
from sojourn.mobility.facts import How
from sojourn.mobility.finding import Find, Finder
from sojourn.mobility.giving import Giving
from sojourn.mobility.holdings import Holding
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.late import Late
from sojourn.mobility.memory import Given, Memory, Moment, Past
from sojourn.mobility.neighbour_table import NeighbourTable
from sojourn.mobility.queues import Queues, Store
from sojourn.mobility.stays import State as StayState
from sojourn.mobility.subscribers import Subscribers
from sojourn.mobility.trails import Debt, Heir, Search, Trail
from sojourn.mqtt.message import Message
from sojourn.routing.covering import Covering
from sojourn.routing.flooding import FloodingRouter
from sojourn.routing.messages import Ask, Moved
from sojourn.routing.router import Router

EMPTY = Message("", b"0", 1, 1, 0, 0.0)
"""What a blank object refers to before it is filled."""


# Values: clients that move -------------------------------------------------------------------------------


def _read_event(carried: Carried) -> None:
    carried.__init__(carried.message, carried.cause)  # type: ignore[misc]  # what it takes from its message


def _handoff(name: str, cls: Any) -> Record:
    """A message about a subscriber, all of whose fields are stored."""
    codecs: dict[str, Codec] = {"marks": NUMBERS, "holders": TUPLE, "subscriptions": TUPLE}
    named = [field.name for field in fields_of(cls)]
    plain = " ".join(one for one in named if one not in codecs)
    return Record(name, cls, fields(plain, **{one: codecs[one] for one in named if one in codecs}))


ROAMING = (
    Value(
        "carried",
        Carried,
        lambda: Carried(EMPTY),
        fields("cause", message=REF),
        rebuilt="event matched sequence size source topic version",
        finish=_read_event,
    ),
    Value("pick", Pick, lambda: Pick(EMPTY, ""), fields("address", message=REF, asked=TUPLE)),
    Record("kept", Kept, fields("", message=REF, served=TUPLE)),
    Record("find", Find, fields("destination sender client epoch owner since_s")),
    _handoff("ask", Ask),
    _handoff("moved", Moved),
    Value(
        "holding",
        Holding,
        lambda: Holding(0, 0, ()),
        fields(
            "client epoch began version cause token key bytes behind checks ready is_open complete heard "
            "is_asking asked controller origin lingers served gives is_short last_epoch signed_s",
            late=REF,
            account=REF,
            state=Choice(CopyState),
            subscriptions=TUPLE,
            fed=TUPLE,
            queue=Refs(deque),
            forwarded=Refs(list),
            marks=NUMBERS,
            ceiling=NUMBERS,
            waits=SET,
            askers=REF_VALUES,
            how=Choice(How),
            others=TUPLE,
            holders=SET,
            pending=SET,
            acked=SET,
            successor=REF,
        ),
    ),
    Value("account", Account, Account, fields("party is_shared"), rebuilt="bytes holdings references"),
    Value(
        "late",
        Late,
        lambda: Late(set(), {}, {}),
        fields("", epochs=SET, floor=NUMBERS, first=NUMBERS),
    ),
    Value("past", Past, Past, fields("closed touched_s", given=Rows(Given), late=Refs(list))),
    Value(
        "stay",
        Stay,
        Stay,
        fields("cause token since_s", state=Choice(StayState), advertisements=TUPLE),
    ),
    Value(
        "roamer",
        Roamer,
        lambda: Roamer(0, None, None, 0.0),
        fields(
            "epoch previous last_epoch resumes roams arrived outstanding since", marks=NUMBERS, held=TUPLE
        ),
        rebuilt="numbers session",
    ),
    Value("wave", Passing, lambda: Passing(0, set()), fields("came_from", silent=SET)),
    Record(
        "waiting",
        Waiting,
        fields("connection epoch previous is_clean owned_s", admission=REF, marks=NUMBERS),
    ),
    Value(
        "search",
        Search,
        lambda: Search(0),
        fields("ticket epoch named rumours overtakes deadline_s", silent=SET, asked=SET, confronted=SET),
    ),
    Value(
        "trail",
        Trail,
        Trail,
        fields(
            "settled claimed anew given_up touched_s",
            latest=TUPLE,
            debts=RowValues(lambda row: Debt(*row)),
            excuses=RowValues(frozenset),
        ),
    ),
)


def _heir(pair: list[int], knows: bool) -> Heir:  # noqa: FBT001 - a row of a document
    epoch, broker = pair
    return Heir((epoch, broker), knows)


def _know_reach(arrivals: Arrivals) -> None:
    arrivals.finder.out_of_reach = arrivals.links.out_of_reach()


_FRAMES = Rows(
    lambda number, rank, body: (Position(number, rank), body), deque, lambda one: (*one[0], one[1])
)
"""Frames of a neighbour that wait."""


# Parts: the network --------------------------------------------------------------------------------------


def _save_interests(interests: LiveInterests, writer: Writer) -> dict[str, Any]:
    found = {
        "ads": {number: str(one) for number, one in interests.ads.items() if number != interests.anything},
        "subs": {number: writer.ref(one) for number, one in interests.subs.items()},
        "ads_of": {number: list(some) for number, some in interests.ads_of.items()},
    }
    if interests.is_refiling:
        ads, subs, *left = interests.refiling()
        gone_ads = {number: str(one) for number, one in ads.items()}
        found["refiling"] = [gone_ads, {number: writer.ref(one) for number, one in subs.items()}, *left]
    return found


def _restore_interests(interests: LiveInterests, plain: Mapping[str, Any], reader: Reader) -> None:
    ads = {number: Advertisement.parse(text, limited=False) for number, text in plain["ads"].items()}
    subs = {number: reader.thing(place) for number, place in plain["subs"].items()}
    interests.restore(ads, subs, plain["ads_of"])
    if "refiling" in plain:
        gone_ads, gone_subs, ads_left, subs_left = plain["refiling"]
        interests.restore_refiling(
            {number: Advertisement.parse(text, limited=False) for number, text in gone_ads.items()},
            {number: reader.thing(place) for number, place in gone_subs.items()},
            ads_left,
            subs_left,
        )


def _router(cls: type) -> Part:
    return Part(
        cls,
        fields("untold", ads=NUMBERS, subs=NUMBERS, local_ads=OrderedSets(), local_subs=OrderedSets()),
        parts="_ad_covering _sub_covering",
        wired="neighbours interests effects turned _everyone _sends _ads_of _subs_of _ad_above _sub_above",
    )


NETWORK = (
    Part(
        Network,
        fields("seen retained_look_s", farewells=SET),
        parts="links clients arrivals confirming reconciling pressure forgetting",
        wired="core confirms settings on_settings",
    ),
    Part(
        Links,
        fields("down_since _pieces life", far_down=PairKeys()),
        parts="interests names channels",
        wired="name names_of numbers number overlay wire neighbours congested bits _towards left network",
    ),
    Part(
        Clients,
        fields("drops stored_unsure handoff_count interests_changed", roamers=REF_VALUES, giving=SET),
        parts="broker timers shares",
        wired="core links names follows traces notes seen members events report deliver",
        finish=Clients.rebuild,
    ),
    Part(
        Shares,
        fields(
            "bytes kept_bytes turns made again dropped forgotten",
            picks=PairKeys(REF),
            kept=Refs(list),
            here=RowValues(tuple),
            left=Rows(lambda source, number: (source, number), deque),
            unwilling=SET,
        ),
        wired="_core _links _router _drops _again_at_once groups _crews conditions _brokers _by_topic _of "
        "_topic_weight",
        finish=Shares.rebuild,
    ),
    Part(
        Arrivals,
        fields("given_up", waiting=REF_VALUES),
        parts="finder doubts",
        wired="core links clients endings owners _keeps_copies",
        finish=_know_reach,
    ),
    Part(
        Doubts,
        fields("began_s since_s asked_s", unmet=SET, silent=RowValues(set), held=SET, deferred=RefLists()),
        wired="_number _others _neighbours _give_up_s",
    ),
    Part(
        Confirming,
        fields(
            "unconfirmed _number _deadline_s",
            waiting=Rows(Answer),
            _running=Rows(Answer),
            _silent=SET,
            _passing=PairKeys(REF),
        ),
        wired="_links confirmed",
    ),
    Part(
        Pressure,
        fields("held", frames=RowLists(_FRAMES), _spoken_of=PairKeys()),
        wired="_core _links prepared holds releases",
    ),
    Part(
        Reconciling,
        fields(
            "resets memories forgot telling",
            owed=SET,
            stale_ads=Masks(),
            stale_subs=Masks(),
            stale_links=PairSets(),
        ),
        wired="_core _links _clients _routes _roll _told_at_once",
    ),
    Part(
        LiveInterests,
        fields("version _ads_entered _subs_entered"),
        wired="covering subs_of ads_of ad_above sub_above ads subs _ad_numbers _sub_numbers _filing _fresh "
        "_ads_waiting _subs_waiting _gone_ads _gone_subs leftovers tried matcher anything _idle _paths "
        "_plain by_topic _topic_chars",
        save=_save_interests,
        restore=_restore_interests,
    ),
    Part(Names, fields("_names _last"), wired="interests _numbers _texts", finish=Names.reindex),
    Part(
        Channel,
        fields(
            "life stream _streams open peer_life peer_stream queued refused _in_flight _noted_to _sent "
            "_buffer _sent_events _taken_events birth_events",
            births=Rows(lambda life, number: (life, number)),
            _out=Rows(
                lambda number, rank, data: _Waiting(Position(number, rank), data),
                deque,
                lambda one: (*one.position, one.data),
            ),
            _pending=Row(Position),
            _taken=Row(Position),
            _arrived=Row(Position),
            _acknowledged_to=Row(Position),
            _greeting=Struct(Hello),
            _hello=Struct(Hello),
        ),
        wired="broker network peer window_bytes queue_bytes _written _met_life",
    ),
    Part(
        Broker,
        fields("_tokens", stays=REF_VALUES, enrolled=RowValues(tuple)),
        parts="router subscribers",
        wired="_foresight _next_hop effects number policy receivers work work_cause",
    ),
    _router(Router),
    _router(FloodingRouter),
    Part(
        Covering,
        fields("", held=Witnesses(), leaving=Witnesses()),
        wired="_above _covers _dependents _out part_max",
        finish=Covering.find_dependents,
    ),
    Part(
        Subscribers,
        parts="_moment _memory _shelf _queues _deliveries _giving table",
        wired="_handle _receive _requests _post _visits accounts fed main older past publish consumed scheme "
        "store timers",
        finish=Subscribers.rebuild,
    ),
    Part(Moment, fields("now")),
    Part(
        Giving,
        fields("", under_way=Refs(deque)),
        wired="_effects _moment _post _queues _scheme _shelf part_max",
    ),
    Part(Memory, fields("", pasts=REF_VALUES), wired="_clients_max _moment"),
    Part(
        Shelf,
        fields(
            "_spare_key _token present watched",
            main=REF_VALUES,
            older=RefLists(),
            fed=REF_VALUES,
            timers=REF_VALUES,
        ),
        wired="_effects _queues _router _scheme",
    ),
    Part(Queues, parts="store accounts", wired="_effects _scheme"),
    Part(
        Deliveries,
        fields("stored"),
        wired="_bytes_max _event_bytes _events_max _fed _keeps _queues _ready _router _shelf",
    ),
    Part(Accounts, fields("", by_party=REF_VALUES), wired="_event_bytes bytes_max events_max little"),
    Part(NeighbourTable, fields("_crossed_s"), wired="_places_max _timeout_s"),
    Part(
        Store,
        fields("bytes bytes_peak", _references=RefKeys(), owners=RefsByRef()),
        wired="bytes_max events_max _event_bytes",
    ),
    Part(Timers, fields("_running", _heap=Rows(lambda at, client, token: (at, client, token)))),
    Part(
        Finder,
        fields(
            "",
            _searches=REF_VALUES,
            _trails=REF_VALUES,
            _heirs=RowValues(lambda row: _heir(*row)),
        ),
        parts="clock",
        wired="number _others _patience_s _named_patience_s _give_up_s out_of_reach _letters results gives "
        "discards",
    ),
    Part(EpochClock, fields("last"), wired="_number _brokers"),
    Part(Forgetting, fields("_due_s _entered _needed"), wired="_memory_s"),
)

TABLE = Table.of((*state_sessions.SESSIONS, *ROAMING), (*state_sessions.CORE, *NETWORK))
"""Of a broker with neighbours."""
