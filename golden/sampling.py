"""The distributions that transformers draws the next token from, for the model of golden/gpt2/saved.

    python golden/sampling.py        golden/sampling.json

Of each case, the probabilities of the tokens behind some prompts: after the penalties and the warpers, each token that can be drawn. As in
make.py, they are computed in float64 from the numbers in the files.
"""

import json
from pathlib import Path

import torch
from transformers import GPT2LMHeadModel
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
# A prompt that repeats itself, so that what is written before matters.
PROMPTS = [[51, 84, 51, 84, 51], [7], list(range(30, 60))]
PLAIN = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
CASES = [
    {"top_k": 12},
    {"temperature": 0.6, "top_k": 20},
    {"temperature": 1.7, "top_k": 30, "top_p": 0.8},
    {"top_p": 0.5},
    {"top_p": 0.05},
    {"min_p": 0.08},
    {"temperature": 0.8, "top_k": 25, "top_p": 0.9, "min_p": 0.05},
    {"repetition_penalty": 1.4, "top_k": 12},
    {"repetition_penalty": 0.7, "top_p": 0.6, "temperature": 1.2},
    {"no_repeat_ngram_size": 2, "top_k": 5},
    {"bad_words_ids": [[51], [51, 84]], "top_k": 8, "temperature": 0.9},
    {"min_new_tokens": 3, "top_k": 15},
]


@torch.no_grad()
def distribution(model, prompt, settings):
    """Each token that can be drawn, with its probability, the most probable first."""
    found = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        do_sample=True,
        max_new_tokens=max(1, settings.get("min_new_tokens", 0)),
        pad_token_id=0,
        output_scores=True,
        return_dict_in_generate=True,
        **PLAIN | settings,
    )
    probabilities = found.scores[0][0].double().softmax(0)
    drawn = sorted(((p, -token) for token, p in enumerate(probabilities.tolist()) if p > 0), reverse=True)
    return [[-token, round(p, 9)] for p, token in drawn]


logging.set_verbosity_error()
torch.manual_seed(3)
model = GPT2LMHeadModel.from_pretrained(GOLDEN / "gpt2" / "saved", dtype=torch.float32).double().eval()
cases = [{"settings": case, "found": [distribution(model, prompt, case) for prompt in PROMPTS]} for case in CASES]
(GOLDEN / "sampling.json").write_text(json.dumps({"prompts": PROMPTS, "cases": cases}) + "\n")
