"""Gives the folders of golden/bart/ the tokenizers of translators among many languages, and asks transformers what they translate.

    python golden/bart.py            first: it makes the models
    python golden/languages.py       golden/languages.json, and tokenizers in golden/bart/mbart, m2m and nllb

The three tokenizers are as the Hub has them: pieces alone (mBART-50), pieces with a vocabulary (M2M-100), `tokenizer.json` (NLLB, whose
model is that of `m2m`). README.md says what each file holds.
"""

import io
import json
import shutil

import sentencepiece
import torch
from bart import FOLDERS, GOLDEN, NEW_TOKENS, load
from t5 import lines
from transformers import M2M100Tokenizer, MBart50Tokenizer, NllbTokenizer
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M100_CODES
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
from transformers.utils import logging

NLLB_CODES = ["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"]
LINES = ["Weights and inputs are f32.", "A batch is packed", "Größe 世界 is unknown, and so is ж."]
SPOKEN = {"mbart": ("en_XX", "fr_XX"), "m2m": ("en", "fr"), "nllb": ("eng_Latn", "fra_Latn")}


def pieces(kind):
    """Pieces as fairseq's models have them: `<unk>`, `<s>` and `</s>` come first."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()),
        model_writer=written,
        vocab_size=130,
        model_type=kind,
        character_coverage=0.995,
        normalization_rule_name="identity",
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()


def tokenizers():
    shutil.rmtree(FOLDERS / "nllb", ignore_errors=True)
    shutil.copytree(FOLDERS / "m2m", FOLDERS / "nllb", ignore=lambda _, names: [n for n in names if "token" in n or "piece" in n or "vocab" in n])
    for name in SPOKEN:
        (FOLDERS / name / "sentencepiece.bpe.model").write_bytes(pieces("bpe" if name == "nllb" else "unigram"))

    def write(folder, file, value):
        (FOLDERS / folder / file).write_text(json.dumps(value, ensure_ascii=False) + "\n")

    write("mbart", "special_tokens_map.json", {"additional_special_tokens": MBART_CODES})
    write("mbart", "tokenizer_config.json", {"tokenizer_class": "MBart50Tokenizer", "src_lang": "en_XX"})
    processor = sentencepiece.SentencePieceProcessor(model_file=str(FOLDERS / "m2m" / "sentencepiece.bpe.model"))
    known = sorted(processor.id_to_piece(i) for i in range(3, processor.get_piece_size()))
    write("m2m", "vocab.json", {word: i for i, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *known])})
    write("m2m", "special_tokens_map.json", {"additional_special_tokens": [f"__{code}__" for code in M2M100_CODES["m2m100"]]})
    write("m2m", "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer", "src_lang": "en"})
    nllb = NllbTokenizer.from_pretrained(FOLDERS / "nllb", additional_special_tokens=NLLB_CODES)
    nllb.save_pretrained(FOLDERS / "nllb")
    (FOLDERS / "nllb" / "sentencepiece.bpe.model").unlink()
    return {
        "mbart": MBart50Tokenizer.from_pretrained(FOLDERS / "mbart"),
        "m2m": M2M100Tokenizer.from_pretrained(FOLDERS / "m2m"),
        "nllb": nllb,
    }


def spoken(name, tokenizer):
    """What a translator makes of the lines, greedily."""
    source, target = SPOKEN[name]
    tokenizer.src_lang = source
    language = tokenizer.get_lang_id(target) if name == "m2m" else tokenizer.convert_tokens_to_ids(target)
    model, results = load(name), []
    for line in LINES:
        ids = tokenizer(line).input_ids
        found = model.generate(
            torch.tensor([ids]),
            forced_bos_token_id=language,
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            return_dict_in_generate=True,
            output_logits=True,
        )
        tokens = found.sequences[0][1:].tolist()
        scores = [logits[0].log_softmax(-1)[token].item() for logits, token in zip(found.logits, tokens)]
        text = tokenizer.decode(tokens, skip_special_tokens=True)
        results.append({"ids": ids, "tokens": tokens, "scores": [round(score, 5) for score in scores], "text": text})
    print(name, [(result["ids"], result["text"]) for result in results])
    return {"source": source, "target": target, "lines": results}


def main():
    found = tokenizers()
    answers = {"lines": LINES} | {name: spoken(name, tokenizer) for name, tokenizer in found.items()}
    (GOLDEN / "languages.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
