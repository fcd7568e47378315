"""Makes small DeBERTa folders as transformers writes them, and what it answers with them.

    python golden/deberta.py            golden/deberta/ and golden/deberta.safetensors

As in bert.py, whose parts are used, answers are computed in float64 from the numbers in the files and rounded to f32 at the end.
README.md says what each folder holds.
"""

import shutil

import bert
import torch
from safetensors.torch import save_file
from transformers import (
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DebertaV2ForQuestionAnswering,
    DebertaV2ForSequenceClassification,
    DebertaV2ForTokenClassification,
    DebertaV2Model,
)
from transformers.utils import logging

FOLDERS = bert.GOLDEN / "deberta"

# As the third version has it.
THIRD = {"relative_attention": True, "position_buckets": 8, "max_relative_positions": 14, "norm_rel_ebd": "layer_norm",
         "share_att_key": True, "pos_att_type": "p2c|c2p", "position_biased_input": False}
FIRST = {"relative_attention": True, "pos_att_type": "p2c|c2p", "position_biased_input": False, "max_relative_positions": -1}

CASES = {
    "hidden": (DebertaV2Model, THIRD),
    "masked": (DebertaV2ForMaskedLM, THIRD),
    "modern": (DebertaV2ForMaskedLM, THIRD | {"legacy": False}),
    "convolved": (DebertaV2ForMaskedLM, THIRD | {"conv_kernel_size": 3, "conv_act": "gelu", "pos_att_type": ["p2c", "c2p"]}),
    # A row for each distance up to 8, matrices of their own, one term, positions at the input, types.
    "sequence": (DebertaV2ForSequenceClassification,
                 {"relative_attention": True, "pos_att_type": ["c2p"], "max_relative_positions": 8, "type_vocab_size": 2,
                  "pooler_hidden_act": "tanh", "cls_dropout": 0.2, "num_labels": 3}),
    "token": (DebertaV2ForTokenClassification, THIRD | {"share_att_key": False, "pos_att_type": "p2c", "num_labels": 5}),
    "answer": (DebertaV2ForQuestionAnswering, THIRD | {"relative_attention": False, "norm_rel_ebd": "none"}),
    "first": (DebertaForMaskedLM, FIRST),
    "first_sequence": (DebertaForSequenceClassification, FIRST | {"num_labels": 2, "pos_att_type": ["p2c"], "max_relative_positions": 6}),
}


def plain(kind, **fields):
    config = {
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        "max_position_embeddings": 16,
    }
    return (DebertaV2Config if "V2" in kind.__name__ else DebertaConfig)(**config | fields)


def main():
    shutil.rmtree(FOLDERS, ignore_errors=True)
    random = torch.Generator().manual_seed(12)
    ids, _ = bert.texts(random)
    types = [torch.zeros_like(text) for text in ids]
    stored = {"ids": torch.cat(ids).int(), "lengths": torch.tensor(bert.LENGTHS, dtype=torch.int32)}
    for case, (kind, fields) in CASES.items():
        model = kind(plain(kind, **fields))
        bert.draw(model, random)
        model.save_pretrained(FOLDERS / case)
        stored |= bert.answers(case, kind, FOLDERS / case, ids, types, random)
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, bert.GOLDEN / "deberta.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
