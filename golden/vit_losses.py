"""Fifty steps of learning by transformers, from the folders `classes` and `dinov2` of golden/vit: the pictures, and the loss of each step.

    python golden/vit_losses.py     golden/vit_losses.json

As in losses.py: AdamW without decay, gradients clipped to a norm of 1, a rate that rises over ten steps and falls in a line to zero, all
in f64. Pictures are bytes, pixel by pixel, in hexadecimal; the processor of the folder makes numbers from -1 to 1 of them.
"""

import json
from pathlib import Path

import torch
from transformers import Dinov2ForImageClassification, ViTForImageClassification
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
CASES = {"classes": ViTForImageClassification, "dinov2": Dinov2ForImageClassification}
STEPS, RATE, WARMUP, SIDE = 50, 1e-3, 10, 16


def losses(model, batches):
    model.double().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    found = []
    for step in range(1, STEPS + 1):
        pictures, labels = batches[step % len(batches)]
        pixels = (pictures.double() / 255 - 0.5) / 0.5
        loss = model(pixels.permute(0, 3, 1, 2), labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(step / WARMUP, (STEPS - step) / (STEPS - WARMUP))
        optimizer.step()
        found.append(round(loss.item(), 7))
    return found


logging.set_verbosity_error()
logging.disable_progress_bar()
random = torch.Generator().manual_seed(34)
batches = [
    (torch.randint(0, 256, (n, SIDE, SIDE, 3), generator=random, dtype=torch.uint8), torch.randint(0, 5, (n,), generator=random))
    for n in (3, 2, 4)
]
answers = {
    "batches": [
        {"pictures": [bytes(p.flatten().tolist()).hex() for p in pictures], "labels": labels.tolist()}
        for pictures, labels in batches
    ]
}
for case, kind in CASES.items():
    answers[case] = losses(kind.from_pretrained(GOLDEN / "vit" / case, dtype=torch.float32), batches)
(GOLDEN / "vit_losses.json").write_text(json.dumps(answers) + "\n")
