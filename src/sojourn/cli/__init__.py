"""The `sojourn` command line."""

import signal
import sys

if sys.argv[1:2] == ["serve"]:
    # SIGHUP asks a broker to read its configuration anew, and would end one that cannot do so yet: it waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
