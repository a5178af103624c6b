"""The one base of every error a user can meet, and the sentence for a library that is not installed.

A `SojournError` carries one sentence and the way out; the command line prints it without a traceback.
Broken invariants of our own are assertions, never errors of this family.
"""

import shlex

LIBRARIES = {
    "numba": ("Numba", "index"),
    "llvmlite": ("Numba", "index"),
    "numpy": ("NumPy", "index"),
    "pyarrow": ("Arrow", "trace"),
    "pandas": ("pandas", "spark"),
    "py4j": ("Spark", "spark"),
    "pyspark": ("Spark", "spark"),
    "highspy": ("HiGHS", "studies"),
    "plotly": ("Plotly", "studies"),
    "scipy": ("SciPy", "studies"),
    "duckdb": ("DuckDB", "bench"),
}
"""The libraries that only some of Sojourn needs: what people call them, and the extra that brings them."""


def typed(word: object) -> str:
    """A path or a name as it is typed into a shell, with quotes where it needs them."""
    return shlex.quote(str(word))


class SojournError(Exception):
    """Something a user can mend; its text is one sentence that says how."""


class MissingExtraError(SojournError, ModuleNotFoundError):
    """A library is missing that a part of Sojourn needs, and that `pip install sojourn` does not bring.

    It is a `ModuleNotFoundError` too, with the name of the module, for who does without where it is missing.
    """


def missing_extra(error: ModuleNotFoundError, who: str, extra: str | None = None) -> Exception:
    """Return the sentence for a missing library of an extra; any other error as it is.

    The extra is the one that brings all that `who` needs, if that is known, and else what brings the library.
    """
    name = (error.name or "").split(".")[0]
    if name not in LIBRARIES:
        return error
    library, brought_by = LIBRARIES[name]
    sentence = f"{who} needs {library}: pip install 'sojourn[{extra or brought_by}]'"
    return MissingExtraError(sentence, name=error.name)
