"""Makes small Marian folders as others write them, and what transformers answers with them.

    python golden/marian.py            golden/marian/, golden/marian.safetensors, golden/torch.bin
                                       and golden/torch_before_zip.bin
    python golden/marian.py SHARED     and the first logits of the reference checkpoint in the folder SHARED

Each folder has something that folders in the wild have: separate or untied tables, a bias of the logits, swish,
`pytorch_model.bin`, f16. As in make.py, answers are computed in float64 from the numbers in the files and
rounded to f32 at the end. README.md says what each folder holds.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import MarianConfig, MarianMTModel
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
FOLDERS = GOLDEN / "marian"

# What differs from `plain` below: fields of the configuration, the file, the type.
CASES = {
    "tied": {"activation_function": "swish", "file": "pytorch_model.bin"},
    "separate": {
        "activation_function": "gelu",
        "decoder_vocab_size": 17,
        "share_encoder_decoder_embeddings": False,
        "pad_token_id": 16,
        "decoder_start_token_id": 16,
        "scale_embedding": False,
    },
    "untied": {
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "file": "pytorch_model.bin",
        "dtype": torch.float16,
    },
    "half": {"activation_function": "swish", "tie_word_embeddings": False, "dtype": torch.float16},
    "brain": {"dtype": torch.bfloat16},
    "uneven": {"decoder_attention_heads": 2, "decoder_ffn_dim": 28},
}

# Some tokens of the reference checkpoint.
SENTENCE = [22, 73, 16, 3, 209, 1234, 60, 52, 4321, 7, 0]


def plain(**fields):
    config = {
        "vocab_size": 23,
        "d_model": 12,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 20,
        "decoder_ffn_dim": 20,
        "activation_function": "relu",
        "dropout": 0.1,
        "max_position_embeddings": 16,
        "scale_embedding": True,
        "pad_token_id": 22,
        "decoder_start_token_id": 22,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    return MarianConfig(**config | fields)


def make(case, options, random):
    """Writes the folder of a case and returns a batch with its logits."""
    options = dict(options)
    file, dtype = options.pop("file", "model.safetensors"), options.pop("dtype", torch.float32)
    model = MarianMTModel(plain(**options))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                centre = 1.0 if "norm.weight" in name else 0.0
                parameter.copy_(centre + 0.3 * torch.randn(parameter.shape, generator=random))
        model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=random))
    model.to(dtype)
    folder = FOLDERS / case
    model.save_pretrained(folder)
    if file == "pytorch_model.bin":
        # What older versions wrote: all names of a tied table with one storage, and the positions.
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / file)
    path = folder / "generation_config.json"
    settings = json.loads(path.read_text()) | {"num_beams": 6, "bad_words_ids": [[16]]}
    path.write_text(json.dumps(settings, indent=2) + "\n")

    source, target = ([torch.randint(1, 16, (n,), generator=random) for n in ns] for ns in ([5, 3], [4, 2]))
    start = torch.tensor([model.config.decoder_start_token_id])
    sources = [torch.cat([sentence, torch.tensor([0])]) for sentence in source]
    return folder, sources, [torch.cat([start, sentence]) for sentence in target]


def logits(folder, sources, targets, dtype):
    """All logits of a batch, one sentence after the other."""
    model = MarianMTModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    model = model.to(dtype).eval()
    # Positions are computed; rounded ones in a file are not what is meant.
    for stack in [model.model.encoder, model.model.decoder]:
        stack.embed_positions.weight.data.copy_(stack.embed_positions.create_weight())
    with torch.no_grad():
        rows = [model(s[None], decoder_input_ids=t[None]).logits[0] for s, t in zip(sources, targets)]
    return torch.cat(rows)


def answers(name, folder, sources, targets):
    exact, single = (logits(folder, sources, targets, dtype) for dtype in (torch.float64, torch.float32))
    classes = torch.arange(exact.shape[1]) != json.loads((folder / "config.json").read_text())["pad_token_id"]
    error = ((exact - single)[:, classes].norm() / exact[:, classes].norm()).item()
    print(f"{name}: {list(exact.shape)}, float32 is off by {error:.1e}")
    return {
        f"{name}.source.ids": torch.cat(sources).int(),
        f"{name}.source.lengths": torch.tensor([len(s) for s in sources], dtype=torch.int32),
        f"{name}.decoder.ids": torch.cat(targets).int(),
        f"{name}.decoder.lengths": torch.tensor([len(t) for t in targets], dtype=torch.int32),
        f"{name}.logits": exact.float(),
    }


def torch_file():
    """All that tensors in a file of PyTorch may be; the test that reads it has the numbers."""
    counted = torch.arange(12.0).view(3, 4)
    tensors = {
        "rows": counted,
        "again": counted,
        "turned": counted.t(),
        "part": counted[1:, 1:3],
        "parameter": nn.Parameter(torch.tensor([0.5, -0.5])),
        "scalar": torch.tensor(7.0),
        "none": torch.zeros(0, 3),
        "double": torch.tensor([0.25, 1e300], dtype=torch.float64),
        "half": torch.tensor([0.25, -2.0], dtype=torch.float16),
        "brain": torch.tensor([0.25, -3.0], dtype=torch.bfloat16),
        "long": torch.tensor([3]),
        "spread": torch.ones(1).expand(5),
        "number": 3,
    }
    torch.save(tensors, GOLDEN / "torch.bin")
    # What files were before PyTorch 1.6, without the tensor that is refused.
    del tensors["spread"]
    torch.save(tensors, GOLDEN / "torch_before_zip.bin", _use_new_zipfile_serialization=False)


def main():
    torch_file()
    path = GOLDEN / "marian.safetensors"
    old = load_file(path) if path.exists() else {}
    stored = {name: tensor for name, tensor in old.items() if name.startswith("reference.")}
    shutil.rmtree(FOLDERS, ignore_errors=True)
    random = torch.Generator().manual_seed(6)
    for case, options in CASES.items():
        stored |= answers(case, *make(case, options, random))
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1]) / "reference" / "marian-multi30k"
        start = json.loads((folder / "config.json").read_text())["decoder_start_token_id"]
        stored |= answers("reference", folder, [torch.tensor(SENTENCE)], [torch.tensor([start])])
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
