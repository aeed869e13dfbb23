"""`uag models`: what is packaged, what is here, and whether two models make a pair."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from orchestrator.cli.command import Command
from orchestrator.cli.exit_codes import ExitCode
from orchestrator.cli.pair_check import NamedFolder, Verdict, check_pair
from orchestrator.cli.pair_text import pair_lines
from orchestrator.cli.table import columns
from orchestrator.cli.terminal import Screen
from uag_common.models import catalogue
from uag_common.models.catalogue import CatalogueModel
from uag_common.models.progress import TerminalProgress
from uag_common.models.source import resolve
from uag_common.models.store import ModelStore

DESCRIPTION = """\
The packaged models, and any other by folder, .gguf file or hub id (ORG/NAME or ORG/NAME@REVISION).
They are kept in UAG_CACHE (default: ~/.cache/uag), those of the hub in the hub's own cache."""
EXAMPLES = """\
examples:
  uag models list
  uag models fetch smollm2-135m-instruct
  uag models where smollm2-135m-instruct
  uag models check gemma-3-270m smollm2-135m-instruct"""


def run_list(flags: Namespace) -> ExitCode:  # noqa: ARG001
    """Raises BadSettingError."""
    store = ModelStore.from_environment()
    header = ("NAME", "HERE", "DOWNLOAD", "DISK", "MEMORY F32", "MEMORY BF16", "LICENCE")
    rows = [_row(model, store) for model in catalogue.MODELS]
    out, err = Screen.of(sys.stdout), Screen.of(sys.stderr)
    for line in columns([header, *rows]):
        out.line(line)
    for model in catalogue.MODELS:
        err.line(f"{model.name}: {model.summary}; {model.note}")
    return ExitCode.OK


def run_fetch(flags: Namespace) -> ExitCode:
    """Raises UagError."""
    Screen.of(sys.stdout).line(str(resolve(flags.model, progress=TerminalProgress())))
    return ExitCode.OK


def run_where(flags: Namespace) -> ExitCode:
    """Raises ModelNotFoundError or CorruptModelError."""
    Screen.of(sys.stdout).line(str(ModelStore.from_environment().locate(flags.model)))
    return ExitCode.OK


def run_check(flags: Namespace) -> ExitCode:
    """Raises UagError."""
    progress = TerminalProgress()
    draft, target = (
        NamedFolder(name, resolve(name, progress=progress)) for name in (flags.draft, flags.target)
    )
    progress.note("reading both vocabularies; a large one takes seconds")
    report = check_pair(draft, target)
    out = Screen.of(sys.stdout)
    for line in pair_lines(report):
        out.line(line)
    return ExitCode.FAILED if report.verdict is Verdict.UNSUPPORTED else ExitCode.OK


def _row(model: CatalogueModel, store: ModelStore) -> tuple[str, ...]:
    sizes = (
        model.download_bytes,
        model.converted_bytes,
        model.resident_float32_bytes,
        model.resident_bfloat16_bytes,
    )
    here = "yes" if store.is_stored(model.name) else "no"
    return (model.name, here, *(f"{size // catalogue.MB} MB" for size in sizes), model.licence)


def _models(*names: str) -> Callable[[ArgumentParser], None]:
    def add_arguments(parser: ArgumentParser) -> None:
        for name in names:
            parser.add_argument(
                name.lower(), metavar=name, help="a packaged model, hub id, folder or .gguf file"
            )

    return add_arguments


SUBCOMMANDS = (
    Command(
        name="list",
        summary="what is packaged, how large it is, and whether it is here",
        description="Lists the packaged models. MEMORY: of a running service, by number type.",
        examples="examples:\n  uag models list\n  uag models list 2>/dev/null | cut -d ' ' -f 1",
        add_arguments=_models(),
        run=run_list,
    ),
    Command(
        name="fetch",
        summary="fetch a model and print its folder",
        description="Fetches a model unless it is here, checks it, and prints its folder.\n"
        "An interrupted fetch goes on where it stopped.",
        examples="examples:\n  uag models fetch gemma-3-270m\n"
        "  uag models fetch HuggingFaceTB/SmolLM2-360M-Instruct",
        add_arguments=_models("MODEL"),
        run=run_fetch,
    ),
    Command(
        name="where",
        summary="print the folder of a packaged model that is here",
        description="Prints the folder of a packaged model (`uag models list`); never fetches.",
        examples="examples:\n  ls $(uag models where smollm2-135m-instruct)",
        add_arguments=_models("MODEL"),
        run=run_where,
    ),
    Command(
        name="check",
        summary="whether DRAFT can draft for TARGET",
        description="Tells whether DRAFT can draft for TARGET: same vocabulary, different ones "
        "(drafts are\ntranslated byte by byte), or unsupported, with the remedy (exit code 1).\n"
        "Fetches what is not here.",
        examples="examples:\n  uag models check gemma-3-270m smollm2-135m-instruct\n"
        "  uag models check ./my-draft Qwen/Qwen2.5-7B-Instruct",
        add_arguments=_models("DRAFT", "TARGET"),
        run=run_check,
    ),
)


def _add_subcommands(parser: ArgumentParser) -> None:
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in SUBCOMMANDS:
        command.add_to(subparsers)


COMMAND = Command(
    name="models",
    summary="list, fetch, find and compare models",
    description=DESCRIPTION,
    examples=EXAMPLES,
    add_arguments=_add_subcommands,
    # Never called: argparse wants a subcommand, and that one brings its own.
    run=run_list,
)
