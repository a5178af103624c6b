"""Leaves the workshop out of what is installed; all else that is to be known stands in `pyproject.toml`.

Benchmarks that compare Sojourn with peers (Mosquitto, DuckDB, plain Spark) or start many processes of a
checkout are run by those who work on it. They stand beside the others, so that `sojourn bench` finds all of
them in a checkout, and are in the source archive, but not in a wheel.
"""

from setuptools import setup
from setuptools.command.build_py import build_py

WORKSHOP = ("sojourn.cli", "bench_")
PRODUCT = {"bench_manet", "bench_match", "bench_simulate"}
"""Benchmarks that need nothing but the package: `sojourn tour` uses one, and users calibrate with another."""


class ProductOnly(build_py):
    """Builds the package without its workshop."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return the modules of a package that are installed."""
        found: list[tuple[str, str, str]] = super().find_package_modules(package, package_dir)
        where, prefix = WORKSHOP
        return [
            one for one in found if package != where or one[1] in PRODUCT or not one[1].startswith(prefix)
        ]


setup(cmdclass={"build_py": ProductOnly})
