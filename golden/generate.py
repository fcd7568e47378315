"""Makes generate/ and generate.json: a small model that is unsure of itself, and what transformers writes with it.

    pip install -r golden/requirements.txt
    python golden/generate.py

`generate.py answers` keeps the model and its sources, and asks again what transformers writes.
`generate.py reference` makes generate_reference.json: logits of the reference model in the folder `shared` beside the
repository (or ATTENTIVE_SHARED) at the first step of some sentences.
"""

import json
import os
import random
import sys
from pathlib import Path

import torch
from transformers import MarianConfig, MarianMTModel

GOLDEN = Path(__file__).parent
VOCABULARY = 24
START = PAD = VOCABULARY - 1
EOS = 0

torch.manual_seed(5)
torch.set_num_threads(1)
random.seed(5)


def reference():
    """For every 50th line: its ids, and ten logits of the first step, the greatest and some others."""
    import sentencepiece

    shared = Path(os.environ.get("ATTENTIVE_SHARED", GOLDEN.parent.parent / "shared"))
    folder = shared / "reference" / "marian-multi30k"
    model = MarianMTModel.from_pretrained(folder).eval()
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    vocab = json.loads((folder / "vocab.json").read_text())
    lines = (shared / "data" / "multi30k" / "test_2016_flickr.en").read_text().splitlines()[::50]
    answers = []
    for line in lines:
        ids = [vocab.get(piece, vocab["<unk>"]) for piece in pieces.encode(line, out_type=str)] + [vocab["</s>"]]
        with torch.no_grad():
            start = torch.tensor([[vocab["<pad>"]]])
            logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=start).logits[0, 0]
        tokens = logits.topk(5).indices.tolist() + [1, 1000, 3000, 5000, 8000]
        answers.append({"source": ids, "logits": [[token, round(logits[token].item(), 6)] for token in tokens]})
    text = ",\n".join(json.dumps(answer) for answer in answers)
    (GOLDEN / "generate_reference.json").write_text(f"[{text}]\n")


if "reference" in sys.argv[1:]:
    reference()
    sys.exit()


def source():
    return [random.randrange(1, PAD) for _ in range(random.randint(1, 10))]


def noisy(tokens):
    """Most tokens again, some of them changed, dropped or doubled: there is never one right answer."""
    out = []
    for token in tokens:
        chance = random.random()
        if chance > 0.12:
            out.append(token if chance > 0.35 else token % 22 + 1)
            if chance > 0.85:
                out.append(token)
    return out


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    pad = lambda rows: torch.tensor([row + [PAD] * (max(map(len, rows)) - len(row)) for row in rows])
    for step in range(700):
        sources = [source() for _ in range(64)]
        x = pad([tokens + [EOS] for tokens in sources])
        y = pad([noisy(tokens) + [EOS] for tokens in sources])
        loss = model(input_ids=x, attention_mask=(x != PAD).long(), labels=y.masked_fill(y == PAD, -100)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def make():
    """A trained model, saved, and sources for it."""
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1}
    sizes |= {side + "_attention_heads": 4 for side in ("encoder", "decoder")}
    sizes |= {side + "_ffn_dim": 48 for side in ("encoder", "decoder")}
    config = MarianConfig(
        vocab_size=VOCABULARY, **sizes, max_position_embeddings=64, activation_function="relu", dropout=0.0,
        scale_embedding=True, pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=START, forced_eos_token_id=EOS,
        bos_token_id=None, init_std=0.2,
    )
    model = MarianMTModel(config)
    # Padding is never written.
    model.final_logits_bias[0, PAD] = -10_000.0
    print(f"loss {train(model):.3f}")
    with torch.no_grad():
        model.model.shared.weight[PAD] = 0.0
    model.save_pretrained(GOLDEN / "generate")

    return model, [source() + [EOS] for _ in range(12)] + [[EOS]]


if "answers" in sys.argv[1:]:
    model = MarianMTModel.from_pretrained(GOLDEN / "generate")
    SOURCES = json.loads((GOLDEN / "generate.json").read_text())["sources"]
