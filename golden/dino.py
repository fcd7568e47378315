"""DINO in PyTorch, from the formulas of its paper: the loss and its gradients, and fifty steps of student and teacher.

    python golden/dino.py           golden/dino.safetensors and golden/dino.json

The backbone is golden/vit/dino. The head begins as `head.…` of the file says. Two pictures have two global views of 16 × 16 pixels and three
local ones of 8 × 8, three pictures the same. There is no dropout and no augmentation; all is computed in f64. Weights learn as in
losses.py: AdamW, gradients clipped to a norm of 1, a rate that rises over ten steps and falls in a line to zero. The decay of weights goes
from 0.04 to 0.4 along half a cosine, and biases and norms have none.
"""

import json
import math
from copy import deepcopy
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn.functional import gelu, linear, log_softmax, normalize, softmax
from transformers import ViTModel
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
D_MODEL, HIDDEN, BOTTLENECK, OUT = 32, 24, 12, 20
GLOBAL, LOCAL, LOCALS = 16, 8, 3
STEPS, RATE, WARMUP = 50, 1e-3, 10
MOMENTUM, CENTRE, STUDENT_TEMP = 0.9, 0.9, 0.1
TEACHER_TEMP, TEACHER_WARMUP, FROZEN = (0.04, 0.07), 20, 5
# Of the loss whose gradients are stored.
TEMP = 0.05
DECAY = (0.04, 0.4)


class Dino(torch.nn.Module):
    def __init__(self, head):
        super().__init__()
        folder = GOLDEN / "vit" / "dino"
        self.vit = ViTModel.from_pretrained(folder, add_pooling_layer=False, dtype=torch.float32, attn_implementation="eager")
        self.head = torch.nn.ParameterDict({name.replace(".", "_"): tensor.clone() for name, tensor in head.items()})

    def forward(self, views):
        rows = []
        for pixels in views:
            hidden = self.vit(pixels, interpolate_pos_encoding=True).last_hidden_state
            rows.append(hidden[:, 0])
        x, h = torch.cat(rows), self.head
        x = gelu(linear(x, h.mlp_0_weight, h.mlp_0_bias))
        x = gelu(linear(x, h.mlp_2_weight, h.mlp_2_bias))
        x = linear(x, h.mlp_4_weight, h.mlp_4_bias)
        return linear(normalize(x, dim=-1), normalize(h.last_layer_weight_v, dim=-1))


def loss_of(student, teacher, centre, temperature, views):
    """The loss, and the teacher's logits: of each global view against all other views, the mean over pictures and pairs."""
    s = student(views).chunk(len(views))
    with torch.no_grad():
        logits = teacher(views[:2])
        t = softmax((logits - centre) / temperature, dim=-1).chunk(2)
    pairs = [(g, v) for g in range(2) for v in range(len(views)) if v != g]
    terms = [-(t[g] * log_softmax(s[v] / STUDENT_TEMP, dim=-1)).sum(-1).mean() for g, v in pairs]
    return sum(terms) / len(terms), logits


def cosine(start, end, step):
    return end + 0.5 * (start - end) * (1 + math.cos(math.pi * (step - 1) / STEPS))


def names_of(model, vit_names):
    """Parameters by the names that they have in our files."""
    for name, parameter in model.named_parameters():
        if name.startswith("head."):
            name = "head." + name[5:].replace("_", ".").replace("last.layer.weight.v", "last_layer.weight_v")
            yield name, parameter
        else:
            yield vit_names[name], parameter


def draw(random):
    shapes = {
        "mlp.0.weight": (HIDDEN, D_MODEL), "mlp.0.bias": (HIDDEN,),
        "mlp.2.weight": (HIDDEN, HIDDEN), "mlp.2.bias": (HIDDEN,),
        "mlp.4.weight": (BOTTLENECK, HIDDEN), "mlp.4.bias": (BOTTLENECK,),
        "last_layer.weight_v": (OUT, BOTTLENECK),
    }
    return {name: torch.randn(shape, generator=random) * 0.2 for name, shape in shapes.items()}


