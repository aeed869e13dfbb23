"""A model drafter of one vocabulary, whose sessions say what a test lets them say."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.draft_context import DraftContext
from orchestrator.model_drafter import ModelDrafter
from orchestrator.observation import Observation
from orchestrator.running_draft import RunningDraft
from orchestrator.sessions import DraftCommand, Drafted, ExchangeTime
from tests.conversion import small_tokenizers as small
from tests.unseen import unseen_observation
from uag_common.batching.timing import StepTime
from uag_common.errors import UagError

NO_TIME = ExchangeTime(0.0, StepTime())
END, TURN = 256, 257
ONE = Vocabulary.build(
    small.byte_level(
        [], [small.added(END, "<end>", special=True), small.added(TURN, "<turn>", special=True)]
    ),
    Roles(eos=frozenset([END]), primary_eos=END, turn_start=TURN),
)
PROMPT = (1, 2, 3)


class HeldSession:
    """Answers `propose` with 10, 11 and so on; `say` lets a running draft go on."""

    def __init__(self, lost: UagError | None = None) -> None:
        self.opened: tuple[int, ...] = ()
        self.commands: list[DraftCommand] = []
        self.drafts: list[RunningDraft] = []
        self.asked: list[DraftCommand] = []
        self.closed = False
        self._lost = lost

    async def open(self, context_ids: Sequence[int], answer_start: int) -> ExchangeTime:  # noqa: ARG002
        self.opened = tuple(context_ids)
        return NO_TIME

    async def propose(self, command: DraftCommand) -> Drafted:
        self.asked.append(command)
        if self._lost is not None:
            raise self._lost
        passes = command.max_tokens
        time = ExchangeTime(0.0, StepTime(forward_seconds=1e-6 * passes, passes=passes))
        return Drafted(tuple(range(10, 10 + passes)), time, (0.9,) * passes)

    def run(self, command: DraftCommand) -> RunningDraft:
        self.commands.append(command)
        self.drafts.append(RunningDraft())
        return self.drafts[-1]

    def close(self) -> None:
        self.closed = True

    def say(self, *ids: int) -> None:
        self.drafts[-1].add(ids, [0.5] * len(ids))


def new_model(
    *,
    wait: bool = False,
    context_length: int = 200,
    lost: UagError | None = None,
    observation: Observation | None = None,
) -> tuple[ModelDrafter, list[HeldSession]]:
    """A drafter that is not started yet, and the sessions that it will open."""
    sessions: list[HeldSession] = []

    def open_session() -> HeldSession:
        sessions.append(HeldSession(lost))
        return sessions[-1]

    conversion = SameVocabulary(ONE, ONE, prompt_ids=PROMPT)
    conversion.sync()
    context = DraftContext(conversion, ONE, context_length, ())
    seen = observation or unseen_observation()
    return ModelDrafter(context, open_session, seen, wait=wait), sessions
