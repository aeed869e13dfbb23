"""One round of a conversion on two real tokenizers, as a table: computed, not told from memory."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.conversion.conversion import DraftUpdate
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion.vocabularies import vocabulary
from tests.docs.pages import table

TARGET, DRAFT = "llama31", "qwen2"
COMMITTED = "The Eiffel Tower is"
DRAFTED = " 330 metres tall"
TARGETS_OWN = " meters"
ACCEPTED = 2
"""The target writes it the American way: the third candidate is examined and rejected."""


def example() -> str:
    """Proposal, verification and the next command to the draft."""
    target, draft = vocabulary(TARGET), vocabulary(DRAFT)
    conversion = Translation(target, draft, prompt_ids=_ids(target, COMMITTED))
    first = conversion.sync()
    drafted = _ids(draft, DRAFTED)
    candidates = conversion.propose(drafted).candidate_ids
    committed = [*candidates[:ACCEPTED], *_ids(target, TARGETS_OWN)]
    conversion.commit(committed)
    second = conversion.sync()
    rows = [
        ("committed so far", "target", _tokens(target, _ids(target, COMMITTED))),
        ("`keep` " + str(first.keep) + ", `append`", "draft", _tokens(draft, first.append)),
        ("drafted", "draft", _tokens(draft, drafted)),
        ("candidates", "target", _tokens(target, candidates)),
        ("committed by this round", "target", _tokens(target, committed)),
        (_kept(second), "draft", _tokens(draft, second.append)),
    ]
    return f"{table(('step', 'vocabulary', 'tokens'), rows)}\n{_figures(candidates, first, second)}"


def _figures(candidates: Sequence[int], first: DraftUpdate, second: DraftUpdate) -> str:
    kept = second.keep - first.length
    return (
        f"{len(candidates)} candidates are proposed, {ACCEPTED + 1} examined, {ACCEPTED} accepted. "
        f"The draft keeps the {first.length} tokens that it had and the first {kept} that it "
        f"drafted, and rolls {second.rollback} back.\n"
    )


def _kept(update: DraftUpdate) -> str:
    return f"next: `keep` {update.keep}, `append`"


def _ids(known: Vocabulary, text: str) -> list[int]:
    return spans(known, text.encode()).ids


def _tokens(known: Vocabulary, ids: Sequence[int]) -> str:
    """A space is shown, since it is a part of a token."""
    texts = (piece.decode().replace(" ", "␣") for piece in known.spell([*ids]))
    return " ".join(f"`{text}`" for text in texts)
