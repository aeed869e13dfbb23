"""One session of two vocabularies, step by step."""

from __future__ import annotations

import pytest

from orchestrator.conversion.conversion import DraftUpdate, ProposalStatus, Stop
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion import small_tokenizers as small
from tests.conversion.texts import bytes_of
from tests.conversion.vocabularies import vocabulary

END, START, PLAIN = 300, 301, 302
TOKENS = [
    small.added(END, "<end>", special=True),
    small.added(START, "<turn>", special=True),
    small.added(PLAIN, "<x>", special=True),
]
TARGET = Vocabulary.build(
    small.byte_level([("a", "b"), ("ab", "c")], TOKENS),
    Roles(eos=frozenset([END]), primary_eos=END, turn_start=START),
)
DRAFT = Vocabulary.build(
    small.sentencepiece([("b", "c")]), Roles(eos=frozenset([2]), primary_eos=2, turn_start=1)
)


def target_ids(text: str) -> list[int]:
    return spans(TARGET, text.encode()).ids


def draft_ids(text: str | bytes) -> list[int]:
    return spans(DRAFT, text if isinstance(text, bytes) else text.encode()).ids


def session(committed: str | bytes = "", prefix: tuple[int, ...] = ()) -> Translation:
    translation = Translation(TARGET, DRAFT, draft_prefix=prefix)
    data = committed if isinstance(committed, bytes) else committed.encode()
    translation.commit(spans(TARGET, data).ids)
    translation.sync()
    return translation


def test_the_draft_reads_what_is_committed() -> None:
    translation = Translation(TARGET, DRAFT, draft_prefix=(1, 5))
    translation.commit(target_ids("abc"))
    assert translation.sync() == DraftUpdate(rollback=0, append=tuple(draft_ids("abc")), keep=2)
    assert translation.draft_ids == [1, 5, *draft_ids("abc")]
    assert translation.sync() == DraftUpdate(rollback=0, append=(), keep=4)


def test_accepted_text_stays_and_rejected_text_goes() -> None:
    translation = session("a")
    translation.propose(draft_ids("xyz"))
    translation.commit(target_ids("xq"))
    update = translation.sync()
    assert update == DraftUpdate(rollback=2, append=tuple(draft_ids("q")), keep=2)
    assert update.length == len(translation.draft_ids) == 3


def test_a_rejection_without_news_drops_what_was_proposed() -> None:
    translation = session("a")
    translation.propose(draft_ids("xyz"))
    assert translation.sync() == DraftUpdate(rollback=3, append=(), keep=1)


def test_new_text_may_merge_with_old_tokens() -> None:
    translation = session("ab")
    translation.commit(target_ids("c"))
    assert translation.sync() == DraftUpdate(rollback=1, append=tuple(draft_ids("bc")), keep=1)


def test_candidates_go_on_at_the_seam_or_stand_alone() -> None:
    proposal = session("ab").propose(draft_ids("x"))
    assert proposal.candidate_ids == tuple(target_ids("x"))
    assert proposal.seam_is_token_boundary is True
    crossing = session("ab").propose(draft_ids("cx"))
    assert crossing.candidate_ids == tuple(target_ids("c") + target_ids("x"))
    assert crossing.seam_is_token_boundary is False


def test_an_unfinished_character_is_held_on_both_sides() -> None:
    translation = session("a\u00e9".encode()[:-1])
    assert translation.seen_bytes == 1
    proposal = translation.propose(draft_ids("é!".encode() + b"\xe4\xbd"))
    assert proposal.proposed_bytes == b"\xa9!"
    assert bytes_of(TARGET, proposal.candidate_ids) == b"\xa9!"
    assert (proposal.held_target_bytes, proposal.held_draft_bytes) == (1, 2)
    assert proposal.lost_draft_ids == 2


@pytest.mark.parametrize(
    ("drafted", "status"),
    [(b"x", ProposalStatus.HELD_MISMATCH), (b"\xc3", ProposalStatus.OK), (b"", ProposalStatus.OK)],
)
def test_held_bytes_must_be_repeated(drafted: bytes, status: ProposalStatus) -> None:
    translation = session("a\u00e9".encode()[:-1])
    proposal = translation.propose(draft_ids(drafted))
    assert (proposal.candidate_ids, proposal.status) == ((), status)


def test_the_end_is_proposed_by_role() -> None:
    proposal = session("a").propose([*draft_ids("x"), 2, *draft_ids("y")])
    assert proposal.candidate_ids == (*target_ids("x"), END)
    assert proposal.stop is Stop.EOS
    assert proposal.lost_draft_ids == 1
    assert session("a").propose([2]).candidate_ids == (END,)


