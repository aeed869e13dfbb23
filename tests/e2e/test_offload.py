"""A target that lies partly on disk answers as one in memory does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.services import RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb

REQUEST = pb.GenerateRequest(
    text="The quick brown fox",
    max_new_tokens=40,
    n=2,
    sampling=pb.SamplingOptions(temperature=0.9, seed=3),
)


@pytest.mark.skipif(torch.cuda.is_available(), reason="weights lie on accelerators")
def test_weights_on_disk_answer_as_those_in_memory(
    services: RunningServices, llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    size = (llama / "model.safetensors").stat().st_size
    offloaded = {"device": "offload", "max_memory": f"cpu={0.7 * size / 1e6}MB"}
    with running_services(
        llama, None, draft_address=services.draft, verify_settings=offloaded
    ) as slow:
        assert "fetched in each pass" in "".join(slow.children["verify"]._last_lines)
        assert list(tmp_path.glob("uag-weights-*"))
        assert slow.answers(REQUEST).ids == services.answers(REQUEST).ids
    assert not list(tmp_path.iterdir())
