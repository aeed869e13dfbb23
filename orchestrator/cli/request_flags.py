"""Flags that say what an answer shall be: one for each keyword of the client. Knows no connection.

A number is passed on as it is: the server alone knows which ones make sense.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ArgumentGroup
from collections.abc import Callable
from typing import cast, get_args

from orchestrator.cli.prompts import read_text
from orchestrator.client import Options
from orchestrator.client.options import DraftFailurePolicy, SpeculationMode


def add_request_flags(parser: ArgumentParser) -> None:
    """All of them, in groups. What is not given is the server's choice."""
    _add_length(parser)
    _add_sampling(
        parser.add_argument_group(
            "sampling", "without a temperature the most probable token is chosen each time"
        )
    )
    _add_stopping(parser.add_argument_group("where an answer ends"))
    _add_constraint(parser.add_argument_group("what an answer must look like", "one of them"))
    _add_logprobs(parser.add_argument_group("log-probabilities", "go to standard error"))
    _add_drafting(parser.add_argument_group("drafting", "changes no token of the answer"))
    _add_identity(parser.add_argument_group("the request among others"))


def request_options(flags: Namespace) -> Options:
    """The keywords of the flags. Raises InvalidRequestError for a file that cannot be read."""
    options = {name: getattr(flags, name) for name in Options.__annotations__}
    if (schema := options["json_schema"]) is not None and not schema.lstrip().startswith("{"):
        options["json_schema"] = read_text(schema)
    if (grammar := options["grammar"]) is not None:
        options["grammar"] = read_text(grammar)
    for name in ("logit_bias", "metadata"):
        options[name] = dict(options[name]) if options[name] else None
    return cast(Options, options)


def _add_length(parser: ArgumentParser) -> None:
    parser.add_argument("--max-new-tokens", type=int, metavar="N", help="most tokens of the answer")
    parser.add_argument(
        "--truncate-prompt-tokens", type=int, metavar="N",
        help="keep only the last N tokens of the prompt",
    )  # fmt: skip
    parser.add_argument("-n", type=int, metavar="N", help="number of answers")


def _add_sampling(group: _ArgumentGroup) -> None:
    group.add_argument("--temperature", type=float, metavar="T", help="draw tokens; 0: do not draw")
    group.add_argument("--top-k", type=int, metavar="K", help="draw from the K most probable")
    group.add_argument("--top-p", type=float, metavar="P", help="... those that together have P")
    group.add_argument(
        "--min-p", type=float, metavar="P", help="... those that have P of the best's"
    )
    group.add_argument("--typical-p", type=float, metavar="P", help="... the locally typical ones")
    group.add_argument("--repetition-penalty", type=float, metavar="F", help="1 changes nothing")
    group.add_argument("--frequency-penalty", type=float, metavar="F", help="0 changes nothing")
    group.add_argument("--presence-penalty", type=float, metavar="F", help="0 changes nothing")
    group.add_argument(
        "--logit-bias", type=_pair(int, float, "ID=BIAS"), action="append", metavar="ID=BIAS",
        help="added to a token's logit; may be repeated",
    )  # fmt: skip
    group.add_argument("--seed", type=int, metavar="N", help="the same again for the same N")


def _add_stopping(group: _ArgumentGroup) -> None:
    group.add_argument(
        "--stop", action="append", metavar="TEXT", help="ends the answer; may be repeated"
    )
    group.add_argument(
        "--stop-token-id", type=int, action="append", dest="stop_token_ids", metavar="ID",
        help="ends the answer; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--include-stop", action="store_true", default=None, help="show what ended the answer"
    )
    group.add_argument(
        "--ignore-eos", action="store_true", default=None, help="go on after an end of the target's"
    )
    group.add_argument("--min-new-tokens", type=int, metavar="N", help="no end before so many")
    group.add_argument("--time-limit", type=float, metavar="S", help="end after so many seconds")


def _add_constraint(group: _ArgumentGroup) -> None:
    group.add_argument(
        "--json-schema",
        metavar="FILE",
        help='a value of this schema; or the schema, "{...}"',
    )
    group.add_argument("--regex", metavar="PATTERN", help="a match of this regular expression")
    group.add_argument(
        "--choice", action="append", metavar="TEXT", help="one of these texts; to be repeated"
    )
    group.add_argument("--grammar", metavar="FILE", help="a text of this Lark grammar")


def _add_logprobs(group: _ArgumentGroup) -> None:
    group.add_argument(
        "--logprobs", type=int, metavar="N", help="of each token, and of the N most probable ones"
    )
    group.add_argument(
        "--prompt-logprobs", type=int, metavar="N", help="the same for the prompt's tokens"
    )


def _add_drafting(group: _ArgumentGroup) -> None:
    group.add_argument("--speculation", choices=get_args(SpeculationMode), help="when to draft")
    group.add_argument(
        "--draft-tokens", type=int, metavar="N", help="most tokens to draft in a round, 0: never"
    )
    group.add_argument(
        "--lookup-tokens", type=int, metavar="N",
        help="most tokens to take from earlier text in a round, 0: never",
    )  # fmt: skip
    group.add_argument(
        "--draft-min-probability", type=float, metavar="P",
        help="end a draft before a token less probable than this",
    )  # fmt: skip
    group.add_argument(
        "--on-draft-failure", choices=get_args(DraftFailurePolicy), help="go on without, or fail"
    )


def _add_identity(group: _ArgumentGroup) -> None:
    group.add_argument("--request-id", metavar="ID", help="its name in logs and traces")
    group.add_argument(
        "--session-id", metavar="ID", help="a conversation, whose earlier turns are kept computed"
    )
    group.add_argument("--cache-salt", metavar="TEXT", help="shares what is kept with its equals")
    group.add_argument("--priority", type=int, metavar="N", help="-100 to 100, higher goes first")
    group.add_argument(
        "--metadata", type=_pair(str, str, "KEY=VALUE"), action="append", metavar="KEY=VALUE",
        help="goes to the trace; may be repeated",
    )  # fmt: skip


def _pair(
    key: Callable[[str], object], value: Callable[[str], object], form: str
) -> Callable[[str], object]:
    def parse(text: str) -> object:
        name, equals, content = text.partition("=")
        try:
            if equals:
                return key(name), value(content)
        except ValueError:
            pass
        raise ArgumentTypeError(f"{text!r} does not have the form {form}")

    return parse
