"""Makes small BERT folders as transformers writes them, and what it answers with them.

    python golden/bert.py            golden/bert/ and golden/bert.safetensors
    python golden/bert.py SHARED     and the vectors of some sentences by the checkpoint `minilm` in the folder SHARED

There is a folder for each task, and one as older versions wrote it. As in make.py, answers are computed in float64 from the
numbers in the files and rounded to f32 at the end. README.md says what each folder holds.
"""

import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
FOLDERS = GOLDEN / "bert"

# Of the classes of `sequence`.
NAMES = ["bad", "fair", "good"]

# The class of each folder, and what differs from `plain` below.
CASES = {
    "hidden": (BertModel, {}),
    "masked": (BertForMaskedLM, {"hidden_act": "gelu_new"}),
    "sequence": (
        BertForSequenceClassification,
        {"hidden_act": "relu", "id2label": dict(enumerate(NAMES)), "classifier_dropout": 0.2}
        | {"label2id": {name: number for number, name in enumerate(NAMES)}},
    ),
    "token": (BertForTokenClassification, {"hidden_act": "quick_gelu", "num_labels": 5, "layer_norm_eps": 1e-3}),
    "answer": (BertForQuestionAnswering, {}),
    "rank": (BertForSequenceClassification, {"num_labels": 1}),
}

LENGTHS = [7, 1, 12, 4]

# All gradients of `masked`, and of the others those that the head, the pooler and the first layer have.
SOME_GRADIENTS = ("classifier", "pooler", "embeddings", "layer.0.attention", "conv", "encoder.LayerNorm")

SENTENCES = [
    "The Transformer reads a whole sentence at once.",
    "A sentence is read by the Transformer as a whole.",
    "It rained in Bergen, again; nobody was surprised.",
]


def plain(**fields):
    config = {
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        "max_position_embeddings": 16,
        "type_vocab_size": 2,
        "pad_token_id": 0,
    }
    return BertConfig(**config | fields)


def draw(model, random):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.lower().replace("_", "").endswith("norm.weight") else 0.0
            parameter.copy_(centre + 0.3 * torch.randn(parameter.shape, generator=random))


def texts(random):
    """Token numbers, types and masks of some texts: the first and last token of each are as in BERT."""
    ids = [torch.randint(5, 100, (n,), generator=random) for n in LENGTHS]
    types = [(torch.arange(n) > n // 2).long() for n in LENGTHS]
    return ids, types


def logits(output):
    """What a head gives: of a head for answers the numbers of beginnings and ends, side by side."""
    if hasattr(output, "start_logits"):
        return torch.stack([output.start_logits, output.end_logits], -1)
    return output.logits


def run(model, ids, types):
    """The answers to each text alone, one after the other."""
    outputs = [
        model(i[None], token_type_ids=t[None], output_hidden_states=True, output_attentions=True)
        for i, t in zip(ids, types)
    ]
    rows = lambda tensors: torch.cat([tensor[0] for tensor in tensors])
    stored = {f"hidden.{n}": rows(states) for n, states in enumerate(zip(*(o.hidden_states for o in outputs)))}
    # The weights of the third text: layer, head, query, key.
    stored["attention"] = torch.stack([layer[0] for layer in outputs[2].attentions])
    if hasattr(outputs[0], "last_hidden_state"):
        if getattr(outputs[0], "pooler_output", None) is not None:
            stored["pooled"] = torch.cat([o.pooler_output for o in outputs])
    elif "SequenceClassification" in type(model).__name__:
        stored["logits"] = torch.cat([o.logits for o in outputs])
    else:
        stored["logits"] = rows([logits(o) for o in outputs])
    return stored


def labels(case, logits, random):
    """Some right answers; -100 leaves a row out."""
    rows, classes = logits.shape
    found = torch.randint(0, classes, (rows,), generator=random)
    if not case.startswith("sequence"):
        found[torch.rand(rows, generator=random) < 0.6] = -100
        found[2] = 1
    return found


def answers(case, kind, folder, ids, types, random):
    models = [
        kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).to(dtype).eval()
        for dtype in (torch.float64, torch.float32)
    ]
    exact, single = (run(model, ids, types) for model in models)
    error = max(((exact[name] - single[name]).norm() / exact[name].norm()).item() for name in exact)
    print(f"{case}: float32 is off by {error:.1e}")
    stored = dict(exact)
    if "logits" in exact and case not in ("answer", "rank"):
        stored["labels"] = labels(case, exact["logits"], random)
        loss = torch.nn.functional.cross_entropy(exact["logits"], stored["labels"], ignore_index=-100)
        loss.backward()
        stored["loss"] = loss
        for name, parameter in models[0].named_parameters():
            if case == "masked" or any(part in name for part in SOME_GRADIENTS):
                stored[f"grad.{name}"] = parameter.grad
    return {f"{case}.{name}": narrow(tensor) for name, tensor in stored.items()}


def narrow(tensor):
    tensor = tensor.detach().clone()
    return tensor.float() if tensor.is_floating_point() else tensor.int()


def old_folder():
    """The weights of `masked` as the first versions wrote them: other names, a buffer, the tied table twice, one more head."""
    config = BertConfig.from_pretrained(FOLDERS / "masked")
    config.architectures = ["BertForPreTraining"]
    config.save_pretrained(FOLDERS / "old")
    model = BertForPreTraining.from_pretrained(FOLDERS / "masked", dtype=torch.float32)
    random = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for part in (model.bert.pooler, model.cls.seq_relationship):
            for parameter in part.parameters():
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=random))
    state = {}
    for name, tensor in model.state_dict().items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        state[name] = tensor
    state["bert.embeddings.position_ids"] = torch.arange(config.max_position_embeddings)[None]
    assert "cls.predictions.decoder.weight" in state and "cls.predictions.bias" in state
    torch.save(state, FOLDERS / "old" / "pytorch_model.bin")


def vectors(folder):
    """The normalised mean of the hidden states of each sentence."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = [torch.tensor(tokenizer(sentence)["input_ids"]) for sentence in SENTENCES]

    def means(dtype):
        model = BertModel.from_pretrained(folder, dtype=torch.float32).to(dtype).eval()
        with torch.no_grad():
            rows = [model(i[None]).last_hidden_state[0].mean(0) for i in ids]
        return torch.nn.functional.normalize(torch.stack(rows), dim=1)

    exact, single = means(torch.float64), means(torch.float32)
    print(f"minilm: float32 is off by {(exact - single).abs().max():.1e}")
    lengths = torch.tensor([len(i) for i in ids], dtype=torch.int32)
    return {"minilm.ids": torch.cat(ids).int(), "minilm.lengths": lengths, "minilm.vectors": exact.float()}


def main():
    path = GOLDEN / "bert.safetensors"
    old = load_file(path) if path.exists() else {}
    stored = {name: tensor for name, tensor in old.items() if name.startswith("minilm.")}
    shutil.rmtree(FOLDERS, ignore_errors=True)
    random = torch.Generator().manual_seed(8)
    ids, types = texts(random)
    stored |= {"ids": torch.cat(ids).int(), "types": torch.cat(types).int()}
    stored["lengths"] = torch.tensor(LENGTHS, dtype=torch.int32)
    for case, (kind, fields) in CASES.items():
        model = kind(plain(**fields))
        draw(model, random)
        model.save_pretrained(FOLDERS / case)
        stored |= answers(case, kind, FOLDERS / case, ids, types, random)
    old_folder()
    if len(sys.argv) > 1:
        stored |= vectors(Path(sys.argv[1]) / "reference" / "minilm")
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
