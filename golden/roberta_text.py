"""Makes the golden files of texts for RoBERTa and XLM-R: small vocabularies, and what transformers makes of hard text with them.

    python golden/roberta_text.py              # writes golden/roberta_text

The hard text and its inputs are those of bert_text.py. The SentencePiece model is golden/text/unigram.model without its pieces for
bytes, so that its table of characters is small.
"""

import json
import shutil

import bert_text
import text
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import RobertaTokenizer, XLMRobertaTokenizer

FOLDER = bert_text.GOLDEN / "roberta_text"


def byte_pairs():
    folder = FOLDER / "byte_pairs"
    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(text.corpus(), trainer)
    tokenizer.model.save(str(folder))
    path = folder / "vocab.json"
    vocabulary = json.loads(path.read_text())
    vocabulary["<mask>"] = len(vocabulary)
    path.write_text(json.dumps(vocabulary, ensure_ascii=False))
    mask = {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True,
            "__type": "AddedToken"}
    config = {"tokenizer_class": "RobertaTokenizer", "mask_token": mask}
    (folder / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    return RobertaTokenizer.from_pretrained(folder)


def sentencepiece():
    folder = FOLDER / "sentencepiece"
    folder.mkdir()
    model = ModelProto.FromString((text.TEXT / "unigram.model").read_bytes())
    pieces = [piece for piece in model.pieces if piece.type != ModelProto.SentencePiece.BYTE]
    del model.pieces[:]
    model.pieces.extend(pieces)
    model.trainer_spec.byte_fallback = False
    (folder / "sentencepiece.bpe.model").write_bytes(model.SerializeToString())
    mask = {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True,
            "__type": "AddedToken"}
    config = {"tokenizer_class": "XLMRobertaTokenizer", "mask_token": mask}
    (folder / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    return XLMRobertaTokenizer.from_pretrained(folder)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    more = [line.replace("[MASK]", "<mask>").replace("[CLS]", "<s>").replace("[SEP]", "</s>") for line in bert_text.MORE]
    cases = list(bert_text.inputs(bert_text.nasty() + more))
    # Words of byte pairs have no spaces before them: transformers refuses them.
    texts = [case for case in cases if "words" not in case]
    for name, tokenizer, cases in [("byte_pairs", byte_pairs(), texts), ("sentencepiece", sentencepiece(), cases)]:
        rows = [json.dumps(bert_text.row(tokenizer, case), ensure_ascii=False, separators=(",", ":")) for case in cases]
        (FOLDER / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
