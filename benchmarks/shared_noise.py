"""What the draft's dice are worth: `python -m benchmarks.shared_noise [--prompts FILE]`.

The target's sampled answer does not depend on the draft, so each answer is drawn once and then
guessed three times over, round by round, by the same draft model: with the target's own noise, with
dice of its own, and greedily. Told is the share of examined candidates that were accepted. Pairs of
the same answers, so their differences are told with the standard error over the answers.

A drawn text is another one than the greedy text, and harder to guess whatever the noise is. So the
first candidates are told too, one after each token of a text: both greedy along the greedy text,
both greedy along the drawn one, and both drawing by the same noise along the drawn one.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import torch

from benchmarks.prompts import PROMPTS, read_prompts
from draft_service.commands import OpenCommand, ProposeCommand
from draft_service.drafter import CausalDrafter
from draft_service.drafting import Drafting
from orchestrator.request import Prompt
from orchestrator.side import Side, open_conversion
from uag_common.common_prefix import common_prefix
from uag_common.context import ContextVersion
from uag_common.decoding import Decoding, PrefixReuse, Sampling
from uag_common.engine.language_model import LanguageModel
from uag_common.engine.load import load_folder
from uag_common.model import run_alone, run_step
from uag_common.models import catalogue
from uag_common.models.source import resolve
from uag_common.prefix_cache import PrefixCache
from verify_service.settings import VerifySettings

TEMPERATURES = (0.7, 1.0)
DRAFT_TOKENS = 5
FIRST_TOKENS = 3
"""That are drafted for one candidate: it may be made of several."""
NEW_TOKENS = 64
SEED = 20_260


class Dice(Enum):
    """How the draft chooses its tokens."""

    SHARED = "shared noise"
    OWN = "own dice"
    GREEDY = "greedy draft"


@dataclass(frozen=True, slots=True)
class Counts:
    """Candidates of one answer, and the rounds that it took."""

    examined: int
    accepted: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model and what the orchestrator knows of it."""

    name: str
    model: LanguageModel
    side: Side


def load(name: str, dtype: str) -> Loaded:
    folder = resolve(name)
    settings = VerifySettings(model=str(folder), dtype=dtype)  # type: ignore[arg-type]
    model = load_folder(folder, settings, torch.device("cpu"))
    return Loaded(name, model, Side.build(model.description, model.tokenizer_files))


@dataclass(frozen=True, slots=True)
class Drawn:
    """The target's own answer, an EOS included, and what was most probable at each place of it."""

    sampling: Sampling
    ids: Sequence[int]
    likeliest: Sequence[int]


def draw_answer(target: Loaded, prompt_ids: Sequence[int], sampling: Sampling) -> Drawn:
    chooser = target.model.new_chooser(Decoding(sampling=sampling), len(prompt_ids))
    greedy = target.model.new_chooser(Decoding(), len(prompt_ids))
    sequence, answer, likeliest = target.model.new_sequence(), list[int](), list[int]()
    sequence.extend(prompt_ids)
    while len(answer) < NEW_TOKENS:
        logits = run_alone(target.model, sequence, 1)
        choice = chooser.choose(logits, 0, sequence.ids, len(sequence.ids))
        likeliest.append(greedy.choose(logits, 0, sequence.ids, len(sequence.ids)).id)
        chooser.advance(choice.id)
        sequence.extend((choice.id,))
        answer.append(choice.id)
        if choice.id in target.model.description.roles.eos_ids:
            break
    return Drawn(sampling, answer, likeliest)


def guess(
    target: Loaded,
    draft: Loaded,
    prompt: Prompt,
    answer: Sequence[int],
    sampling: Sampling,
    truth: Sequence[int] | None = None,
) -> Counts:
    """Rounds of propose and commit against an answer that is known. With the `truth` at each place
    of it, each round examines one candidate and commits one token of the answer."""
    conversion = open_conversion(target.side, draft.side, target.side.encode(prompt))
    ids = tuple(conversion.draft_ids)
    opening = OpenCommand(ids, len(ids), sampling, PrefixReuse(), priority=0)
    drafter = CausalDrafter(draft.model, PrefixCache(0), opening)
    run_step(draft.model, drafter.open())
    conversion.commit(answer[:1])
    at, examined, accepted, rounds = 1, 0, 0, 0
    while at < len(answer):
        update = conversion.sync()
        command = ProposeCommand(
            keep=update.keep,
            kept=ContextVersion.of(conversion.draft_ids, update.keep),
            append_ids=update.append,
            max_tokens=DRAFT_TOKENS if truth is None else FIRST_TOKENS,
            min_probability=0.0,
            position=conversion.position,
        )
        candidates = conversion.propose(drafted(draft.model, drafter, command)).candidate_ids
        rest = answer[at:] if truth is None else truth[at : at + 1]
        right = common_prefix(candidates, rest)
        examined += min(right + 1, len(candidates), len(rest))
        accepted += right
        rounds += 1
        step = right + 1 if truth is None else 1
        conversion.commit(answer[at : at + step])
        at += step
    return Counts(examined, accepted, rounds)


