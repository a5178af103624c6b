"""The one base of every error a user can meet.

A `SojournError` carries one sentence and the way out; the command line prints it without a traceback.
Broken invariants of our own are assertions, never errors of this family.
"""


class SojournError(Exception):
    """Something a user can mend; its text is one sentence that says how."""
