"""`POST /v1/chat/completions` and `POST /v1/completions`, for clients of OpenAI."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lanes.serving.context import context
from lanes.serving.generate import asked
from lanes.serving.generate.forms import CHAT, COMPLETION
from lanes.serving.generate.replying import reply
from lanes.serving.models import check_model
from lanes.serving.openapi import operation
from lanes.serving.reading import read
from lanes.serving.wire.chat import ChatCompletion, ChatRequest
from lanes.serving.wire.completions import Completion, CompletionRequest


@operation("Go on with a chat", body=ChatRequest, answer=ChatCompletion, events=True, errors=(404,))
async def chat(request: Request) -> Response:
    """One reply to a list of messages."""
    body = await read(request, ChatRequest)
    info = context(request).engine.info
    check_model(body.model, info.name)
    return await reply(request, asked.chat(body, info.context), CHAT)


@operation("Go on with a text", body=CompletionRequest, answer=Completion, events=True, errors=(404,))
async def completions(request: Request) -> Response:
    """More of a text."""
    body = await read(request, CompletionRequest)
    check_model(body.model, context(request).engine.info.name)
    return await reply(request, asked.completion(body), COMPLETION)


ROUTES = [
    Route("/v1/chat/completions", chat, methods=["POST"]),
    Route("/v1/completions", completions, methods=["POST"]),
]
