"""What can go wrong with an engine.

EngineError                carries `code`, `retryable`
├── EngineUnavailable      nothing answers, or not in time; the job may be tried again later
├── ImageMissing           the image is not there; the message names the command that builds it
├── LimitNotEnforceable    an explicitly asked-for limit that this engine can't hold
├── SandboxNotFound        no such container (any more)
├── RuntimeUnknown         the engine does not know the runtime that sandboxes are to have
└── LaunchFailed           the engine refused to create or start it
"""

from __future__ import annotations


class EngineError(Exception):
    """An engine did not do what was asked."""

    code: str = "engine_error"
    retryable: bool = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class EngineUnavailable(EngineError):
    """The engine does not answer."""

    code = "engine_unavailable"
    retryable = True


class ImageMissing(EngineError):
    """The image is not on this engine."""

    code = "image_missing"


class LimitNotEnforceable(EngineError):
    """An explicit limit that this engine can't hold."""

    code = "limit_not_enforceable"


class SandboxNotFound(EngineError):
    """There is no such sandbox."""

    code = "sandbox_not_found"


class RuntimeUnknown(EngineError):
    """The engine does not know the runtime that was asked for."""

    code = "runtime_unknown"


class LaunchFailed(EngineError):
    """The engine refused to create or start the sandbox."""

    code = "launch_failed"
