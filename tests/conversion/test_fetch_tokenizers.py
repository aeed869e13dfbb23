"""The script for clones without the shared folder fetches what that folder has."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conversion.vocabularies import tokenizers_directory
from tests.fetch_tokenizers import SOURCES, fetch_all


def test_what_it_writes_is_what_the_tests_read(real_tokenizers: None, tmp_path: Path) -> None:
    del real_tokenizers
    names = {source.repository: name for name, source in SOURCES.items()}
    fetch_all(tmp_path, lambda repo, file: str(tokenizers_directory() / names[repo] / file))
    written = json.loads((tmp_path / "manifest.json").read_text())["tokenizers"]
    known = json.loads((tokenizers_directory() / "manifest.json").read_text())["tokenizers"]
    assert written.keys() == known.keys()
    for name, entry in written.items():
        roles = known[name]["roles"]
        extra = roles.get("extra_eos", [])
        assert entry["roles"]["extra_eos"] == (extra if isinstance(extra, list) else [extra])
        assert {role: roles[role] for role in entry["roles"] if role != "extra_eos"} == {
            role: token for role, token in entry["roles"].items() if role != "extra_eos"
        }
        assert (tmp_path / name / "tokenizer.json").is_file()
