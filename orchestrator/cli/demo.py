"""`uag demo`: its flags, and the order of its steps.

The answer and its figures go to standard output, the way there to standard error.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from orchestrator.cli.command import Command
from orchestrator.cli.demo_steps import DemoSteps
from orchestrator.cli.exit_codes import ExitCode
from orchestrator.cli.services import (
    DEFAULT_PAIR,
    Pair,
    add_service_flags,
    choose_pair,
    choose_services,
)
from orchestrator.cli.supervisor import Supervisor
from orchestrator.client import Options, chat
from uag_common.errors import InvalidRequestError
from uag_common.limits import MAX_DRAFT_TOKENS

PROMPT = "What is photosynthesis, and why does it matter?"
DESCRIPTION = """\
Shows the whole way: fetches the models (once), starts draft, verify and orchestrator on this
machine, streams an answer, prints its figures, compares it with the target alone, and stops
everything. In float32, the default here, both answers must have the same token ids."""
EXAMPLES = """\
examples:
  uag demo
  uag demo "Write a haiku about the sea."
  uag demo --reverse
  uag demo --dtype bfloat16 --draft-tokens 3
  uag demo --target ./my-model --draft smollm2-135m-instruct
  uag demo --port 0 --draft-port 0 --verify-port 0

UAG_CACHE says where the models are kept (default: ~/.cache/uag). Exit code 1 if the ids differ
although the number type is float32."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "prompt", nargs="?", default=PROMPT, metavar="PROMPT", help="default: %(default)s"
    )
    parser.add_argument("--reverse", action="store_true", help="the default models change places")
    add_service_flags(parser)
    parser.add_argument(
        "--max-new-tokens", type=int, default=64, metavar="N",
        help="most tokens of the answer (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--draft-tokens", type=int, metavar="N", help="tokens to draft in each round (default: 5)"
    )


def run(flags: Namespace) -> ExitCode:
    """Raises UagError or KeyboardInterrupt; all services have ended by then."""
    _check(flags)
    pair = choose_pair(flags, _default_pair(reverse=flags.reverse))
    services = choose_services(flags, pair)
    prompt = chat(flags.prompt)
    options = Options(max_new_tokens=flags.max_new_tokens)
    forced = Options(speculation="force", draft_tokens=flags.draft_tokens)
    steps = DemoSteps(pair, services)
    steps.look()
    folders = steps.fetch()
    with Supervisor() as supervisor:
        children = steps.start(supervisor)
        steps.compare_vocabularies(*folders)
        steps.wait(supervisor, children)
        drafted = steps.answer(prompt, {**options, **forced})
        alone = steps.answer_alone(prompt, options)
        steps.compare(drafted, alone)
        steps.compare_planned(steps.answer_planned(prompt, options), alone)
    steps.tell_what_next()
    return ExitCode.OK


def _check(flags: Namespace) -> None:
    """The server would say the same, but only after minutes of fetching and loading. Raises
    InvalidRequestError."""
    if not flags.prompt:
        raise InvalidRequestError("the prompt", "is empty")
    if flags.max_new_tokens < 1:
        raise InvalidRequestError("max_new_tokens", f"is {flags.max_new_tokens}, must be above 0")
    if flags.draft_tokens is not None and not 1 <= flags.draft_tokens <= MAX_DRAFT_TOKENS:
        raise InvalidRequestError(
            "speculation.draft_tokens",
            f"is {flags.draft_tokens}, must be from 1 to {MAX_DRAFT_TOKENS}",
        )


def _default_pair(*, reverse: bool) -> Pair:
    """In float32 the answers are the same to the last id."""
    draft, target = DEFAULT_PAIR.draft, DEFAULT_PAIR.target
    return Pair(target, draft, "float32") if reverse else Pair(draft, target, "float32")


COMMAND = Command(
    name="demo",
    summary="see it work, from nothing to an answer with its figures",
    description=DESCRIPTION,
    examples=EXAMPLES,
    add_arguments=add_arguments,
    run=run,
)
