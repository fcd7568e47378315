"""Makes small folders of ViT, DeiT, DINO and DINOv2 as transformers writes them, and what it answers with them.

    python golden/vit.py            golden/vit/ and golden/vit.safetensors

As in bert.py, whose parts are used, answers are computed in float64 from the numbers in the files and rounded to f32 at the end.
README.md says what each folder holds.
"""

import shutil

import bert
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    DeiTConfig,
    DeiTForImageClassification,
    DeiTForImageClassificationWithTeacher,
    Dinov2Config,
    Dinov2ForImageClassification,
    Dinov2Model,
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil
from transformers.utils import logging

FOLDERS = bert.GOLDEN / "vit"
NAMES = ["cat", "dog", "bird", "horse", "tree"]
CLASSES = {"id2label": dict(enumerate(NAMES)), "label2id": {name: number for number, name in enumerate(NAMES)}}

# The class of each folder, its configuration, and what differs from `plain` below.
CASES = {
    "hidden": (ViTModel, ViTConfig, {"pooler_output_size": 24}),
    "dino": (ViTModel, ViTConfig, {}),
    "classes": (ViTForImageClassification, ViTConfig, CLASSES | {"qkv_bias": False, "hidden_act": "gelu_new"}),
    "oblong": (ViTForImageClassification, ViTConfig, CLASSES | {"image_size": [16, 24], "patch_size": 8}),
    "deit": (DeiTForImageClassification, DeiTConfig, CLASSES),
    "teacher": (DeiTForImageClassificationWithTeacher, DeiTConfig, CLASSES),
    "dinov2": (Dinov2ForImageClassification, Dinov2Config, CLASSES | {"mlp_ratio": 2}),
    "gated": (Dinov2Model, Dinov2Config, {"mlp_ratio": 2, "use_swiglu_ffn": True}),
    "registers": (Dinov2WithRegistersModel, Dinov2WithRegistersConfig, {"mlp_ratio": 2, "num_register_tokens": 3}),
}

# Pictures of this size have other positions than those that were learned: more of them, and fewer.
OTHER = {"large": (26, 20), "few": (9, 12)}


def plain(config, **fields):
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 16,
        "patch_size": 4,
    }
    if "mlp_ratio" not in fields:
        sizes["intermediate_size"] = 40
    return config(**sizes | fields)


def run(model, pixels, **options):
    output = model(pixels, output_hidden_states=True, output_attentions=True, **options)
    rows = lambda tensor: tensor.reshape(-1, tensor.shape[-1])
    stored = {f"hidden.{n}": rows(state) for n, state in enumerate(output.hidden_states)}
    # The weights of the second picture: layer, head, query, key.
    stored["attention"] = torch.stack([layer[1] for layer in output.attentions])
    if hasattr(output, "logits"):
        stored["logits"] = output.logits
    else:
        stored["last"] = rows(output.last_hidden_state)
        if model.config.model_type == "vit" and output.pooler_output is not None:
            stored["pooled"] = output.pooler_output
    return stored


def gradients(model, folder):
    """The gradients of the model by the names that its file has."""
    parameters = dict(model.named_parameters())
    stored = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        same = [p for p in parameters.values() if p.shape == tensor.shape and torch.equal(p.detach().float(), tensor)]
        if same and same[0].grad is not None:
            stored[f"grad.{name}"] = same[0].grad
    return stored


def answers(case, kind, folder, random):
    options = {"add_pooling_layer": False} if case == "dino" else {}
    load = lambda dtype: kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, **options).to(dtype).eval()
    exact, single = load(torch.float64), load(torch.float32)
    size = exact.config.image_size
    size = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
    pixels = torch.randn((3, 3, *size), generator=random)
    stored = {"pixels": pixels} | run(exact, pixels.double())
    near = run(single, pixels)
    error = max(((stored[name] - near[name]).norm() / stored[name].norm()).item() for name in near)
    print(f"{case}: float32 is off by {error:.1e}")
    if "logits" in stored and case != "teacher":
        stored["labels"] = torch.tensor([1, 4, 0])
        stored["loss"] = torch.nn.functional.cross_entropy(stored["logits"], stored["labels"])
        stored["loss"].backward()
        stored |= gradients(exact, folder)
    if case != "oblong":
        resizes = {} if "dinov2" in exact.config.model_type else {"interpolate_pos_encoding": True}
        for name, sides in OTHER.items():
            other = torch.randn((2, 3, *sides), generator=random)
            stored[f"{name}.pixels"] = other
            stored[f"{name}.embedded"] = run(exact, other.double(), **resizes)["hidden.0"]
    return {f"{case}.{name}": bert.narrow(tensor) for name, tensor in stored.items()}


def main():
    shutil.rmtree(FOLDERS, ignore_errors=True)
    random = torch.Generator().manual_seed(34)
    stored = {}
    for case, (kind, config, fields) in CASES.items():
        folder = FOLDERS / case
        model = kind(plain(config, **fields), **({"add_pooling_layer": False} if case == "dino" else {}))
        bert.draw(model, random)
        model.save_pretrained(folder)
        ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(folder)
        stored |= answers(case, kind, folder, random)
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, bert.GOLDEN / "vit.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
