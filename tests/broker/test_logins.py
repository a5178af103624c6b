"""Whose password is compared next, and how many connections an address may have."""

from __future__ import annotations

from sojourn.broker.addresses import REMEMBERED_MAX, Addresses
from sojourn.broker.logins import FAILURES_MAX, Login, Logins, Verdict
from sojourn.mqtt.limits import Limits


def login(address: str, user: str, number: int) -> Login[int]:
    """A password of its own."""
    return Login(address, user, b"%d" % number, number)


def test_addresses_have_their_turn_in_a_circle() -> None:
    """Who tries hundreds of passwords does not make somebody elsewhere wait for more than one of them."""
    logins: Logins[int] = Logins(1_000, 5.0)
    for number in range(500):
        assert logins.ask(login("attacker", f"user{number % 7}", number), 0.0) is Verdict.WAITS
    logins.ask(login("home", "me", 999), 0.0)
    first = [logins.next(0.0), logins.next(0.0)]
    assert 999 in [one.work for one in first if one is not None]
    assert logins.waiting == 499


def test_users_of_one_address_have_their_turn_in_a_circle() -> None:
    """Behind one address the same holds for the users that are named."""
    logins: Logins[int] = Logins(1_000, 5.0)
    for number in range(500):
        logins.ask(login("shared", "victim", number), 0.0)
    logins.ask(login("shared", "me", 999), 0.0)
    first = [logins.next(0.0), logins.next(0.0)]
    assert 999 in [one.work for one in first if one is not None]


def turns_until(logins: Logins[int], wanted: int) -> int:
    """How many passwords are compared until one is, all others being wrong."""
    for count in range(1, 10_000):
        found = logins.next(0.0)
        assert found is not None
        if found.work == wanted:
            return count
        logins.answered(found, 0.0, fits=False)
    raise AssertionError("its turn never comes")


def test_a_user_elsewhere_waits_for_few_of_who_tries_its_passwords() -> None:
    """It is the address that counts, not the name: 1,500 wrong ones for a user come from another one."""
    logins: Logins[int] = Logins(1_500, 5.0)
    for number in range(1_500):
        logins.ask(login("attacker", "victim", number), 0.0)
    for number in (9_001, 9_002):
        logins.next(0.0)
        logins.ask(login("home", "victim", number), 0.0)
        assert turns_until(logins, number) <= 2


def test_many_addresses_that_try_one_user_take_the_time_of_that_one() -> None:
    """Another user waits for a few of theirs, not for one of each."""
    logins: Logins[int] = Logins(1_000, 5.0)
    for number in range(1_500):
        logins.ask(login(f"address {number}", "victim", number), 0.0)
    for number, waited in enumerate(range(5), 9_000):
        for _ in range(waited):
            logins.next(0.0)
        logins.ask(login("home", f"me {number}", number), 0.0)
        assert turns_until(logins, number) <= 4


def test_one_address_that_tries_many_users_takes_its_own_time() -> None:
    """Somebody elsewhere waits for a few of its passwords, also where it is the turn of users."""
    logins: Logins[int] = Logins(10_000, 5.0)
    for number in range(1_500):
        logins.ask(login("attacker", f"user {number}", number), 0.0)
    for number, waited in enumerate(range(5), 9_000):
        for _ in range(waited):
            logins.next(0.0)
        logins.ask(login("home", f"me {number}", number), 0.0)
        assert turns_until(logins, number) <= 3


def test_wrong_passwords_make_the_next_one_wait_longer_and_longer() -> None:
    """Up to a limit; a right one ends that; others do not wait."""
    logins: Logins[int] = Logins(1_000, 5.0)
    now, waits = 0.0, []
    for number in range(15):
        logins.ask(login("attacker", "victim", number), now)
        moment = logins.next_moment(now)
        assert moment is not None
        waits.append(round(moment - now, 6))
        if moment > now:
            assert logins.next(now) is None
            logins.ask(login("home", "victim", 99), now)
            found = logins.next(now)
            assert found is not None
            assert found.address == "home"
        now = moment
        found = logins.next(now)
        assert found is not None
        logins.answered(found, now, fits=False)
    assert waits[:6] == [0.0, 0.0, 0.0, 0.1, 0.2, 0.4]
    assert waits[-1] == 5.0
    now += 5.0
    logins.ask(login("attacker", "victim", 50), now)
    found = logins.next(now)
    assert found is not None
    logins.answered(found, now, fits=True)
    logins.ask(login("attacker", "victim", 51), now)
    assert logins.next(now) is not None


