"""`uag trace`: a link that Jaeger knows, or a word on what is wrong."""

from __future__ import annotations

import pytest

from orchestrator.cli.command import UsageError
from orchestrator.cli.trace import DEFAULT_URL, trace_link
from tests.cli.processes import uag

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    "given",
    [TRACE_ID, TRACE_ID.upper(), f" {TRACE_ID}\n", f"00-{TRACE_ID}-b7ad6b7169203331-01"],
)
def test_the_link_of_a_trace(given: str) -> None:
    assert trace_link("https://jaeger.example/ui/", given) == (
        f"https://jaeger.example/ui/trace/{TRACE_ID}"
    )


@pytest.mark.parametrize("given", ["", "7", "0" * 32, TRACE_ID + "0", TRACE_ID[:-1] + "g"])
def test_what_is_no_trace_id_is_named(given: str) -> None:
    with pytest.raises(UsageError, match="32 hexadecimal digits"):
        trace_link(DEFAULT_URL, given)


def test_what_is_no_address_is_named() -> None:
    with pytest.raises(UsageError, match=r"'jaeger:16686' is no address .* http://127"):
        trace_link("jaeger:16686", TRACE_ID)


def test_the_command_line_beats_the_variable() -> None:
    there = {"UAG_JAEGER_URL": "http://there:1"}
    assert uag("trace", TRACE_ID, changes=there).stdout == f"http://there:1/trace/{TRACE_ID}\n"
    done = uag("trace", "--jaeger", "http://here:2", TRACE_ID, changes=there)
    assert (done.returncode, done.stdout) == (0, f"http://here:2/trace/{TRACE_ID}\n")
    wrong = uag("trace", "17")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.count("\n") == 1
