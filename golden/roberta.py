"""Makes small RoBERTa folders as transformers writes them, and what it answers with them.

    python golden/roberta.py            golden/roberta/ and golden/roberta.safetensors

There is a folder for each task, and one of XLM-R. Some have the tokenizers of roberta_text.py, and roberta.json has what they make of
texts. As in bert.py, whose parts are used, answers are computed
in float64 from the numbers in the files and rounded to f32 at the end. README.md says what each folder holds.
"""

import json
import shutil

import bert
import roberta_text
import torch
from safetensors.torch import save_file
from spans import spans
from transformers import (
    AutoTokenizer,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)
from transformers.utils import logging

FOLDERS = bert.GOLDEN / "roberta"

CASES = {
    "hidden": (RobertaModel, {"hidden_act": "gelu_new"}),
    # The head for masks has the exact GELU whatever the layers have.
    "masked": (RobertaForMaskedLM, {"hidden_act": "relu"}),
    "sequence": (
        RobertaForSequenceClassification,
        {"id2label": dict(enumerate(bert.NAMES)), "label2id": {name: number for number, name in enumerate(bert.NAMES)}},
    ),
    "token": (RobertaForTokenClassification, {"num_labels": 5, "classifier_dropout": 0.3}),
    "answer": (RobertaForQuestionAnswering, {}),
    "multilingual": (XLMRobertaForMaskedLM, {}),
}


def plain(kind, **fields):
    config = {
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        # The first two rows are of no token.
        "max_position_embeddings": 66,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
    }
    return (XLMRobertaConfig if kind is XLMRobertaForMaskedLM else RobertaConfig)(**config | fields)


# The folders with a tokenizer.
TOKENIZERS = {"masked": "byte_pairs", "answer": "byte_pairs", "multilingual": "sentencepiece"}

MASKED = ["a dog <mask>.", "<mask> alte Mann läuft <mask> Gras."]
QUESTIONS = ["Who runs?", "Where is the café?"]
CONTEXTS = ["the old man sleeps.", "Ein Hund läuft im Gras, at 7:30 in the café? a woman in a red coat sits near the river."]


def of_tokenizers():
    """What the models with tokenizers answer: tokens for masks, spans for questions."""
    stored = {"masked": MASKED, "questions": QUESTIONS, "contexts": CONTEXTS, "filled": {}}
    with torch.inference_mode():
        for case in ["masked", "multilingual"]:
            tokenizer, model = AutoTokenizer.from_pretrained(FOLDERS / case), CASES[case][0].from_pretrained(FOLDERS / case).eval()
            stored["filled"][case] = []
            for text in MASKED:
                ids = tokenizer(text, return_tensors="pt")
                places = (ids["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
                best = model(**ids).logits[0, places].softmax(-1).topk(3)
                rows = zip(best.indices.tolist(), best.values.tolist())
                stored["filled"][case].append([[list(pair) for pair in zip(*row)] for row in rows])
        tokenizer, model = AutoTokenizer.from_pretrained(FOLDERS / "answer"), RobertaForQuestionAnswering.from_pretrained(FOLDERS / "answer").eval()
        stored["spans"] = [[spans(model, tokenizer, question, context, 64, 8, 3, 6, False) for context in CONTEXTS] for question in QUESTIONS]
    (bert.GOLDEN / "roberta.json").write_text(json.dumps(stored, indent=0, ensure_ascii=False) + "\n")


def main():
    shutil.rmtree(FOLDERS, ignore_errors=True)
    random = torch.Generator().manual_seed(11)
    ids, _ = bert.texts(random)
    types = [torch.zeros_like(text) for text in ids]
    stored = {"ids": torch.cat(ids).int(), "lengths": torch.tensor(bert.LENGTHS, dtype=torch.int32)}
    for case, (kind, fields) in CASES.items():
        if case in TOKENIZERS:
            shutil.copytree(roberta_text.FOLDER / TOKENIZERS[case], FOLDERS / case)
            fields = fields | {"vocab_size": len(AutoTokenizer.from_pretrained(FOLDERS / case))}
        model = kind(plain(kind, **fields))
        bert.draw(model, random)
        model.save_pretrained(FOLDERS / case)
        stored |= bert.answers(case, kind, FOLDERS / case, ids, types, random)
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, bert.GOLDEN / "roberta.safetensors")
    of_tokenizers()


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
