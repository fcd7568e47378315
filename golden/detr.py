"""Makes small DETR folders as transformers writes them, and what transformers answers with them.

    pip install -r golden/requirements.txt scipy
    python golden/detr.py            golden/detr/ and golden/detr.safetensors

`bottleneck` has the blocks of ResNet-50, `basic` those of ResNet-18; weights, and the statistics of the frozen norms, are random.
Answers are computed in float64 from the numbers in the files, a picture at a time, and rounded to f32 at the end. The loss is that of
all pictures together. README.md says what the file holds.
"""

import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import DetrConfig, DetrForObjectDetection
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

GOLDEN = Path(__file__).resolve().parent
FOLDERS = GOLDEN / "detr"
SIZES = [(37, 50), (64, 33), (21, 40)]
LABELS = {0: "circle", 1: "square", 2: "star"}
# Of each picture: classes and boxes. One picture has nothing in it.
TARGETS = [([0, 2], [[0.3, 0.4, 0.2, 0.5], [0.6, 0.5, 0.5, 0.3]]), ([], []), ([1, 1, 2], [[0.5, 0.5, 0.9, 0.8], [0.2, 0.7, 0.1, 0.2], [0.8, 0.3, 0.2, 0.4]])]

CASES = {
    "bottleneck": {"layer_type": "bottleneck", "embedding_size": 6, "hidden_sizes": [8, 12, 16, 20], "depths": [1, 2, 1, 1]},
    "basic": {"layer_type": "basic", "embedding_size": 5, "hidden_sizes": [5, 8], "depths": [1, 2]},
}


def make(name, backbone):
    torch.manual_seed(len(name))
    stages = len(backbone["depths"])
    config = DetrConfig(
        use_timm_backbone=False,
        backbone_config={"model_type": "resnet", "out_features": [f"stage{stages}"], **backbone},
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=20,
        num_queries=6,
        dropout=0.0,
        # With it, transformers norms hidden states on their way to the next layer, too, and those of the last layer twice.
        auxiliary_loss=name == "bottleneck",
        id2label=LABELS,
    )
    model = DetrForObjectDetection(config)
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if key.endswith("running_var"):
                value.copy_(0.5 + torch.rand(value.shape))
            elif value.dtype == torch.float32:
                value.add_(0.2 * torch.randn(value.shape))
    folder = FOLDERS / name
    model.save_pretrained(folder)


def answers(name):
    model = DetrForObjectDetection.from_pretrained(FOLDERS / name, attn_implementation="eager", dtype=torch.float32).double().eval()
    # What DETR learns of its backbone: all but the stem and the first stage.
    for key, parameter in model.named_parameters():
        first = "backbone" in key and ("embedder" in key or "stages.0." in key)
        parameter.requires_grad_(not first)
    torch.manual_seed(7)
    pictures = [torch.randn(1, 3, *size).double() for size in SIZES]
    outputs = [model(pixel_values=x, output_attentions=True, output_hidden_states=True) for x in pictures]
    stored = {}
    for i, (x, output) in enumerate(zip(pictures, outputs)):
        stored[f"pixels.{i}"] = x[0].permute(1, 2, 0)
        stored[f"{name}.{i}.memory"] = output.encoder_last_hidden_state[0]
        stored[f"{name}.{i}.logits"] = output.logits[0]
        stored[f"{name}.{i}.boxes"] = output.pred_boxes[0]
        for kind in ["encoder_attentions", "decoder_attentions", "cross_attentions"]:
            stored[f"{name}.{i}.{kind}"] = torch.stack([attention[0] for attention in output[kind]])
    raw = []
    for layer in model.model.decoder.layers:
        layer.register_forward_hook(lambda _, __, y: raw.append(y))
    last = [model.model(pixel_values=x).last_hidden_state for x in pictures]
    # Those of all layers but the last are only for auxiliary losses.
    states = torch.stack([model.model.decoder.layernorm(torch.cat(raw[::2])), torch.cat(last)])
    stored[f"{name}.states"] = states
    classes, boxes = model.class_labels_classifier(states), model.bbox_predictor(states).sigmoid()
    labels = [{"class_labels": torch.tensor(c, dtype=torch.long), "boxes": torch.tensor(b).double().reshape(-1, 4)} for c, b in TARGETS]
    model.config.auxiliary_loss = True
    torch.set_default_dtype(torch.float64)  # the weights of classes have it
    loss, parts, _ = ForObjectDetectionLoss(classes[-1], labels, "cpu", boxes[-1], model.config, classes, boxes)
    torch.set_default_dtype(torch.float32)
    loss.backward()
    stored[f"{name}.loss"] = torch.stack([loss, parts["loss_ce"], parts["loss_bbox"], parts["loss_giou"]])
    # The gradients take the places of the weights, and saving gives them their names in a file.
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(torch.full_like(parameter, torch.nan) if parameter.grad is None else parameter.grad)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for key, gradient in load_file(Path(folder) / "model.safetensors").items():
            if not gradient.isnan().any() and "running" not in key and "normalization" not in key:
                stored[f"{name}.grad.{key}"] = gradient
    return stored


def main():
    shutil.rmtree(FOLDERS, ignore_errors=True)
    stored = {}
    for name, backbone in CASES.items():
        make(name, backbone)
        stored |= answers(name)
    stored = {name: value.detach().to(torch.float32).contiguous() for name, value in stored.items()}
    save_file(stored, GOLDEN / "detr.safetensors")


main()
