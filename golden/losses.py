"""Fifty steps of learning by transformers, from the folders of golden/bert, roberta, gpt2, t5 and bart: the batches, and the loss of each step.

    python golden/losses.py     golden/losses.json

Dropout is off. Adam is PyTorch's AdamW without decay, with gradients clipped to a norm of 1 and a rate that rises over ten steps and
then falls in a line to zero. All numbers are f64, so that the losses are what exact arithmetic gives, to the digits written.
"""

import json
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2LMHeadModel,
    RobertaForQuestionAnswering,
)
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
CASES = {
    "sequence": BertForSequenceClassification,
    "token": BertForTokenClassification,
    "masked": BertForMaskedLM,
}
STEPS, RATE, WARMUP = 50, 1e-3, 10
torch.set_num_threads(1)


def batches(case, classes, random):
    """A few batches of texts, which come again and again, each with its labels; -100 is no label."""
    made = []
    for lengths in [[7, 3, 12], [5, 9], [16, 2, 2, 6]]:
        texts = [torch.randint(5, 100, (n,), generator=random) for n in lengths]
        if case == "sequence":
            labels = torch.randint(0, classes, (len(texts),), generator=random).tolist()
        else:
            labels = [torch.randint(0, classes, (n,), generator=random) for n in lengths]
            chosen = [torch.rand(n, generator=random) < 0.5 for n in lengths]
            chosen = [c if c.any() else ~c for c in chosen]
            labels = [torch.where(c, label, -100).tolist() for c, label in zip(chosen, labels)]
        made.append({"texts": [text.tolist() for text in texts], "labels": labels})
    return made


def padded(rows, filler):
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


def rate(step):
    return RATE * min(step / WARMUP, (STEPS - step) / (STEPS - WARMUP))


def losses(model, made):
    model.double().train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    found = []
    for step in range(1, STEPS + 1):
        batch = made[step % len(made)]
        labels = batch["labels"]
        labels = padded(labels, -100) if isinstance(labels[0], list) else torch.tensor(labels)
        mask = padded([[1] * len(text) for text in batch["texts"]], 0)
        asked = {"labels": labels}
        if isinstance(model, RobertaForQuestionAnswering):
            asked = {"start_positions": labels[:, 0], "end_positions": labels[:, 1]}
        loss = model(input_ids=padded(batch["texts"], 0), attention_mask=mask, **asked).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        found.append(round(loss.item(), 7))
    return found


logging.set_verbosity_error()
random = torch.Generator().manual_seed(28)
answers = {}
for case, kind in CASES.items():
    # Eager attention drops out weights with a probability that is read from the configuration.
    fields = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    model = kind.from_pretrained(GOLDEN / "bert" / case, **fields)
    classes = 100 if case == "masked" else model.config.num_labels
    made = batches(case, classes, random)
    answers[case] = {"batches": made, "losses": losses(model, made)}

# Where an answer begins and ends: texts of a batch are equally long, since padding is a place for transformers.
fields = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
model = AutoModelForQuestionAnswering.from_pretrained(GOLDEN / "roberta" / "answer", **fields)
made = []
for count, length in [(3, 9), (2, 14), (4, 6)]:
    texts = torch.randint(5, 60, (count, length), generator=random).tolist()
    spans = torch.randint(0, length, (count, 2), generator=random).sort(dim=1).values.tolist()
    made.append({"texts": texts, "labels": spans})
answers["answer"] = {"batches": made, "losses": losses(model, made)}

# Each token is predicted from those before it.
fields = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
model = GPT2LMHeadModel.from_pretrained(GOLDEN / "gpt2" / "saved", **fields)
most = model.config.vocab_size
texts = [[torch.randint(0, most, (n,), generator=random).tolist() for n in lengths] for lengths in [[7, 3, 12], [5, 9], [11, 2, 6]]]
made = [{"texts": some, "labels": some} for some in texts]
answers["lm"] = {"batches": made, "losses": losses(model, made)}
# A text from another: T5 1.0, T5 1.1 with its gate, BART.
for case, folder in {"t5": "t5/first", "gated t5": "t5/later", "bart": "bart/bart"}.items():
    config = AutoConfig.from_pretrained(GOLDEN / folder)
    for field in ("dropout_rate", "dropout", "attention_dropout", "activation_dropout"):
        if hasattr(config, field):
            setattr(config, field, 0.0)
    model = AutoModelForSeq2SeqLM.from_pretrained(GOLDEN / folder, config=config)
    draw = lambda lengths: [torch.randint(5, 130, (n,), generator=random).tolist() for n in lengths]
    sizes = [([7, 3, 12], [4, 9, 2]), ([5, 9], [6, 1]), ([11, 2, 6], [3, 8, 5])]
    made = [{"texts": draw(sources), "labels": draw(targets)} for sources, targets in sizes]
    answers[case] = {"batches": made, "losses": losses(model, made)}
(GOLDEN / "losses.json").write_text(json.dumps(answers) + "\n")
