"""`uag generate` as a process, on a pipe and on a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import grpc
import pytest
import trustme

from orchestrator.cli.answer_printer import LEGEND
from tests.cli.processes import ROOT, UAG, environment, uag, uag_on_terminal, wait_until
from tests.scripted_orchestrator import (
    ANSWER,
    FINISHED,
    STARTED,
    ScriptedOrchestrator,
    delta,
    finished,
)
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.addresses import with_real_port

TEXT = "Once upon a tïme\n"
FIGURES = (
    "5 tokens, 2 rounds, proposed 9 / accepted 2, 2.5 tokens/s, first token after 0.25 s, "
    "ended by the limit of tokens\n"
)


def test_answer_to_standard_output_figures_to_standard_error(
    orchestrator: ScriptedOrchestrator,
) -> None:
    done = uag("generate", "--target", orchestrator.address, "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, TEXT, FIGURES)
    assert orchestrator.requests[0].text == "hi"


def test_a_terminal_shows_what_the_draft_said_in_green(orchestrator: ScriptedOrchestrator) -> None:
    shown = uag_on_terminal("generate", "--target", orchestrator.address, "hi")
    assert "Once \x1b[32mupon a \x1b[0mtïme\r\n" in shown
    assert LEGEND in shown


def test_no_colour_where_none_is_wanted(orchestrator: ScriptedOrchestrator) -> None:
    shown = uag_on_terminal(
        "generate", "--target", orchestrator.address, "hi", changes={"NO_COLOR": "1"}
    )
    assert shown == (TEXT + FIGURES).replace("\n", "\r\n")


def test_json_is_one_message_a_line(orchestrator: ScriptedOrchestrator) -> None:
    done = uag("generate", "--target", orchestrator.address, "--json", "hi")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [next(iter(message)) for message in messages] == [
        "started",
        "delta",
        "delta",
        "delta",
        "finished",
    ]
    assert messages[2]["delta"]["tokens"][0]["source"] == "TOKEN_SOURCE_DRAFT"
    # What is zero is told too: a script need not know what may be absent.
    assert messages[1]["delta"]["choice"] == 0
    assert done.stderr == ""


def test_flags_reach_the_request(orchestrator: ScriptedOrchestrator, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("from a file\n")
    flags = ("--max-new-tokens", "9", "--draft-tokens", "0", "--system", "be brief")
    done = uag("generate", "--target", orchestrator.address, "--file", str(prompt), *flags)
    assert done.returncode == 0
    (request,) = orchestrator.requests
    assert [message.content for message in request.chat.messages] == ["be brief", "from a file\n"]
    assert (request.max_new_tokens, request.speculation.draft_tokens) == (9, 0)


def test_several_answers_are_told_apart(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (
        STARTED,
        delta("b", choice=1),
        delta("a"),
        delta("bb\n", choice=1),
        finished(1),
        delta("aa"),
        FINISHED,
    )
    done = uag("generate", "--target", orchestrator.address, "-n", "2", "hi")
    assert done.stdout == "--- answer 1 of 2\naaa\n\n--- answer 2 of 2\nbbb\n"
    figures = [f"answer {index}: {FIGURES}" for index in (1, 2)]
    assert done.stderr == "".join(figures)


def test_log_probabilities_go_to_standard_error(orchestrator: ScriptedOrchestrator) -> None:
    probable = delta("a\n")
    probable.delta.tokens[0].logprob = -0.25
    probable.delta.tokens[0].top.add(id=1, logprob=-0.25, text="a\n")
    probable.delta.tokens[0].top.add(id=2, logprob=-2, text="b")
    orchestrator.script = (STARTED, probable, delta("plain"), FINISHED)
    done = uag("generate", "--target", orchestrator.address, "--logprobs", "2", "hi")
    assert done.stdout == "a\nplain\n"
    assert done.stderr == "'a\\n'  -0.2500  'a\\n' -0.2500  'b' -2.0000\n" + FIGURES


def test_the_names_of_the_request_are_told(orchestrator: ScriptedOrchestrator) -> None:
    named = pb.GenerateResponse()
    named.CopyFrom(STARTED)
    named.started.trace_id = "ab" * 16
    named.started.parameters.request_id = "r-1"
    orchestrator.script = (named, *ANSWER[1:])
    done = uag("generate", "--target", orchestrator.address, "hi")
    assert done.stderr == f"{FIGURES.rstrip()}, request r-1, trace {'ab' * 16}\n"


def test_the_key_comes_from_the_environment(orchestrator: ScriptedOrchestrator) -> None:
    key = {"UAG_API_KEY": "key-of-nobody"}
    assert uag("generate", "--target", orchestrator.address, "hi", changes=key).returncode == 0
    assert orchestrator.metadata[0]["authorization"] == "Bearer key-of-nobody"
    away = uag("generate", "--target", "example.org:1", "hi", changes=key)
    assert away.returncode == 2
    assert "key-of-nobody" not in away.stderr
    assert "use --tls or --tls-ca" in away.stderr


def test_a_flag_is_written_whole(orchestrator: ScriptedOrchestrator) -> None:
    done = uag("generate", "--target", orchestrator.address, "--temp", "0.5", "hi")
    assert done.returncode == 2
    assert "--temp" in done.stderr


def test_a_conversation(orchestrator: ScriptedOrchestrator) -> None:
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    conversation = json.dumps(turns).encode()
    at = ("generate", "--target", orchestrator.address)
    assert uag(*at, "--messages", "-", given=conversation).returncode == 0
    (request,) = orchestrator.requests
    assert [(m.role, m.content) for m in request.chat.messages] == [
        ("user", "hi"),
        ("assistant", "hello"),
    ]
    contradiction = uag(*at, "--messages", "--system", "x", "-", given=conversation)
    assert contradiction.returncode == 2
    assert "not with messages" in contradiction.stderr


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED])
def test_a_script_can_tell_what_to_try_again(
    orchestrator: ScriptedOrchestrator, code: grpc.StatusCode
) -> None:
    orchestrator.script = ()
    orchestrator.error = (code, "words")
    done = uag("generate", "--target", orchestrator.address, "hi")
    assert done.returncode == (75 if code is grpc.StatusCode.RESOURCE_EXHAUSTED else 1)


def test_tls(tmp_path: Path) -> None:
    authority, ca = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    own = authority.issue_cert("localhost")
    pair = (own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes())
    with ScriptedOrchestrator(credentials=grpc.ssl_server_credentials([pair])) as scripted:
        done = uag("generate", "--target", scripted.address, "--tls-ca", str(ca), "hi")
        assert (done.returncode, done.stdout) == (0, TEXT)
        distrusted = uag("generate", "--target", scripted.address, "--tls", "hi")
        assert distrusted.returncode == 69
        assert "CERTIFICATE_VERIFY_FAILED" in distrusted.stderr
        assert "uag up" not in distrusted.stderr


def test_a_certificate_that_is_missing_is_named(orchestrator: ScriptedOrchestrator) -> None:
    done = uag("generate", "--target", orchestrator.address, "--tls-ca", "nowhere.pem", "hi")
    assert done.returncode == 65
    assert done.stderr == "uag generate: nowhere.pem: cannot be read: No such file or directory\n"


def test_standard_input(orchestrator: ScriptedOrchestrator) -> None:
    given = b"zwei\nZeilen"
    done = uag("generate", "--target", orchestrator.address, "-", given=given)
    assert done.returncode == 0
    assert orchestrator.requests[0].text == "zwei\nZeilen"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"", "standard input: is empty"),
        (
            b"\xe4h",
            "standard input: byte 1 is no valid UTF-8: convert the text to UTF-8 first",
        ),
    ],
)
def test_a_bad_prompt_is_one_line(given: bytes, message: str) -> None:
    done = uag("generate", "-", given=given)
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr == f"uag generate: {message}\n"


def test_a_status_is_one_line(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = ()
    orchestrator.error = (grpc.StatusCode.INVALID_ARGUMENT, "max_new_tokens: is 0")
    done = uag("generate", "--target", orchestrator.address, "hi")
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr == "uag generate: INVALID_ARGUMENT: max_new_tokens: is 0\n"


def test_an_answer_that_breaks_off_keeps_what_came(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = ANSWER[:2]
    orchestrator.error = (grpc.StatusCode.UNAVAILABLE, "verify service: gone")
    done = uag("generate", "--target", orchestrator.address, "hi")
    assert (done.returncode, done.stdout) == (69, "Once \n")
    assert done.stderr == "uag generate: UNAVAILABLE: verify service: gone\n"


def test_nothing_there() -> None:
    done = uag("generate", "--target", with_real_port("127.0.0.1:0"), "hi")
    assert done.returncode == 69
    assert "start the services there with `uag up`" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_goes_away_is_no_error(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (STARTED, *(delta("word " * 2000) for _ in range(50)), *ANSWER[-1:])
    with subprocess.Popen(
        [*UAG, "generate", "--target", orchestrator.address, "hi"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(4) == b"word"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0


def test_ctrl_c_is_exit_code_130(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.pause_seconds = 1.0
    with subprocess.Popen(
        [*UAG, "generate", "--target", orchestrator.address, "hi"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd=ROOT,
    ) as process:
        assert process.stderr is not None
        wait_until(lambda: bool(orchestrator.requests))
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"uag generate: interrupted\n"
        assert process.wait(20) == 130
