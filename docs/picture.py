"""Make the picture at the top of the README from a real run: `python docs/picture.py`."""

import time
from pathlib import Path

import lanes

PROMPTS = ["The sea is", "Once upon a time", "A recipe for bread:", "The moon"]
LENGTHS = [38, 46, 42, 46]
EXAMPLES = "Review: I loved it.\nSentiment: positive\n\nReview: It was awful.\nSentiment: negative\n\n"
REVIEW = f"{EXAMPLES}Review: The room was cold and the soup was colder.\nSentiment:"
MESSAGE = """Message: The parcel never came.
Topic: delivery
Mood: angry
Urgent: yes

Message: Thank you, the new screen works well.
Topic: repairs
Mood: happy
Urgent: no

Message: My kettle broke after two days.
"""
QUESTIONS = {
    "Topic:": [" billing", " delivery", " repairs"],
    "Mood:": [" angry", " calm", " happy"],
    "Urgent:": [" yes", " no"],
}


def main() -> None:
    with lanes.Engine() as engine:
        engine.score("Warm", [" up"]).result()
        start = engine.rounds.next_index
        pairs = zip(PROMPTS, LENGTHS, strict=True)
        streams = [engine.stream(prompt, max_tokens=length, ignore_eos=True) for prompt, length in pairs]
        while len(streams[-1].tokens) < 6:
            time.sleep(0.01)
        engine.score(REVIEW, [" positive", " negative"]).result()
        while len(streams[-1].tokens) < 16:
            time.sleep(0.01)
        engine.decide(MESSAGE, list(QUESTIONS), list(QUESTIONS.values())).result()
        engine.wait()
        picture = engine.rounds.timeline(since=start)
    print(picture.save(Path(__file__).parent / "images" / "timeline.svg"))
    print(picture)


if __name__ == "__main__":
    main()