def test_a_password_that_was_right_is_known_again() -> None:
    """Also while its address has too many in line."""
    logins: Logins[int] = Logins(3, 5.0)
    logins.ask(login("here", "me", 1), 0.0)
    found = logins.next(0.0)
    assert found is not None
    logins.answered(found, 0.0, fits=True)
    for number in (2, 3, 4):
        assert logins.ask(login("here", "me", number), 0.0) is Verdict.WAITS
    assert logins.ask(login("here", "me", 5), 0.0) is Verdict.TOO_MANY
    assert logins.ask(login("elsewhere", "me", 6), 0.0) is Verdict.WAITS
    assert logins.ask(login("here", "me", 1), 0.0) is Verdict.FITS


def test_failures_are_remembered_within_limits() -> None:
    """Attempts from ever new addresses take no more than so much room."""
    logins: Logins[int] = Logins(3, 5.0)
    for number in range(FAILURES_MAX + 50):
        one = login(f"a{number}", "me", number)
        logins.answered(one, 0.0, fits=False)
    assert len(logins._failures) == FAILURES_MAX


def test_an_address_has_so_many_connections_and_makes_so_many_a_second() -> None:
    """Beyond that it is told which of both it was, and others are not concerned."""
    limits = Limits(connections_address_max=30, connects_per_s_max=10)
    addresses = Addresses()
    told = [addresses.opened("busy", limits, 100.0) for _ in range(25)]
    assert told[:20] == [None] * 20, "twice a second's worth at once"
    assert {int(one.code) for one in told[20:] if one is not None} == {0x9F}
    assert len([one for one in told[20:] if one is not None]) == 5
    assert addresses.opened("other", limits, 100.0) is None
    told = [addresses.opened("busy", limits, 102.0) for _ in range(10)]
    assert told[:5] == [None] * 5
    assert {int(one.code) for one in told[5:] if one is not None} == {0x97}
    for _ in range(10):
        addresses.lost("busy", 102.0)
    assert addresses.opened("busy", limits, 110.0) is None


def test_addresses_are_remembered_within_limits() -> None:
    """Those without a connection are forgotten when there are many."""
    limits, addresses = Limits(), Addresses()
    for number in range(REMEMBERED_MAX + 500):
        addresses.opened(f"a{number}", limits, float(number))
        addresses.lost(f"a{number}", float(number))
    assert len(addresses._known) <= REMEMBERED_MAX + 1


class Counting(Logins[int]):
    """One that counts how often it looks at somebody who waits."""

    looks = 0

    def _until(self, address: str, user: str) -> float:
        self.looks += 1
        return super()._until(address, user)


def test_who_asks_does_not_have_all_looked_at_who_wait() -> None:
    """However many addresses try passwords of one user, whether they have to pause or not."""
    logins = Counting(10, 5.0)
    for number in range(2_000):
        logins.ask(login(f"attacker {number}", "victim", number), 0.0)
        assert logins.next_moment(0.0) == 0.0
    assert logins.looks <= 3 * 2_000
    for _ in range(2_000 * 4):  # each is wrong until it has to pause
        found = logins.next(0.0)
        if found is not None:
            logins.answered(found, 0.0, fits=False)
            logins.ask(found, 0.0)
    assert logins.next(0.0) is None
    first = logins.next_moment(0.0)
    assert first is not None
    assert first > 0.0
    logins.looks = 0
    for number in range(100):
        logins.ask(login("attacker 7", f"user{number}", 10_000 + number), 0.0)
        assert logins.next_moment(0.0) == 0.0
        assert logins.next(0.0) is not None
    assert logins.looks <= 100 * 5
    logins.looks = 0
    for _ in range(100):
        assert logins.next(0.0) is None
        assert logins.next_moment(0.0) == first
    assert not logins.looks
    assert logins.next(first) is not None
