"""The settings of the draft service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uag_common.errors import StartError
from uag_common.model_settings import ModelServiceSettings
from uag_common.settings import setting, variable_name


@dataclass(frozen=True, kw_only=True)
class DraftSettings(ModelServiceSettings):
    """Read from UAG_DRAFT_*."""

    PREFIX: ClassVar[str] = "UAG_DRAFT_"

    listen: str = setting(
        "host:port to listen on; port 0 takes a free one", default="127.0.0.1:50051"
    )
    min_probability: float = setting(
        "a drafted token less probable than this ends a proposal and is left out of it, "
        "where a command does not say otherwise",
        default=0.0,
        minimum=0.0,
        maximum=1.0,
    )
    compile: bool = setting(
        "true compiles the steps by torch.compile, for a start that takes minutes longer and needs "
        "a C++ compiler (docs/operations.md)",
        default=False,
    )

    def __post_init__(self) -> None:
        """Raises StartError."""
        super().__post_init__()
        for name, value, forbidden in (
            ("tensor_parallel", self.tensor_parallel, self.tensor_parallel > 1),
            ("device", self.device, self.device == "offload"),
        ):
            if self.compile and forbidden:
                raise StartError(
                    f"{variable_name(type(self), 'compile')}=true cannot be had together with "
                    f"{variable_name(type(self), name)}={value}"
                )
