"""Stands in for the conversion: what it does is the first word of the "GGUF" file."""

from __future__ import annotations

import sys
import time
from pathlib import Path


def main() -> None:
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.mkdir(parents=True)
    (output / "model.safetensors").write_bytes(b"half of the weights")
    print("reading", flush=True)
    match source.read_bytes().split(b":")[0]:
        case b"fail":
            raise ValueError("this file is no good")
        case b"hang":
            time.sleep(60)
    (output / "config.json").write_text("{}")


if __name__ == "__main__":
    main()
