"""A character-level GPT by nanoGPT's recipe in PyTorch: what `cargo run --release -p attentive-train --example shakespeare` is held against.

    python golden/shakespeare.py input.txt OUT [--precision f32|bf16] [--layers 6 --heads 6 --width 384 --context 256 --batch 64]

input.txt is Tiny Shakespeare. OUT gets `model`, the first weights as transformers saves them; `batches.safetensors`, the tokens of all
batches; and `losses.json`. The example trains the same weights on the same batches. Dropout draws otherwise there, so that losses are
compared by their mean over the steps 251 to 300. Nothing of it is committed: the batches alone are 20 MB.
"""

import argparse
import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

SIZES = {"layers": 6, "heads": 6, "width": 384, "context": 256, "batch": 64, "steps": 300}
DROPOUT = 0.2
PEAK, LAST, WARMUP, END = 1e-3, 1e-4, 100, 5000
BETAS, DECAY, CLIP = (0.9, 0.99), 0.1, 1.0
FIRST_COMPARED = 251


def rate(step):
    """As train/src/schedule.rs has it, counted from 1."""
    if step < WARMUP:
        return PEAK * step / WARMUP
    done = min((step - WARMUP) / (END + 1 - WARMUP), 1)
    return LAST + (PEAK - LAST) * 0.5 * (1 + math.cos(math.pi * done))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("text", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--precision", choices=["f32", "bf16"], default="bf16")
    for name, size in SIZES.items():
        options.add_argument(f"--{name}", type=int, default=size)
    options = options.parse_args()

    torch.manual_seed(1337)
    text = options.text.read_text()
    characters = sorted(set(text))
    ids = {character: i for i, character in enumerate(characters)}
    # The last tenth is nanoGPT's validation part.
    tokens = torch.tensor([ids[character] for character in text[: len(text) * 9 // 10]])
    starts = torch.randint(len(tokens) - options.context, (options.steps, options.batch))
    batches = tokens[starts[..., None] + torch.arange(options.context + 1)]
    options.out.mkdir(parents=True, exist_ok=True)
    save_file({"batches": batches.int()}, options.out / "batches.safetensors")

    sizes = {"n_layer": options.layers, "n_head": options.heads, "n_embd": options.width, "n_positions": options.context}
    drops = {"resid_pdrop": DROPOUT, "embd_pdrop": DROPOUT, "attn_pdrop": DROPOUT}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **drops, vocab_size=len(characters), bos_token_id=0, eos_token_id=0)).train()
    model.save_pretrained(options.out / "model")
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=BETAS, eps=1e-8)

    losses = []
    for step, batch in enumerate(batches, 1):
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        losses.append(loss.item())
        if step % 25 == 0 or step == 1:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        (options.out / "losses.json").write_text(json.dumps(losses) + "\n")
    compared = losses[FIRST_COMPARED - 1 :]
    if compared:
        print(f"mean loss of steps {FIRST_COMPARED} to {options.steps}: {sum(compared) / len(compared):.4f}")


if __name__ == "__main__":
    main()
