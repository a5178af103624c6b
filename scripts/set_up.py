"""Makes .venv with what a command needs and no more; safe to run again, and while another one runs.

| what | packages | besides |
| --- | --- | --- |
| `broker` | those of clients and brokers | |
| `demo` | and Spark, the filter index, figures | Java 17+ |
| `all` | and all of requirements….txt: studies, benchmarks, tests, docs | Java 17+, perhaps Mosquitto |

Versions are those of these files. Packages are fetched in parallel by uv, which is taken from the path
or else from the package index, like everything; where there is no uv, by pip. What was asked of pip (another
index, certificates) is asked of uv too. When nothing changed, only a stamp is compared.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDS = ("broker", "demo", "all")
"""Each includes those before it."""
UV = "uv==0.13.7"
JAVA_MAJOR_MIN = 17
WATCHED = ("requirements.txt", "requirements-docs.txt", "pyproject.toml", "scripts/set_up.py")
"""Files that say what is to be installed."""
LOADED = (
    *(f"sojourn.cli.{name}" for name in ("commands", "main", "pub", "serve", "serve_all", "sub")),
    "sojourn.live.brokers.server",
    "sojourn.live.client.client",
)
"""What loads all that brokers and clients load."""
WARMING = "sojourn.live.brokers.warming"
ASKED_OF_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
"""Settings of pip, and the variables by which uv is told the same."""


class SetUpError(Exception):
    """Something that whoever runs this has to mend."""


def say(text: str) -> None:
    """Tell what is being done."""
    print(f"setup: {text}", file=sys.stderr, flush=True)


# What is there --------------------------------------------------------------------------------------------


def digest(root: Path) -> str:
    """A mark that changes with what is to be installed."""
    return hashlib.sha256(b"".join((root / name).read_bytes() for name in WATCHED)).hexdigest()


def has(environment: Path, need: str, wanted: str) -> bool:
    """Whether an environment has all that is needed, as a finished set-up has noted there."""
    try:
        noted = json.loads((environment / ".setup-stamp").read_text())
        return bool(noted["digest"] == wanted and NEEDS.index(noted["need"]) >= NEEDS.index(need))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def noted_need(environment: Path) -> str:
    """What the environment was made for, so that a later set-up takes nothing away."""
    try:
        need = json.loads((environment / ".setup-stamp").read_text())["need"]
    except (OSError, ValueError, KeyError, TypeError):
        return NEEDS[0]
    return need if need in NEEDS else NEEDS[0]


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Be the only set-up of this folder; wait for one that runs."""
    folder = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("waiting for another set-up to end")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


# Packages -------------------------------------------------------------------------------------------------


def make_environment(environment: Path) -> Path:
    """Make an environment if there is none that works; return its Python."""
    python = environment / "bin" / "python"
    with suppress(OSError):
        if subprocess.run([python, "-c", ""], check=False).returncode == 0:
            subprocess.run([python, "-m", "ensurepip"], capture_output=True, check=False)
            return python
    say("making .venv")
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=False)
    if done.returncode != 0:
        raise SetUpError("Python's venv module is missing (on Debian: apt-get install python3-venv).")
    return python


def find_uv(python: Path) -> list[str] | None:
    """Return the command of uv, which is fetched if it is not there; None if it cannot be had."""
    found = shutil.which("uv")
    if found is not None:
        return [found]
    inside = python.parent / "uv"
    if not inside.exists():
        say(f"fetching {UV}, which installs in parallel")
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, UV], check=False)
    return [str(inside)] if inside.exists() else None


def surroundings(python: Path) -> dict[str, str]:
    """The environment in which uv finds what pip would."""
    environment = dict(os.environ)
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    for setting, values in pip_settings(listed).items():
        # uv has one variable for several indexes; find-links are parted by commas there.
        joined = (" " if setting == "extra-index-url" else ",").join(values)
        environment.setdefault(ASKED_OF_PIP[setting], joined)
    # Like pip, which takes a version from whichever index has it; that is sure enough, since all are pinned.
    environment.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return environment


def pip_settings(listed: str) -> dict[str, list[str]]:
    """What pip was told that uv is to be told too, of the lines of `pip config list`."""
    found: dict[str, list[str]] = {}
    for line in listed.splitlines():
        match = re.fullmatch(r"[^=]*\.([a-z-]+)='(.*)'", line)
        if match is not None and match[1] in ASKED_OF_PIP:
            found[match[1]] = match[2].replace("\\n", " ").split()
    return found