def test_no_end_after_an_unfinished_character() -> None:
    proposal = session("a").propose([*draft_ids(b"\xe4\xbd"), 2])
    assert proposal.candidate_ids == ()
    assert proposal.stop is Stop.EOS


@pytest.mark.parametrize(("token_id", "stop"), [(1, Stop.CONTROL), (9999, Stop.UNKNOWN_ID)])
def test_a_proposal_stops_before_what_spells_nothing(token_id: int, stop: Stop) -> None:
    proposal = session("a").propose([*draft_ids("x"), token_id, *draft_ids("y")])
    assert proposal.candidate_ids == tuple(target_ids("x"))
    assert proposal.stop is stop
    assert proposal.lost_draft_ids == 2


def test_a_control_token_parts_the_text_and_is_mapped_by_role() -> None:
    translation = session("b")
    translation.commit([*target_ids("a"), START, *target_ids("bc"), PLAIN, *target_ids("c"), END])
    translation.sync()
    expected = [*draft_ids("ba"), 1, *draft_ids("bc"), *draft_ids("c")]
    assert translation.draft_ids == expected


def test_text_after_a_control_token_does_not_merge_across_it() -> None:
    translation = session("b")
    translation.commit([PLAIN])
    translation.sync()
    translation.commit(target_ids("c"))
    translation.sync()
    assert translation.draft_ids == [*draft_ids("b"), *draft_ids("c")]


def test_bytes_after_a_control_token_do_not_finish_a_character_before_it() -> None:
    translation = Translation(TARGET, DRAFT)
    translation.commit([*spans(TARGET, b"\xf0").ids, PLAIN])
    translation.sync()
    translation.commit(spans(TARGET, b"\x90").ids)
    translation.sync()
    assert translation.draft_ids == [*draft_ids(b"\xf0"), *draft_ids(b"\x90")]


def test_a_late_answer_counts_as_far_as_it_agrees() -> None:
    translation = session("a")
    translation.commit(target_ids("xy"))
    assert translation.propose(draft_ids("xyz")).candidate_ids == tuple(target_ids("z"))
    late = session("a")
    late.commit(target_ids("q"))
    assert late.propose(draft_ids("xyz")).status is ProposalStatus.HELD_MISMATCH


def test_an_answer_from_before_a_control_token_proposes_nothing() -> None:
    translation = session("a")
    translation.commit([PLAIN])
    proposal = translation.propose(draft_ids("x"))
    assert (proposal.candidate_ids, proposal.status) == ((), ProposalStatus.HELD_MISMATCH)


def test_lost_ids_are_counted_over_the_session() -> None:
    translation = session("a")
    translation.propose([1, 1])
    translation.sync()
    translation.propose([9999])
    assert translation.lost_draft_ids == 3


def test_the_space_that_a_tokenizer_adds_to_a_prompt_is_not_read_by_the_draft() -> None:
    prompt = [0, *draft_ids(" ab")]
    skipping = Translation(DRAFT, TARGET, prompt_ids=prompt, skip_leading_space=True)
    skipping.sync()
    assert skipping.draft_ids == target_ids("ab")
    keeping = Translation(DRAFT, TARGET, prompt_ids=prompt)
    keeping.sync()
    assert keeping.draft_ids == target_ids(" ab")


@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize("name", ["llama2", "codellama", "phi3", "mixtral", "gemma2", "qwen2"])
def test_raw_prompts_of_the_real_tokenizers(name: str) -> None:
    target, draft = vocabulary(name), vocabulary("smollm2")
    text = "Hello world, it is"
    typed = f" {text}" if target.prepends_space else text
    prompt = [*spans(target, typed.encode()).ids]
    translation = Translation(
        target, draft, prompt_ids=prompt, skip_leading_space=target.prepends_space
    )
    translation.sync()
    assert translation.draft_ids == spans(draft, text.encode()).ids
    drafted = spans(draft, b" nice").ids
    whole = spans(target, f"{typed} nice".encode()).ids
    assert translation.propose(drafted).candidate_ids == tuple(whole[len(prompt) :])


@pytest.mark.usefixtures("real_tokenizers")
def test_a_lossy_drafter_guesses_words() -> None:
    target, draft = vocabulary("llama31"), vocabulary("distilbert")
    translation = Translation(target, draft)
    translation.commit(spans(target, b"The Quick").ids)
    translation.sync()
    drafted = spans(draft, b"brown fox,").ids
    assert translation.propose(drafted).proposed_bytes == b" brown fox,"
    translation.commit(spans(target, b" Brown cat ").ids)
    assert translation.sync().rollback == 2
    assert translation.propose(spans(draft, b"sat").ids).proposed_bytes == b"sat"