def numbers(pictures):
    return [((view.double() / 255 - 0.5) / 0.5).permute(0, 3, 1, 2) for view in pictures]


def file_names(model):
    """The names that the folder's file has, by those of the model: those whose numbers are the same."""
    from safetensors.torch import load_file

    stored = load_file(GOLDEN / "vit" / "dino" / "model.safetensors")
    names = {}
    for name, parameter in model.named_parameters():
        if not name.startswith("head."):
            same = [key for key, value in stored.items() if value.shape == parameter.shape and torch.equal(value, parameter.detach())]
            assert len(same) == 1, (name, same)
            names[name] = same[0]
    return names


def fifty(student, batches, answers):
    teacher, centre, found = deepcopy(student), torch.zeros(OUT, dtype=torch.float64), []
    parameters = list(student.parameters())
    groups = [[p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() == 1]]
    optimizer = torch.optim.AdamW([{"params": group} for group in groups], lr=RATE, weight_decay=0.0)
    last = student.head.last_layer_weight_v
    for step in range(1, STEPS + 1):
        views = numbers(batches[step % len(batches)])
        warm = min(1.0, (step - 1) / TEACHER_WARMUP)
        temperature = TEACHER_TEMP[0] + warm * (TEACHER_TEMP[1] - TEACHER_TEMP[0])
        loss, logits = loss_of(student, teacher, centre, temperature, views)
        optimizer.zero_grad()
        loss.backward()
        if step <= FROZEN:
            last.grad = None
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(step / WARMUP, (STEPS - step) / (STEPS - WARMUP))
        optimizer.param_groups[0]["weight_decay"] = cosine(*DECAY, step)
        optimizer.step()
        with torch.no_grad():
            momentum = cosine(MOMENTUM, 1.0, step)
            for mine, its in zip(parameters, teacher.parameters()):
                its.mul_(momentum).add_(mine, alpha=1 - momentum)
            centre = CENTRE * centre + (1 - CENTRE) * logits.mean(0)
        found.append(round(loss.item(), 8))
    answers["losses"] = found
    answers["centre"] = centre.tolist()


def main():
    random = torch.Generator().manual_seed(34)
    head = draw(random)
    model = Dino(head)
    vit_names = file_names(model)
    bytes_of = lambda n, side: torch.randint(0, 256, (n, side, side, 3), generator=random, dtype=torch.uint8)
    batches = [[bytes_of(n, GLOBAL if view < 2 else LOCAL) for view in range(2 + LOCALS)] for n in (2, 3)]
    centre = torch.randn(OUT, generator=random) * 0.1
    student, teacher = model.double().train(), None
    teacher = deepcopy(student)
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter.add_(0.05 * parameter.abs().mean() * torch.sign(torch.randn(parameter.shape, generator=random)).double())
    stored = {f"head.{name}": tensor for name, tensor in head.items()}
    stored |= {f"teacher.{name}": p.detach().float() for name, p in names_of(teacher, vit_names)}
    # What is stored is what is computed with.
    with torch.no_grad():
        for name, parameter in names_of(teacher, vit_names):
            parameter.copy_(stored[f"teacher.{name}"].double())
    views = numbers(batches[0])
    loss, _ = loss_of(student, teacher, centre.double(), TEMP, views)
    loss.backward()
    stored |= {"centre": centre, "loss": loss.detach().float()}
    stored |= {"global.pixels": torch.cat(views[:2]).float(), "local.pixels": torch.cat(views[2:]).float()}
    stored |= {f"grad.{name}": p.grad.float() for name, p in names_of(student, vit_names)}
    answers = {
        "batches": [[[bytes(p.flatten().tolist()).hex() for p in view] for view in batch] for batch in batches],
    }
    student.zero_grad()
    fifty(student, batches, answers)
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, GOLDEN / "dino.safetensors")
    (GOLDEN / "dino.json").write_text(json.dumps(answers) + "\n")
    print(loss.item(), answers["losses"][::10])


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    main()
