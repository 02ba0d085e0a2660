"""Byte-level BPE tokenizers built in code: the one for tiny models, and the one that a GGUF file describes."""

from collections.abc import Iterable, Sequence

from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, TokenizerWrapper
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Each word brings the chain of merges that makes it: " the" needs " t", " th" and " the".
WORDS = (
    " the", " and", " of", " to", " in", " is", " that", " you", " for", " with", " positive", " negative", " yes",
    " no", " true", " false", " review", " great", " sentiment", " question", " answer", " billing", " other",
    " capital", " sea", "Review", "Question", "Answer", "system", "user", "assistant", "ing", "tion", "er", "est",
)  # fmt: skip
LETTERS = "etaoinshrdlucmfwygpbvk"

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def tiny_tokenizer(size: int) -> TokenizerWrapper:
    """A tokenizer of exactly `size` tokens (300 or more) that can spell any text: bytes, a few words, pairs of letters.

    Characters outside ASCII take several tokens, and a ChatML template is set, as in the models people use.
    """
    vocab = {token: i for i, token in enumerate([*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    merges: list[tuple[str, str]] = []
    for left, right in _merge_chains():
        if len(vocab) == size:
            break
        if left + right not in vocab:
            vocab[left + right] = len(vocab)
            merges.append((left, right))
    return byte_level(vocab, merges, SPECIALS, eos="<|im_end|>", chat_template=CHAT_TEMPLATE)


def byte_level(
    vocab: dict[str, int],
    merges: Sequence[tuple[str, str]],
    specials: Iterable[str],
    *,
    eos: str,
    chat_template: str | None,
    single_digits: bool = False,
    more_eos: Iterable[str] = (),
) -> TokenizerWrapper:
    """A byte-level BPE tokenizer as GPT-2 made it, with its streaming detokenizer.

    single_digits: every digit is a token of its own (the "smollm" pre-tokenizer). more_eos: further tokens that end a
    text. A `vocab` whose ids leave a gap cannot be used and raises ValueError.
    """
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise ValueError("the token ids of a vocabulary must be 0, 1, 2, ... without a gap")
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=list(merges)))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, level]) if single_digits else level
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=eos, pad_token=eos, clean_up_tokenization_spaces=False
    )
    fast.chat_template = chat_template
    ends = [vocab[token] for token in (eos, *more_eos)]
    return TokenizerWrapper(fast, BPEStreamingDetokenizer, eos_token_ids=ends)  # pyright: ignore[reportArgumentType]


def _merge_chains() -> Iterable[tuple[str, str]]:
    for word in WORDS:
        marked = word.replace(" ", "Ġ")
        for i in range(1, len(marked)):
            yield marked[:i], marked[i]
    for left in LETTERS:
        for right in LETTERS:
            yield left, right
