"""Whether transformers can split a model over so many processes, told from its configuration."""

from __future__ import annotations

from transformers import PretrainedConfig
from transformers.distributed import DistributedConfig
from transformers.distributed.tensor_parallel import get_kv_heads_per_rank

from uag_common.errors import StartError


def tensor_plan(config: PretrainedConfig, size: int) -> DistributedConfig | None:
    """What `from_pretrained` is to be told; None: nothing, for one process. Raises StartError."""
    if size == 1:
        return None
    text = config.get_text_config(decoder=True)
    if not text.base_model_tp_plan:
        raise StartError(
            f"transformers has no plan to split a {text.model_type} over processes; leave "
            "TENSOR_PARALLEL at 1 (DEVICE=spread puts layers on different accelerators)"
        )
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    if get_kv_heads_per_rank(text.base_model_tp_plan, heads, size) is None:
        right = ", ".join(str(count) for count in range(1, heads + 1) if not heads % count)
        raise StartError(
            f"its {heads} heads of keys and values do not divide by TENSOR_PARALLEL={size}; "
            f"right are {right}"
        )
    return DistributedConfig(tp_size=size)
