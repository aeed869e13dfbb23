"""Between the messages of `uag.model.v1` and the plain values of `uag_common.model`."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator

from uag.model.v1 import model_pb2 as pb
from uag_common.batching.timing import StepTime
from uag_common.context import ContextVersion
from uag_common.model import ModelDescription, Rollback, TokenizerFile, TokenRoles
from uag_common.rpc.channel import CHUNK_BYTES

_ROLLBACK_TO_PB = {
    Rollback.TRUNCATE: pb.ROLLBACK_TRUNCATE,
    Rollback.REPLAY: pb.ROLLBACK_REPLAY,
}
_ROLLBACK_FROM_PB = {message: value for value, message in _ROLLBACK_TO_PB.items()}


def encode_description(model: ModelDescription) -> pb.ModelDescription:
    roles = pb.TokenRoles(
        eos_ids=model.roles.eos_ids, bos_id=model.roles.bos_id, pad_id=model.roles.pad_id
    )
    return pb.ModelDescription(
        model_id=model.model_id,
        revision=model.revision,
        architecture=model.architecture,
        tokenizer_sha256=model.tokenizer_sha256,
        vocabulary_size=model.vocabulary_size,
        context_length=model.context_length,
        dtype=model.dtype,
        device=model.device,
        rollback=_ROLLBACK_TO_PB[model.rollback],
        parameter_count=model.parameter_count,
        weight_bytes=model.weight_bytes,
        roles=roles,
    )


def decode_description(message: pb.ModelDescription) -> ModelDescription:
    roles = TokenRoles(
        eos_ids=tuple(message.roles.eos_ids),
        bos_id=message.roles.bos_id if message.roles.HasField("bos_id") else None,
        pad_id=message.roles.pad_id if message.roles.HasField("pad_id") else None,
    )
    return ModelDescription(
        model_id=message.model_id,
        revision=message.revision,
        architecture=message.architecture,
        tokenizer_sha256=message.tokenizer_sha256,
        vocabulary_size=message.vocabulary_size,
        context_length=message.context_length,
        dtype=message.dtype,
        device=message.device,
        # A newer service may know a way that this client does not: the careful one stands for it.
        rollback=_ROLLBACK_FROM_PB.get(message.rollback, Rollback.REPLAY),
        parameter_count=message.parameter_count,
        weight_bytes=message.weight_bytes,
        roles=roles,
    )


def tokenizer_chunks(files: tuple[TokenizerFile, ...]) -> Iterator[pb.GetTokenizerResponse]:
    for file in files:
        for start in range(0, max(1, len(file.content)), CHUNK_BYTES):
            chunk = file.content[start : start + CHUNK_BYTES]
            yield pb.GetTokenizerResponse(name=file.name, chunk=chunk)


async def collect_tokenizer(
    chunks: AsyncIterable[pb.GetTokenizerResponse],
) -> tuple[TokenizerFile, ...]:
    contents: dict[str, bytearray] = {}
    async for message in chunks:
        contents.setdefault(message.name, bytearray()).extend(message.chunk)
    return tuple(TokenizerFile(name, bytes(content)) for name, content in contents.items())


def encode_version(version: ContextVersion) -> pb.ContextVersion:
    return pb.ContextVersion(length=version.length, hash=version.hash)


def decode_version(message: pb.ContextVersion) -> ContextVersion:
    return ContextVersion(message.length, message.hash)


def encode_time(time: StepTime) -> pb.StepTime:
    return pb.StepTime(
        queue_seconds=time.queue_seconds,
        forward_seconds=time.forward_seconds,
        passes=time.passes,
        sessions=time.sessions,
        tokens=time.tokens,
    )


def decode_time(message: pb.StepTime) -> StepTime:
    return StepTime(
        message.queue_seconds,
        message.forward_seconds,
        message.passes,
        message.sessions,
        message.tokens,
    )
