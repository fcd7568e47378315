"""Holds a folder that `attentive train` made against the programs that should read it as it is.

    python golden/trained.py FOLDER SOURCE [LINES]

The first lines of the file SOURCE are translated by `attentive translate`, by transformers' MarianMTModel with its
MarianTokenizer, and by CTranslate2 after its own converter, all in f32, greedily and with a beam of 5. It prints how many
translations are the same, and fails if fewer than 99 of 100 are: two candidates whose scores differ by less than rounding
may change places. CTranslate2's beam search ends by a rule of its own, so that its results with a beam are printed only.
ATTENTIVE is the program, target/release/attentive if it is not set.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import ctranslate2
import torch
import transformers

LONGEST = 256


def ours(folder, lines, beam):
    program = os.environ.get("ATTENTIVE", "target/release/attentive")
    options = ["--beam", str(beam), "--length-penalty", "1", "--max-length", str(LONGEST), "--precision", "f32"]
    text = "".join(line + "\n" for line in lines)
    result = subprocess.run(
        [program, "translate", "--model", folder, *options], input=text, capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()


def theirs(folder, lines, beam):
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    texts = []
    for begin in range(0, len(lines), 32):
        batch = tokenizer(lines[begin : begin + 32], return_tensors="pt", padding=True)
        with torch.no_grad():
            tokens = model.generate(
                **batch, num_beams=beam, length_penalty=1.0, max_length=LONGEST, early_stopping=False, do_sample=False
            )
        texts += tokenizer.batch_decode(tokens, skip_special_tokens=True)
    return texts


def converted(folder, lines, beam):
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as out:
        ctranslate2.converters.TransformersConverter(folder).convert(out, force=True)
        translator = ctranslate2.Translator(out, device="cpu", compute_type="float32")
        sources = [tokenizer.convert_ids_to_tokens(tokenizer.encode(line)) for line in lines]
        results = translator.translate_batch(
            sources, beam_size=beam, length_penalty=1.0, max_decoding_length=LONGEST
        )
    tokens = [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results]
    return [tokenizer.decode(ids, skip_special_tokens=True) for ids in tokens]


def main():
    folder, source = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    lines = pathlib.Path(source).read_text("utf-8").splitlines()[:count]
    failed = False
    for beam in (1, 5):
        expected = ours(folder, lines, beam)
        for name, translate in (("transformers", theirs), ("CTranslate2", converted)):
            found = translate(folder, lines, beam)
            different = [pair for pair in zip(expected, found, strict=True) if pair[0].strip() != pair[1].strip()]
            print(f"beam {beam}, {name}: {len(lines) - len(different)} of {len(lines)} are the same")
            for one, other in different[:3]:
                print(f"  ours   {one}\n  theirs {other}")
            same_search = beam == 1 or name == "transformers"
            failed |= same_search and len(different) * 100 > len(lines)
    sys.exit(failed)


main()
