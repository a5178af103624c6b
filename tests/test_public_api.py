"""What `import sojourn` offers: typed names that are loaded when they are asked for."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn
from sojourn.live.client.client import Client
from sojourn.live.client.replicas import ReplicaClient

CODE = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyspark":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refusing())
import sojourn
assert not [name for name in sys.modules if name.startswith("sojourn.")], "nothing is loaded at first"
try:
    sojourn.audit
except sojourn.MissingExtraError as error:
    print(error)
"""


def test_every_name_is_there_and_has_a_docstring() -> None:
    """Those that are listed are those that can be had."""
    assert set(sojourn.__all__) == {*sojourn._HOMES, "__version__"} == set(dir(sojourn))
    for name in sojourn._HOMES:
        assert inspect.getdoc(getattr(sojourn, name)), name
    assert sojourn.Filter.parse("a = 1").matches(sojourn.Event({"a": 1}))


def test_errors_share_one_base() -> None:
    """One `except` is enough."""
    errors = [getattr(sojourn, name) for name in sojourn.__all__ if name.endswith("Error")]
    assert len(errors) == 7
    assert all(issubclass(error, sojourn.SojournError) for error in errors)


def test_without_spark_the_audit_says_what_to_install() -> None:
    """And importing loads nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "sojourn.audit needs Spark: pip install 'sojourn[spark]'\n", done.stderr


STAR = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "pyspark"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refusing())
from sojourn import *
print(Client.__name__, Filter.parse("a = 1"), "audit" in globals(), "audit" in dir(__import__("sojourn")))
"""


def test_everything_that_is_there_can_be_imported_at_once_without_spark() -> None:
    """`import *` brings what the base installation has; what needs an extra says so when asked for."""
    done = subprocess.run(
        [sys.executable, "-c", STAR], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "Client a = 1 False True\n", done.stderr


INDEX = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "numba"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refusing())
from sojourn import MissingExtraError
from sojourn.interest.matcher import new_index
assert new_index() is None, "brokers do without"
try:
    from sojourn.interest.index import FilterIndex
except MissingExtraError as error:
    print(error)
"""


def test_without_numpy_the_index_says_what_to_install() -> None:
    """As the first example of the README asks for it."""
    done = subprocess.run(
        [sys.executable, "-c", INDEX], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "sojourn.interest.index needs NumPy: pip install 'sojourn[index]'\n", done.stderr


@pytest.mark.parametrize("kind", [Client, ReplicaClient])
@pytest.mark.parametrize("method", ["__init__", "subscribe", "publish"])
def test_every_option_has_a_name_and_a_type(kind: type, method: str) -> None:
    """So that editors know them: no options hide in **options."""
    parameters = list(inspect.signature(getattr(kind, method)).parameters.values())[1:]
    assert not [one for one in parameters if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    assert all(one.annotation is not one.empty for one in parameters)


def test_both_clients_have_the_same_options() -> None:
    """Whoever changes from one to the other changes nothing else, but for what only one connection has."""
    for method in ("subscribe", "publish", "unsubscribe", "next", "take"):
        one, several = (inspect.signature(getattr(kind, method)) for kind in (Client, ReplicaClient))
        assert set(one.parameters) - {"number"} == set(several.parameters), method


def test_type_checkers_see_the_names(tmp_path: Path) -> None:
    """`from sojourn import Client` is the client, not Any."""
    program = tmp_path / "program.py"
    program.write_text(
        "from sojourn import AuditReport, Client, Filter, audit\n"
        "async def main() -> None:\n"
        '    async with Client("mqtt://127.0.0.1:1883") as client:\n'
        '        await client.subscribe("speed > 80", keep="last:car", expiry_s=60, replace=True)\n'
        "        event = await client.next()\n"
        "        number: int = event.sequence\n"
        '        await client.subscribe("speed > 80", kep="last:car")\n'
        'report: AuditReport = audit("trace", by=["clients"])\n'
        'wanted: Filter = Filter.parse("a = 1")\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(program)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stdout
    assert 'Unexpected keyword argument "kep"' in errors[0]
