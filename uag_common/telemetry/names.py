"""The names of spans: those of commands are the same at both ends."""

from __future__ import annotations

PREPARE = "prepare"
"""The prompt is encoded, for both sides, and a constraint is tried."""
PREFILL = "prefill"
ROUND = "round"
CONVERT = "convert"
DRAFT_OPEN = "draft.open"
DRAFT_WAIT = "draft.wait"
"""A round waits for the session of the draft to be open."""
DRAFT_PROPOSE = "draft.propose"
VERIFY_OPEN = "verify.open"
VERIFY = "verify"
INVALID_COMMAND = "invalid command"
QUEUE = "queue"
FORWARD = "forward"
ROLLBACK = "rollback"
