"""What a user names, found or refused with the remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.models import tiny_packages
from tests.models.tiny_weights import write_model
from uag_common.errors import ModelNotFoundError
from uag_common.models import catalogue, conversion, store
from uag_common.models.errors import CorruptModelError, NoWeightsError, OfflineError
from uag_common.models.source import check_directory, resolve

COMMIT = "a" * 40


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and no network."""
    monkeypatch.setenv("UAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UAG_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "cache"


def hub_model(root: Path, revision: str = "main") -> Path:
    """As the hub's own cache lays it out."""
    repository = root / "hub" / "models--org--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / revision).write_text(COMMIT)
    return write_model(repository / "snapshots" / COMMIT)


def test_a_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve(str(write_model(tmp_path / "model"))) == tmp_path / "model"


def test_a_catalogue_name_comes_from_the_store(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "MODELS", (tiny_packages.build(tmp_path / "index"),))
    monkeypatch.setattr(store.ModelStore, "fetch", lambda *_: write_model(cache / "models/tiny"))
    assert resolve("tiny") == cache / "models" / "tiny"


def test_a_hub_id_in_the_hubs_own_cache(tmp_path: Path) -> None:
    directory = hub_model(tmp_path)
    assert resolve("org/name") == directory.resolve()


def test_a_revision(tmp_path: Path) -> None:
    hub_model(tmp_path, "v1.0")
    assert resolve("org/name@v1.0").name == COMMIT
    with pytest.raises(OfflineError, match="org/name@main is not in the hub's cache"):
        resolve("org/name")


def test_a_hub_model_with_code_for_weights(tmp_path: Path) -> None:
    (hub_model(tmp_path) / "model.safetensors").unlink()
    with pytest.raises(NoWeightsError, match="files that can run code"):
        resolve("org/name")


@pytest.mark.parametrize("spec", ["nonsense", "a/b/c", "missing.gguf", "org/missing.gguf", ""])
def test_anything_else_lists_the_possibilities(spec: str) -> None:
    with pytest.raises(ModelNotFoundError, match=r"a directory, a \.gguf file, or a hub id"):
        resolve(spec)


def test_a_gguf_file_is_converted_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "CONVERTER", "tests.models.fake_converter")
    (tmp_path / "mine.gguf").write_bytes(b"fine: mine")
    with pytest.raises(
        CorruptModelError, match=r"model\.safetensors"
    ):  # The fake's are no weights.
        resolve(str(tmp_path / "mine.gguf"))
    assert [path.name[:5] for path in (cache / "models").iterdir()] == ["gguf-"]


@pytest.mark.parametrize(
    ("missing", "error", "remedy"),
    [
        ("config.json", ModelNotFoundError, "save_pretrained"),
        ("model.safetensors", NoWeightsError, "save_pretrained"),
        ("tokenizer.json", ModelNotFoundError, "AutoTokenizer"),
    ],
)
def test_a_missing_file_is_named(
    tmp_path: Path, missing: str, error: type[Exception], remedy: str
) -> None:
    (write_model(tmp_path) / missing).unlink()
    with pytest.raises(error, match=f"{missing}.*{remedy}"):
        check_directory(tmp_path)


def test_nothing_here_needs_torch() -> None:
    code = (
        "import sys, uag_common.models.source, uag_common.models.hub, uag_common.models.memory, "
        "uag_common.models.progress; print(*{'torch', 'transformers'} & sys.modules.keys())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert answer.stdout.strip() == b""
