"""The pairs are those that the overlays run."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architectures.catalogue import ARCHITECTURES
from tests.architectures.pairs import ARTICLE, MORE
from tests.docs.pages import ROOT

COMPONENTS = ROOT / "deploy" / "components"
OVERLAYS = ROOT / "deploy" / "overlays"
COMPONENT = re.compile(r"components/((?:targets|drafts)/[\w.-]+)")
MODEL = re.compile(r"UAG_(?:VERIFY|DRAFT)_MODEL=([\w./-]+)@")


def test_the_pairs_of_the_article_are_those_of_the_overlays() -> None:
    overlaid = [models(overlay) for overlay in OVERLAYS.glob("*-with-*/kustomization.yaml")]
    pairs = [[pair.target.stands_for, pair.draft.stands_for] for pair in ARTICLE]
    assert sorted(pairs) == sorted(overlaid)


def test_each_architecture_is_in_a_pair() -> None:
    paired = {side.name for pair in (*ARTICLE, *MORE) for side in (pair.target, pair.draft)}
    assert paired == {architecture.name for architecture in ARCHITECTURES}


def models(overlay: Path) -> list[str]:
    """The target and the draft that an overlay sets."""
    named = COMPONENT.findall(overlay.read_text(encoding="utf-8"))
    texts = [
        (COMPONENTS / name / "kustomization.yaml").read_text(encoding="utf-8")
        for name in sorted(named, reverse=True)
    ]
    return [model for text in texts for model in MODEL.findall(text)]
