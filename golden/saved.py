"""Holds folders that `attentive convert` wrote against transformers, which should read them as it reads the ones before.

    python golden/saved.py [FOLDER ...]

Makes nothing. The folders of `golden/` are converted in f32 (others if they are named), and transformers computes both, the old
and the new one, from the same random tokens or pictures. It prints the relative norm of the difference of all outputs, and
fails if one is above 1e-4 or if a weight is missing or left over that was not before. A folder without a tokenizer is given one that knows words
by numbers, because `convert` reads its tokenizer. ATTENTIVE is the program, target/release/attentive if it is not set.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers

# What is the same in both is computed to the same bits. Only the tables of sinusoids that a file has in f16 are written anew.
LIMIT = 1e-4
TOKENIZERS = ["tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "source.spm"]


def folders():
    """Those of `golden/` that hold a model which transformers has."""
    here = pathlib.Path(__file__).parent
    for config in sorted(here.glob("**/config.json")):
        if json.loads(config.read_text()).get("architectures"):
            yield config.parent


def with_tokenizer(folder, copy):
    shutil.copytree(folder, copy)
    if any((copy / name).exists() for name in TOKENIZERS) or (copy / "sentencepiece.bpe.model").exists():
        return
    size = json.loads((copy / "config.json").read_text()).get("vocab_size")
    if size is None:
        return
    words = {f"w{i}": i for i in range(size)}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "w0"}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None, "model": model,
    }  # fmt: skip
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))


def inputs(config):
    torch.manual_seed(1)
    if getattr(config, "num_channels", None) and not getattr(config, "vocab_size", None):
        size = getattr(config, "image_size", 96)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return {"pixel_values": torch.randn(2, config.num_channels, height, width)}
    size = min(config.vocab_size, getattr(config, "decoder_vocab_size", None) or config.vocab_size)
    tokens = torch.randint(3, size, (2, 9))
    if config.is_encoder_decoder:
        return {"input_ids": tokens, "decoder_input_ids": tokens[:, :5]}
    return {"input_ids": tokens}


def outputs(folder, family):
    """All floating-point outputs, one after another, and what was wrong with the names of the weights."""
    config = transformers.AutoConfig.from_pretrained(folder)
    model, told = family.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    with torch.no_grad():
        result = model.eval()(**inputs(config))
    values = [value.flatten() for value in result.values() if torch.is_tensor(value) and value.is_floating_point()]
    return torch.cat(values), {f"{kind} {name}" for kind in ("missing_keys", "unexpected_keys") for name in told[kind]}


def main(named):
    transformers.utils.logging.disable_progress_bar()
    program = os.environ.get("ATTENTIVE", "target/release/attentive")
    failed = 0
    for folder in [pathlib.Path(name) for name in named] or folders():
        with tempfile.TemporaryDirectory() as scratch:
            old, new = pathlib.Path(scratch) / "old", pathlib.Path(scratch) / "new"
            with_tokenizer(folder, old)
            line = [program, "convert", "--model", old, "--out", new, "--precision", "f32"]
            converted = subprocess.run(line, capture_output=True, text=True)
            if converted.returncode != 0:
                failed += 1
                print(f"{folder}: {converted.stderr.strip()}")
                continue
            # A folder of several heads has one of them left.
            family = getattr(transformers, json.loads((new / "config.json").read_text())["architectures"][0])
            expected, before = outputs(old, family)
            found, after = outputs(new, family)
            wrong = after - before
            difference = ((found - expected).norm() / expected.norm()).item()
            failed += difference > LIMIT or bool(wrong)
            print(f"{folder}: {difference:.1e} {wrong or ''}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
