"""Small tokenizers of the kinds that models come with, built in code."""

import json
from functools import cache
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for m in messages %}{{ '<s>' + m['role'] + '\n' + m['content'] + '</s>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<s>assistant\n' }}{% if enable_thinking %}{{ '<think>' }}{% endif %}{% endif %}"
)
CORPUS = [
    "The movie was great. Review: great\nSentiment: positive or negative?",
    "hello world, yes and no, billing and other; naïve café €5 😀 日本語",
    "Question: is the answer yes?\nAnswer: no",
] * 3
SPECIALS = ["<unk>", "<s>", "</s>"]
KINDS = ("byte_level", "byte_level_bos", "byte_fallback", "metaspace", "wordpiece", "words")


@cache
def tokenizer(kind: str) -> Any:
    """The shared tokenizer of this kind; leave it as it is."""
    return build(kind)


def build(kind: str) -> Any:
    """A new tokenizer, one of KINDS, with `<unk>`, `<s>` (BOS) and `</s>` (EOS) as tokens 0, 1 and 2."""
    fast = PreTrainedTokenizerFast(
        tokenizer_object=_BUILD[kind](), unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    fast.chat_template = CHATML
    return fast


def _byte_level() -> Tokenizer:
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    built.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=360, special_tokens=SPECIALS, initial_alphabet=alphabet)
    )
    return built


def _byte_level_bos() -> Tokenizer:
    built = _byte_level()
    built.post_processor = _with_bos()
    return built


def _byte_fallback() -> Tokenizer:
    """As Llama 2: a space in front of every text, BOS, and a token for each byte where no word fits."""
    built = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    marked = [line.replace(" ", "▁") for line in CORPUS]
    trained = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=[*SPECIALS, *(f"<0x{byte:02X}>" for byte in range(256))],
        limit_alphabet=40,
    )
    built.train_from_iterator(marked, trained)
    # Built anew from its parts, so that the bytes are ordinary words and not special tokens that decoding skips.
    built = Tokenizer(models.BPE(built.get_vocab(), _merges(built), unk_token="<unk>", byte_fallback=True))
    built.add_special_tokens(SPECIALS)
    built.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    built.post_processor = _with_bos()
    return built


def _metaspace() -> Tokenizer:
    built = Tokenizer(models.Unigram())
    built.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    built.decoder = decoders.Metaspace(prepend_scheme="always")
    built.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=200, special_tokens=SPECIALS, unk_token="<unk>", show_progress=False)
    )
    return built


def _wordpiece() -> Tokenizer:
    built = Tokenizer(models.WordPiece(unk_token="<unk>"))
    built.normalizer = normalizers.Lowercase()
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.decoder = decoders.WordPiece()
    built.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIALS))
    return built


def _words() -> Tokenizer:
    built = Tokenizer(models.WordLevel(unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    built.train_from_iterator(CORPUS, trainers.WordLevelTrainer(special_tokens=SPECIALS))
    return built


def _with_bos() -> processors.TemplateProcessing:
    return processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])


def _merges(built: Tokenizer) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in json.loads(built.to_str())["model"]["merges"]]


_BUILD = {
    "byte_level": _byte_level,
    "byte_level_bos": _byte_level_bos,
    "byte_fallback": _byte_fallback,
    "metaspace": _metaspace,
    "wordpiece": _wordpiece,
    "words": _words,
}
