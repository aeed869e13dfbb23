"""A client of the orchestrator for applications: what goes in are keywords, what comes back are
plain values and typed errors.

    with Client("localhost:50050") as client:
        for delta in client.generate("The capital of France is", max_new_tokens=40):
            print(delta.text, end="")

Importing it loads neither a model nor a tokenizer: it knows gRPC and the contract, and nothing of
the orchestrator itself.
"""

from orchestrator.client.answer import (
    Answer,
    Choice,
    Degraded,
    Delta,
    Finished,
    FinishReason,
    PromptToken,
    SpeculationFigures,
    Started,
    TimeFigures,
    Token,
    TokenSource,
    TopToken,
    Usage,
)
from orchestrator.client.async_client import AsyncAnswerStream, AsyncClient
from orchestrator.client.client import AnswerStream, Client, ResponseStream
from orchestrator.client.connection import InsecureKeyError, Tls
from orchestrator.client.description import Models, Tokenization
from orchestrator.client.errors import (
    AccessDeniedError,
    CallCancelledError,
    ClientError,
    ClosedError,
    ConnectError,
    DeadlineExceededError,
    InternalError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PromptTooLongError,
    UnavailableError,
    UnimplementedError,
)
from orchestrator.client.options import DraftFailurePolicy, Options, SpeculationMode
from orchestrator.client.prompt import Message, Prompt, Role, TokenIds, chat
from orchestrator.client.transcript import NotYetError
from uag_common.addresses import BadAddressError
from uag_common.model import ModelDescription

__all__ = [
    "AccessDeniedError",
    "Answer",
    "AnswerStream",
    "AsyncAnswerStream",
    "AsyncClient",
    "BadAddressError",
    "CallCancelledError",
    "Choice",
    "Client",
    "ClientError",
    "ClosedError",
    "ConnectError",
    "DeadlineExceededError",
    "Degraded",
    "Delta",
    "DraftFailurePolicy",
    "FinishReason",
    "Finished",
    "InsecureKeyError",
    "InternalError",
    "InvalidRequestError",
    "Message",
    "ModelDescription",
    "Models",
    "NotFoundError",
    "NotYetError",
    "Options",
    "OverloadedError",
    "Prompt",
    "PromptToken",
    "PromptTooLongError",
    "ResponseStream",
    "Role",
    "SpeculationFigures",
    "SpeculationMode",
    "Started",
    "TimeFigures",
    "Tls",
    "Token",
    "TokenIds",
    "TokenSource",
    "Tokenization",
    "TopToken",
    "UnavailableError",
    "UnimplementedError",
    "Usage",
    "chat",
]
