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
from orchestrator.client.client import AnswerStream, Client
from orchestrator.client.connection import Tls
from orchestrator.client.description import Models, Tokenization
from orchestrator.client.errors import (
    AccessDeniedError,
    CallCancelledError,
    ClientError,
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
from orchestrator.client.options import Options
from orchestrator.client.prompt import Message, Prompt, TokenIds, chat
from orchestrator.client.transcript import NotYetError

__all__ = [
    "AccessDeniedError",
    "Answer",
    "AnswerStream",
    "AsyncAnswerStream",
    "AsyncClient",
    "CallCancelledError",
    "Choice",
    "Client",
    "ClientError",
    "ConnectError",
    "DeadlineExceededError",
    "Degraded",
    "Delta",
    "FinishReason",
    "Finished",
    "InternalError",
    "InvalidRequestError",
    "Message",
    "Models",
    "NotFoundError",
    "NotYetError",
    "Options",
    "OverloadedError",
    "Prompt",
    "PromptToken",
    "PromptTooLongError",
    "SpeculationFigures",
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
