"""A value that is none of the choices is refused with the choices."""

from __future__ import annotations

import pytest

from sojourn.live.choices import with_choices
from sojourn.live.config import Config, ConfigError, read_config

BROKER = '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'

SCHEMES = "mobility.subscribers may be proactive, reactive, durable"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            BROKER + '[mobility]\nsubscribers = "proactiv"\n',
            f"{SCHEMES}, not 'proactiv' (perhaps 'proactive' was meant).",
        ),
        (
            BROKER + '[routing]\nmode = "telepathy"\n',
            "routing.mode may be content, flooding, not 'telepathy'.",
        ),
        (
            BROKER + 'certificates = "maybe"\n',
            "brokers[0].certificates may be ignored, optional, required, not 'maybe'.",
        ),
        (
            BROKER + "[routing]\ncoverin = true\n",
            "routing has no key 'coverin' (perhaps 'covering' was meant).",
        ),
        (
            BROKER + 'lissten = "127.0.0.1:0"\n',
            "brokers[0] has no key 'lissten' (perhaps 'listen' was meant).",
        ),
        ("[limts]\n", "the top level has no key 'limts' (perhaps 'limits' was meant)."),
        (BROKER + "[trace]\nzzz = 1\n", "trace has no key 'zzz', only folder, run, sample."),
        (
            BROKER + '[mobility]\ncopies = "1"\n',
            "mobility.copies is a whole number without quotes, not text in quotes.",
        ),
        (
            BROKER + "[mobility]\ncopies = true\n",
            "mobility.copies is a whole number without quotes, not true or false.",
        ),
        (
            BROKER + "seats = 6883\n",
            "brokers[0].seats is text in quotes, not a whole number without quotes.",
        ),
    ],
)
def test_the_choices_are_told(text: str, sentence: str) -> None:
    """With the one that is most like it, if any is."""
    with pytest.raises(ConfigError) as refused:
        read_config(text, "city.toml")
    assert str(refused.value) == f"In city.toml: {sentence}"


def test_other_refusals_stay_as_they_are() -> None:
    """Also of a place that there is none of."""
    for sentence in ("Expected something else", "Invalid enum value 'x' - at `$.nowhere`"):
        assert with_choices(sentence, Config) == sentence
