"""What Sojourn says through MQTT 5's user properties, in both directions.

Everything here is optional. A client that knows nothing of Sojourn sends none of these properties and is sent
none: what it publishes arrives elsewhere with its user properties unaltered, as the standard demands.

On CONNECT a client may send
- `sojourn-numbered` = `1`: it wants `sojourn-source` and `sojourn-sequence` on every event it is sent, so
  that it can tell a repetition from an event that only looks the same;
- `sojourn-previous`: the name of the broker it was connected to last, which saves the brokers a search;
- `sojourn-marks`: a JSON object of the last sequence it has seen by source: older events are not sent again;
- `sojourn-advertise`: an advertisement (may be repeated); without one a client may publish anything;
- `sojourn-attribute-NAME`: an attribute of the subscriber, for the access policies of events, where the
  configuration lets clients state their own.
On CONNACK the broker answers with `sojourn-broker`, its name.

On SUBSCRIBE `filter` is an expression over attributes which an event must satisfy beside the topic filter;
it holds for every topic filter of that packet. On PUBLISH `policy` is an expression over the subscriber's
attributes.
"""

from typing import Final

NUMBERED: Final = "sojourn-numbered"
PREVIOUS: Final = "sojourn-previous"
MARKS: Final = "sojourn-marks"
ADVERTISE: Final = "sojourn-advertise"
ATTRIBUTE_PREFIX: Final = "sojourn-attribute-"
BROKER: Final = "sojourn-broker"
SOURCE: Final = "sojourn-source"
SEQUENCE: Final = "sojourn-sequence"
FILTER: Final = "filter"
POLICY: Final = "policy"

MARKS_MAX: Final = 1_000
"""Sources in `sojourn-marks`; a client that heard more names those it heard last."""
