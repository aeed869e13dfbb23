"""The numbers of an overlay are enough for its target, and the sums beside them are right."""

from __future__ import annotations

import pytest

from tests.deploy.model_facts import CARD_BYTES, GIB, TARGETS, USABLE, Target
from tests.deploy.rendering import DEPLOY, Rendered, Workload, bytes_of

PAIRS = {
    ("codellama/CodeLlama-13b-Instruct-hf", "bigcode/tiny_starcoder_py"),
    ("mistralai/Mixtral-8x22B-Instruct-v0.1", "double7/vicuna-68m"),
    ("google/gemma-2-9b", "double7/vicuna-68m"),
    ("mistralai/Mixtral-8x22B-Instruct-v0.1", "Qwen/Qwen2-0.5B-Instruct"),
    ("meta-llama/Llama-3.1-70B", "Qwen/Qwen2-0.5B-Instruct"),
    ("microsoft/Phi-3-medium-128k-instruct", "Qwen/Qwen2-0.5B-Instruct"),
}
OVERLAYS = [
    folder.name for folder in sorted((DEPLOY / "overlays").iterdir()) if folder.name != "cpu-demo"
]


@pytest.fixture(params=OVERLAYS)
def pair(renderings: dict[str, Rendered], request: pytest.FixtureRequest) -> Rendered:
    return renderings[request.param]


def _model(rendered: Rendered, component: str) -> str:
    variables = rendered.environment(rendered.workload(component).main)
    return variables[f"UAG_{component.upper()}_MODEL"].partition("@")[0]


def _plan(rendered: Rendered) -> tuple[Target, int, int]:
    """The target, how many sessions it may have, and the megabytes of kept caches."""
    variables = rendered.environment(rendered.workload("verify").main)
    assert variables["UAG_VERIFY_DTYPE"] == "bfloat16"
    sessions = int(variables["UAG_VERIFY_MAX_SESSIONS"])
    kept = int(variables["UAG_VERIFY_PREFIX_CACHE_MB"])
    return TARGETS[_model(rendered, "verify")], sessions, kept


def _cards(workload: Workload) -> int:
    return int(workload.main["resources"]["limits"]["nvidia.com/gpu"])


def test_every_pair_has_an_overlay(renderings: dict[str, Rendered]) -> None:
    found = {
        (_model(renderings[name], "verify"), _model(renderings[name], "draft")) for name in OVERLAYS
    }
    assert found == PAIRS


def test_the_gpus_are_enough_and_not_more(pair: Rendered) -> None:
    target, sessions, kept = _plan(pair)
    cards = _cards(pair.workload("verify"))
    assert cards == target.cards(sessions, kept)
    assert target.kv_heads % cards == 0, "tensor parallelism cannot split the heads"
    assert target.tokens <= target.context_length


def test_the_gpus_are_as_large_as_the_sum_takes_them_for(pair: Rendered) -> None:
    node = pair.workload("verify").pod["affinity"]["nodeAffinity"]
    (term,) = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (rule,) = term["matchExpressions"]
    assert (rule["key"], rule["operator"]) == ("nvidia.com/gpu.memory", "Gt")
    assert int(rule["values"][0]) * 2**20 > 0.97 * CARD_BYTES


def test_memory_and_disk_hold_the_weights(pair: Rendered) -> None:
    target, _, _ = _plan(pair)
    verify = pair.workload("verify")
    for kind in ("requests", "limits"):
        assert bytes_of(verify.main["resources"][kind]["memory"]) > target.weights + 8 * GIB
    claim = verify.claims["models"]["spec"]["resources"]["requests"]["storage"]
    assert bytes_of(claim) > 1.1 * target.file_bytes


def test_the_target_has_the_time_to_load(pair: Rendered) -> None:
    target, _, _ = _plan(pair)
    probe = pair.workload("verify").main["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= target.loading_seconds


def test_the_orchestrator_is_not_given_up_while_the_target_loads(pair: Rendered) -> None:
    target, _, _ = _plan(pair)
    fetching = target.file_bytes / 100e6
    deadline = pair.workload("orchestrator").manifest["spec"]["progressDeadlineSeconds"]
    assert deadline > fetching + target.loading_seconds


def test_the_sum_beside_the_number_is_right(pair: Rendered) -> None:
    target, sessions, kept = _plan(pair)
    text = _component_text(_model(pair, "verify"))
    for line in _sum(target, sessions, kept):
        assert line in text, f"{pair.name}: no line\n{line}"


def test_what_needs_several_cards_is_split_over_them(pair: Rendered) -> None:
    """Each process has a card, and what cannot be split fits on it beside its part."""
    verify = pair.workload("verify")
    variables, cards = pair.environment(verify.main), _cards(verify)
    assert int(variables.get("UAG_VERIFY_TENSOR_PARALLEL", "1")) == cards
    assert variables["UAG_VERIFY_DEVICE"] == ("cuda" if cards > 1 else "cuda:0")
    target, sessions, kept = _plan(pair)
    assert target.on_each(cards, sessions, kept) < USABLE * CARD_BYTES


def test_each_process_has_a_core(pair: Rendered) -> None:
    verify = pair.workload("verify")
    assert int(verify.main["resources"]["requests"]["cpu"]) > _cards(verify)


def _component_text(model: str) -> str:
    (text,) = (
        text
        for path in (DEPLOY / "components" / "targets").glob("*/kustomization.yaml")
        if f"={model}@" in (text := path.read_text())
    )
    return text


def _sum(target: Target, sessions: int, kept: int) -> tuple[str, ...]:
    """The lines as they stand in the component of the target."""
    return (
        f"for {sessions} sessions of {target.tokens} tokens:",
        f"{target.parameters} parameters x 2 bytes = {target.weights / GIB:.1f} GiB",
        f"{target.layers} layers x {target.kv_heads} KV heads x {target.head_size} x 2 (keys, "
        f"values) x 2 bytes x {target.tokens} tokens x {sessions} sessions = "
        f"{target.caches(sessions) / GIB:.1f} GiB",
        f"{kept} MB of ended sessions = {kept * 1e6 / GIB:.1f} GiB",
        f"{target.tokens} tokens of one prompt x (4 x {target.hidden} + 3 x {target.intermediate})"
        f" x 2 bytes = {target.activations / GIB:.1f} GiB",
        f"together     {target.total(sessions, kept) / GIB:.1f} GiB; a card of 80 GiB gives 72 GiB",
        f"{target.cards(sessions, kept)} x A100 80GB",
    )
