"""What can be said of a draft before anything is run: tokens of labels, counts of prompts, faults. Tokenizer only."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lanes.decisions.binding import Branch, put
from lanes.decisions.inquiry import Inquiry, Manner
from lanes.decisions.labels import bind
from lanes.decisions.questions import checked_questions, shown
from lanes.errors import InvalidRequest
from lanes.inspecting.spellings import judge, refusal, spell
from lanes.inspecting.views import remark_on
from lanes.prompts import Prompt, check_fits, common_length, pieces, read
from lanes_widgets.desk.wishes import Raw, Typed

if TYPE_CHECKING:
    from lanes import Engine

MOST_LABELS = 48
MOST_QUESTIONS = 12
MOST_CODES = 12
_ENDING = 6  # tokens of a prompt's end
_PIECES = 16  # tokens of one label


def found(draft: int, kind: str, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a look at a draft found, under the draft's number; whatever it fails with is its "fault"."""
    nothing: dict[str, Any] = {"fault": "", "tokens": None, "shared": None, "ending": [], "labels": [], "questions": []}
    try:
        return {**nothing, "draft": draft, "kind": kind, "more": 0, **look()}
    except Exception as error:  # it must not end the looks that follow
        return {**nothing, "draft": draft, "kind": kind, "more": 0, "fault": str(error) or type(error).__name__}


def look_raw(engine: "Engine", wish: Raw) -> dict[str, Any]:
    """{"fault", "tokens" of the prompt, "ending", "labels", "more"}, in the words in which `lanes` refuses.

    A fault of the labels together is in "fault"; that of one label stands beside it. Raises InvalidRequest for a prompt
    that cannot be served.
    """
    context, texts = engine.info.context, list(wish.labels)
    whole = engine.use_tokenizer(lambda it: read(it, wish.text))
    check_fits(len(whole.ids), 0, context)
    labels = _labels(engine, whole, texts[:MOST_LABELS])
    fault = engine.use_tokenizer(lambda it: refusal(it, whole, texts, context))
    return {
        "fault": "" if any(one["fault"] == fault for one in labels) else fault,
        "tokens": len(whole.ids),
        "ending": engine.use_tokenizer(lambda it: _pairs(it, whole.ids[-_ENDING:])),
        "labels": labels,
        "more": len(texts) - len(labels),
    }


def look_typed(engine: "Engine", wish: Typed) -> dict[str, Any]:
    """{"shared" tokens that are filled once, "questions", "more"}: each with its tokens and what would be read.

    A question's fault stands beside it. Raises InvalidRequest where they cannot be asked at all.
    """
    manner = Manner.read(wish.method, wish.orders, wish.abstain)
    state = shown(wish.state, "the state")
    inquiries = {name: Inquiry(one, manner) for name, one in checked_questions(dict(wish.questions)).items()}
    questions: list[dict[str, Any]] = []
    prompts: list[Prompt] = []
    for name, inquiry in list(inquiries.items())[:MOST_QUESTIONS]:
        try:
            branch = _put(engine, inquiry, state)
        except InvalidRequest as error:
            questions.append({"name": name, "fault": str(error), "tokens": None, "labels": [], "more": 0})
            continue
        prompts.append(branch.prompt)
        questions.append({"name": name, "fault": "", "tokens": len(branch.prompt.ids), **_read_after(engine, branch)})
    shared = common_length(prompts) if len(prompts) > 1 else None
    return {"shared": shared, "questions": questions, "more": len(inquiries) - len(questions)}


def label_marks(engine: "Engine", wish: Raw) -> tuple[str, dict[int, str]]:
    """The prompt as the model reads it, and what its labels' first tokens are: a "label", or what "begins" one."""

    def marks(tokenizer: Any) -> tuple[str, dict[int, str]]:
        whole = read(tokenizer, wish.text)
        bound = bind(tokenizer, whole, list(wish.labels))
        singles = {tokens[0]: "label" for tokens in bound.tokens if len(tokens) == 1}
        return whole.text, {tokens[0]: "begins" for tokens in bound.tokens} | singles

    return engine.use_tokenizer(marks)


def _labels(engine: "Engine", whole: Prompt, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The tokenizer is held for one label at a time."""
    spelled = {text: engine.use_tokenizer(lambda it, text=text: spell(it, whole, text)) for text in texts}
    found: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        verdict = engine.use_tokenizer(lambda it, at=index: judge(it, whole, texts, spelled, at))
        own = spelled[text]
        found.append(
            {
                "text": text.encode(errors="replace").decode(),  # half a character cannot be sent
                "pieces": [list(pair) for pair in zip(own.tokens, own.pieces, strict=True)][:_PIECES],
                "count": len(own.tokens),
                "replaces": list(own.replaces),
                "problem": verdict.problem,
                "fault": verdict.fault,
                "note": "" if verdict.fault else remark_on(text, verdict),
            }
        )
    return found


def _put(engine: "Engine", inquiry: Inquiry, state: str) -> Branch:
    order, context = inquiry.next_orders()[0], engine.info.context
    return engine.use_tokenizer(lambda it: put(it, inquiry, state, order, context))


def _read_after(engine: "Engine", branch: Branch) -> dict[str, Any]:
    """The codes or labels that would be read, with their tokens."""
    some = list(zip(branch.labels.texts, branch.labels.tokens, strict=True))[:MOST_CODES]
    labels = [
        {"text": text, "pieces": engine.use_tokenizer(lambda it, ids=ids: _pairs(it, ids[:_PIECES])), "count": len(ids)}
        for text, ids in some
    ]
    return {"labels": labels, "more": len(branch.labels.texts) - len(some)}


def _pairs(tokenizer: Any, ids: Iterable[int]) -> list[list[Any]]:
    ids = list(ids)
    return [list(pair) for pair in zip(ids, pieces(tokenizer, ids), strict=True)]