def drafted(model: LanguageModel, drafter: CausalDrafter, command: ProposeCommand) -> list[int]:
    tokens = Drafting(lambda: False)
    drafter.begin(command)
    run_step(model, drafter.draft(command, tokens))
    return [token.id for token in tokens.new()]


def dice(sampling: Sampling, kind: Dice) -> Sampling:
    match kind:
        case Dice.SHARED:
            return sampling
        case Dice.OWN:
            return replace(sampling, seed=sampling.seed + 1_000_003)
        case Dice.GREEDY:
            return Sampling()


def share(counts: Sequence[Counts]) -> float:
    return sum(c.accepted for c in counts) / max(1, sum(c.examined for c in counts))


def standard_error(counts: Sequence[Counts], others: Sequence[Counts]) -> float:
    """Of the difference of two shares over the same answers, by leaving one out (jackknife)."""
    n = len(counts)
    parts = [
        share([*counts[:i], *counts[i + 1 :]]) - share([*others[:i], *others[i + 1 :]])
        for i in range(n)
    ]
    return ((n - 1) ** 2 / n * statistics.variance(parts)) ** 0.5 if n > 1 else float("nan")


def run(target: Loaded, draft: Loaded, prompts: Sequence[Prompt], temperature: float) -> None:
    found: dict[Dice, list[Counts]] = {kind: [] for kind in Dice}
    drawn = list[Drawn]()
    for number, prompt in enumerate(prompts):
        sampling = Sampling(temperature=temperature, seed=SEED + number)
        drawn.append(draw_answer(target, target.side.encode(prompt).ids, sampling))
        for kind in Dice:
            guessed = guess(target, draft, prompt, drawn[-1].ids, dice(sampling, kind))
            found[kind].append(guessed)
    names = f"{target.name} + {draft.name}, temperature {temperature}"
    for kind in Dice:
        counts = found[kind]
        examined, rounds = sum(c.examined for c in counts), sum(c.rounds for c in counts)
        tokens = rounds + sum(c.accepted for c in counts)
        behind = share(found[Dice.SHARED]) - share(counts)
        spread = standard_error(found[Dice.SHARED], counts)
        compared = "" if kind is Dice.SHARED else f"; shared is {behind:+.3f} ± {spread:.3f}"
        print(
            f"{names}: {kind.value:12} accepted {share(counts):.3f} "
            f"of {examined} examined, {tokens / max(1, rounds):.2f} tokens a round{compared}",
            flush=True,
        )
    first = first_candidates(target, draft, prompts, drawn)
    print(f"{names}: first candidates, {first}", flush=True)


def first_candidates(
    target: Loaded,
    draft: Loaded,
    prompts: Sequence[Prompt],
    drawn: Sequence[Drawn],
) -> str:
    """What is the text's and what is the noise's, of the accepted share."""
    rounds, greedy, along, noisy = list[Counts](), list[Counts](), list[Counts](), list[Counts]()
    for prompt, answer in zip(prompts, drawn, strict=True):
        own = draw_answer(target, target.side.encode(prompt).ids, Sampling()).ids
        rounds.append(guess(target, draft, prompt, own, Sampling()))
        greedy.append(guess(target, draft, prompt, own, Sampling(), own))
        along.append(guess(target, draft, prompt, answer.ids, Sampling(), answer.likeliest))
        noisy.append(guess(target, draft, prompt, answer.ids, answer.sampling, answer.ids))
    return (
        f"greedy text, both greedy: {share(greedy):.3f}; drawn text, both greedy: "
        f"{share(along):.3f} ({share(along) / share(greedy):.2f}); drawn text, shared noise: "
        f"{share(noisy):.3f} ({share(noisy) / share(along):.2f} ± "
        f"{standard_error(noisy, along) / share(along):.2f}); whole rounds of the greedy text: "
        f"{share(rounds):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--prompts", type=Path, help='one {"chat", "raw"} a line; built in if absent'
    )
    parser.add_argument("--limit", type=int, default=40, help="most prompts of a direction")
    parser.add_argument("--temperatures", type=float, nargs="+", default=TEMPERATURES)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    flags = parser.parse_args()
    prompts = read_prompts(flags.prompts) if flags.prompts else PROMPTS
    loaded = [
        load(name, flags.dtype) for name in (catalogue.DEFAULT_TARGET, catalogue.DEFAULT_DRAFT)
    ]
    for target, draft in (loaded, loaded[::-1]):
        for temperature in flags.temperatures:
            run(target, draft, prompts[: flags.limit], temperature)


if __name__ == "__main__":
    main()