else:
    model, SOURCES = make()
model.eval()

beam = {"num_beams": 4, "length_penalty": 1.0, "early_stopping": False, "max_new_tokens": 14}
CASES = {
    "greedy": {"num_beams": 1, "max_new_tokens": 14},
    "beam": beam,
    "beam of 2": {**beam, "num_beams": 2},
    "beam of 7": {**beam, "num_beams": 7},
    "early stopping": {**beam, "early_stopping": True},
    "never stopping": {**beam, "early_stopping": "never"},
    "no penalty": {**beam, "length_penalty": 0.0},
    "no penalty, never stopping": {**beam, "length_penalty": 0.0, "early_stopping": "never"},
    "length is good": {**beam, "length_penalty": 2.0},
    "length is good, never stopping": {**beam, "length_penalty": 2.0, "early_stopping": "never"},
    "length is bad": {**beam, "length_penalty": -1.0},
    "length is bad, never stopping": {**beam, "length_penalty": -1.0, "early_stopping": "never"},
    "cut off": {**beam, "forced_eos_token_id": None, "max_new_tokens": 5},
    "one token": {**beam, "forced_eos_token_id": None, "max_new_tokens": 1},
    "minimum": {**beam, "min_new_tokens": 9},
    "repetition penalty": {**beam, "repetition_penalty": 1.7},
    "greedy repetition penalty": {"num_beams": 1, "max_new_tokens": 14, "repetition_penalty": 1.7},
    "no repeated bigrams": {**beam, "no_repeat_ngram_size": 2},
    "greedy without repeated bigrams": {"num_beams": 1, "max_new_tokens": 14, "no_repeat_ngram_size": 2},
    "no repeated tokens": {**beam, "no_repeat_ngram_size": 1},
    "bad words": {**beam, "bad_words_ids": [[PAD], [7], [12, 11], [3, 4, 5], [EOS]]},
    "several ends": {**beam, "eos_token_id": [EOS, 7, 12]},
    "greedy with several ends": {"num_beams": 1, "max_new_tokens": 14, "eos_token_id": [EOS, 7]},
    "several ends and a minimum": {**beam, "eos_token_id": [7, EOS], "min_new_tokens": 6},
    "first token": {**beam, "forced_bos_token_id": 9},
    "greedy with a first token": {"num_beams": 1, "max_new_tokens": 14, "forced_bos_token_id": 9},
    "prefix": {**beam, "prefix": [5, 17, 13]},
    "greedy prefix": {"num_beams": 1, "max_new_tokens": 14, "prefix": [5, 17, 13]},
    "everything": {
        **beam, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 6, "length_penalty": 0.6,
        "early_stopping": "never", "prefix": [9],
    },
}


def generate(source, settings):
    """All that transformers returns for one source, the best first, with scores if it searched."""
    settings = dict(settings)
    prefix = settings.pop("prefix", [])
    beams = settings["num_beams"]
    out = model.generate(
        input_ids=torch.tensor([source]),
        decoder_input_ids=torch.tensor([[START] + prefix]),
        do_sample=False,
        num_return_sequences=beams,
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
    results = []
    for i, row in enumerate(out.sequences.tolist()):
        tokens = row[1:]
        while tokens and tokens[-1] == PAD:
            tokens.pop()
        results.append({"tokens": tokens})
        if beams > 1:
            results[-1]["score"] = round(out.sequences_scores[i].item(), 6)
    return results


cases = []
for name, settings in CASES.items():
    results = [generate(source, settings) for source in SOURCES]
    cases.append({"name": name, "settings": settings, "results": results})
lines = ",\n".join(json.dumps(case) for case in cases)
text = f'{{"sources": {SOURCES},\n"cases": [\n{lines}]}}'
(GOLDEN / "generate.json").write_text(text + "\n")
lengths = [len(result[0]["tokens"]) for case in cases for result in case["results"]]
print(f"{len(cases)} cases, {len(text)} bytes, best results of {min(lengths)} to {max(lengths)} tokens")