def install(python: Path, need: str) -> None:
    """Install the packages, with their sizes and how far it is."""
    wanted = ["--editable", "."]
    if need == "demo":
        wanted = ["--editable", ".[demo]"]
    # The build backend is installed first, so that nothing is fetched twice to build one package.
    backend = [line for line in pins() if line.startswith("setuptools==")]
    packages = (
        ["--requirement", "requirements.txt", "--requirement", "requirements-docs.txt"]
        if need == "all"
        else []
    )
    uv = find_uv(python)
    if uv is not None:
        known = surroundings(python)
        tool = [*uv, "pip", "install", "--python", str(python)]
        if run([*tool, "--quiet", *backend], known) and run(
            [*tool, "--constraint", "requirements.txt", "--no-build-isolation", *packages, *wanted], known
        ):
            return
        say("uv did not succeed; pip is asked")
    tool = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    if run([*tool, "--quiet", *backend]) and run(
        [*tool, "--constraint", "requirements.txt", "--no-build-isolation", *packages, *wanted]
    ):
        return
    raise SetUpError("The packages could not be installed; what is above says why.")


def keep_compiled(python: Path) -> None:
    """Load once what brokers and clients load, so that Python keeps it compiled for every later start.

    Where PYTHONDONTWRITEBYTECODE is set, as in many images, each start would compile it anew, which takes
    more than twice as long as the start itself. What cannot be kept is compiled then.
    """
    say("compiling what brokers and clients load")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    run([str(python), "-c", f"import {', '.join(LOADED)}"], environment)


def keep_kernels(python: Path) -> None:
    """Compile the kernels of the filter index, which the first broker with many filters would wait for."""
    say("compiling the filter index, which takes some ten seconds, once")
    run([str(python), "-c", f"from {WARMING} import load_index_kernels as load; load()"])


def run(command: list[str], environment: dict[str, str] | None = None) -> bool:
    """Run a command; whether it succeeded."""
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def pins() -> list[str]:
    """The lines of requirements.txt."""
    return (ROOT / "requirements.txt").read_text().split()


def size_mb(folder: Path) -> float:
    """What a folder takes, in megabytes."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1e6


# Java -----------------------------------------------------------------------------------------------------


def java_major(java: str | Path) -> int:
    """The major version of a Java program; 0 if it is none."""
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', asked.stderr + asked.stdout)
    return int(found[1]) if found else 0


def find_java() -> Path | None:
    """A Java that runs Spark: JAVA_HOME's, the path's, or one where systems put them."""
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    candidates = [Path(home, "bin", "java")] if home else []
    candidates += [Path(on_path)] if on_path else []
    candidates += sorted(Path("/usr/lib/jvm").glob("*/bin/java"), reverse=True)
    return next((java for java in candidates if java_major(java) >= JAVA_MAJOR_MIN), None)


def install_java() -> None:
    """Install a runtime with apt, where that may be done."""
    as_root = [] if os.getuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None or (as_root and not _may(as_root)):
        return
    say("installing openjdk-17-jre-headless with apt (some 200 MB)")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([*as_root, "apt-get", "update", "-qq"], check=False)
    subprocess.run(
        [*as_root, "apt-get", "install", "-y", "-qq", "openjdk-17-jre-headless"],
        env=quiet, stdout=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def _may(as_root: list[str]) -> bool:
    try:
        return subprocess.run([*as_root, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def see_to_java(environment: Path) -> None:
    """Note where the runtime is, for commands that find none by JAVA_HOME or the path."""
    java = find_java()
    if java is None:
        install_java()
        java = find_java()
    if java is None:
        raise SetUpError(
            f"Spark needs Java {JAVA_MAJOR_MIN} or later: install a runtime (on Debian: apt-get install "
            "openjdk-17-jre-headless) or set JAVA_HOME."
        )
    (environment / ".java-home").write_text(f"{java.resolve().parent.parent}\n")


# All of it ------------------------------------------------------------------------------------------------


def set_up(root: Path, need: str) -> None:
    """Make the environment of a folder fit for what is needed."""
    environment, wanted = root / ".venv", digest(root)
    if has(environment, need, wanted):
        return
    with alone(root):
        if has(environment, need, wanted):  # whoever was waited for has done it
            return
        began = time.monotonic()
        need = max(need, noted_need(environment), key=NEEDS.index)
        python = make_environment(environment)
        (environment / ".setup-stamp").unlink(missing_ok=True)
        say(f"installing what `{need}` needs; the sizes are those of downloads")
        install(python, need)
        keep_compiled(python)
        if need != "broker":
            keep_kernels(python)
            see_to_java(environment)
        if need == "all":
            # Tests and benchmarks beside Mosquitto are skipped where there is none; nothing else needs it.
            subprocess.run([root / "scripts" / "mosquitto"], stdout=subprocess.DEVNULL, check=False)
        (environment / ".setup-stamp").write_text(json.dumps({"digest": wanted, "need": need}))
        say(f".venv is ready: {size_mb(environment):,.0f} MB, in {time.monotonic() - began:.0f} s")


def main() -> None:
    """Set up what the command line asks for."""
    need = sys.argv[1] if len(sys.argv) > 1 else "all"
    if need not in NEEDS or len(sys.argv) > 2:
        say(f"scripts/setup [{'|'.join(NEEDS)}]")
        sys.exit(2)
    try:
        set_up(ROOT, need)
    except SetUpError as error:
        say(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted; run it again to go on")
        sys.exit(130)


if __name__ == "__main__":
    main()
