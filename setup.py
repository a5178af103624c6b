"""Leaves the workshop out of what is installed; all else that is to be known stands in `pyproject.toml`.

What those need who work on Sojourn is in a checkout and in the source archive, but not in a wheel: benchmarks
that compare it with peers (Mosquitto, DuckDB, plain Spark) or start many processes of a checkout, and the
worlds in which whole brokers are broken on purpose, with the checks that live in them. The worlds of `sojourn
simulate` and of the studies are for users, as are the checks of those (hand-off, election, properties).
"""

from setuptools import setup
from setuptools.command.build_py import build_py

WORKSHOP = {
    "sojourn.cli": ("bench_", "check_fuzz", "check_live", "check_replay", "check_replicas"),
    "sojourn.sim.live_check": ("",),
}
"""By package: how the names of modules begin that are not installed."""
PRODUCT = {"bench_manet", "bench_match", "bench_simulate"}
"""Benchmarks that need nothing but the package: `sojourn tour` uses one, and users calibrate with another."""


class ProductOnly(build_py):
    """Builds the package without its workshop."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return the modules of a package that are installed."""
        found: list[tuple[str, str, str]] = super().find_package_modules(package, package_dir)
        left_out = WORKSHOP.get(package, ())
        return [one for one in found if one[1] in PRODUCT or not one[1].startswith(left_out)]


setup(cmdclass={"build_py": ProductOnly})
