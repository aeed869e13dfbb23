"""Weights in the order in which the products of a CPU read them fastest (oneDNN's blocked layouts).

A forward pass of a few tokens waits for weights on their way through memory. Read in the order of a
plain matrix they come at a fraction of what memory gives, and candidates cost more than they need
to. The products are the same: in bfloat16 to the last bit, in float32 but for the order of sums;
one or two rows are rounded as several are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch
from torch import nn
from transformers import PreTrainedModel

from uag_common.errors import first_line
from uag_common.freed_memory import give_back_now

ROWS = 8
"""Tokens of a pass that the order is made for: a token and some candidates."""

# oneDNN keeps a program for each shape that it has met, by default a thousand: a hundred megabytes
# and more once passes have had all lengths. Read when the first of them is made.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")

ENOUGH = 4
"""One or two rows are repeated until they are so many: their own kernels are slower, and round
otherwise."""


class PrepackedLinear(nn.Module):
    """As the `nn.Linear` that it is made of, with a weight of its own."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.bias = linear.bias
        self._prepacked = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), ROWS)

    @property
    def weight(self) -> torch.Tensor:
        """A copy in plain order, for the rare model that does more with it than multiply."""
        plain: torch.Tensor = self._prepacked.to_dense()
        return plain

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        multiply = _opaque if torch.compiler.is_compiling() else _multiply
        return multiply(rows, self._prepacked, self.bias)


def _multiply(
    rows: torch.Tensor, prepacked: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    match rows.shape:
        case (1, 1, _):
            return _product(rows.expand(1, ENOUGH, -1), prepacked, bias)[:, :1]
        case (1, 2, _):
            return _product(torch.cat((rows, rows), 1), prepacked, bias)[:, :2]
        case _:
            return _product(rows, prepacked, bias)


def _product(
    rows: torch.Tensor, prepacked: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
        rows, prepacked, bias, "none", [], ""
    )
    return product


_opaque = torch.library.custom_op("uag::prepacked_linear", _multiply, mutates_args=())
"""What a compiler leaves as it is: it knows no such weights."""


@_opaque.register_fake
def _shape_of_product(
    rows: torch.Tensor,
    prepacked: torch.Tensor,
    bias: torch.Tensor | None,  # noqa: ARG001
) -> torch.Tensor:
    return rows.new_empty(*rows.shape[:-1], prepacked.shape[0])


def prepack(network: PreTrainedModel) -> str:
    """Does so for all weights that it can be done for, one after another, and tells what was done,
    if anything was. A weight that is shared, as with the embedding of the input, stays where it was
    and is there twice then."""
    done = 0
    for parent, name, linear in tuple(_linears(network)):
        if not _is_plain(linear):
            continue
        try:
            setattr(parent, name, PrepackedLinear(linear))
        except (RuntimeError, AttributeError) as error:
            # Of the processor or of the build: what holds for one holds for all.
            return f"the weights stay in plain order: {first_line(error)}"
        done += 1
    if not done:
        return ""
    _leave_files(network)
    give_back_now()
    return f"the weights of {done} layers are in the order of their products"


def _leave_files(network: PreTrainedModel) -> None:
    """What is left is copied: it may lie in a mapped file, and memory would hold all of that beside
    what was made of it."""
    for parameter in network.parameters():
        if parameter.device.type == "cpu":
            parameter.data = parameter.data.clone()


def _linears(network: PreTrainedModel) -> Iterator[tuple[nn.Module, str, nn.Linear]]:
    for parent in network.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Linear:
                yield parent, name, child


def _is_plain(linear: nn.Linear) -> bool:
    """Whether it is a product and nothing else, of numbers that there are such products of."""
    weight = linear.weight
    changed = "forward" in vars(linear) or linear._forward_hooks or linear._forward_pre_hooks
    here = type(weight) is nn.Parameter and weight.device.type == "cpu"
    return not changed and here and weight.dtype in (torch.float32, torch.bfloat16)
