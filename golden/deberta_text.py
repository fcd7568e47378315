"""Makes the golden files of texts for DeBERTa: small vocabularies, and what transformers makes of hard text with them.

    python golden/deberta_text.py              # writes golden/deberta_text

The hard text and its inputs are those of bert_text.py; the models are made as in roberta_text.py. SentencePiece models are read as the
converter of transformers reads them (`DebertaV2Converter`), with the model's own table of characters: `DebertaV2Tokenizer` of
transformers 5 leaves that table out. Of byte pairs there are no pairs of texts: transformers 5 puts one more [SEP] between them than
transformers 4, with which these models were trained.
"""

import json
import shutil
from types import SimpleNamespace

import bert_text
import text
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import DebertaTokenizer, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import DebertaV2Converter

FOLDER = bert_text.GOLDEN / "deberta_text"


def first():
    folder = FOLDER / "first"
    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["[PAD]", "[CLS]", "[SEP]", "[UNK]"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(text.corpus(), trainer)
    tokenizer.model.save(str(folder))
    path = folder / "vocab.json"
    vocabulary = json.loads(path.read_text())
    vocabulary["[MASK]"] = len(vocabulary)
    path.write_text(json.dumps(vocabulary, ensure_ascii=False))
    mask = {"content": "[MASK]", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True,
            "__type": "AddedToken"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "DebertaTokenizer", "mask_token": mask}) + "\n")
    return DebertaTokenizer.from_pretrained(folder)


def later():
    folder = FOLDER / "later"
    folder.mkdir()
    model = ModelProto.FromString((text.TEXT / "unigram.model").read_bytes())
    pieces = [piece for piece in model.pieces if piece.type != ModelProto.SentencePiece.BYTE]
    unknown, begin, end = pieces[:3]
    padding = ModelProto.SentencePiece(piece="[PAD]", score=0.0, type=ModelProto.SentencePiece.CONTROL)
    unknown.piece, begin.piece, end.piece = "[UNK]", "[CLS]", "[SEP]"
    del model.pieces[:]
    model.pieces.extend([padding, begin, end, unknown, *pieces[3:]])
    spec = model.trainer_spec
    spec.byte_fallback, spec.pad_id, spec.bos_id, spec.eos_id, spec.unk_id = False, 0, 1, 2, 3
    spec.pad_piece, spec.bos_piece, spec.eos_piece, spec.unk_piece = "[PAD]", "[CLS]", "[SEP]", "[UNK]"
    path = folder / "spm.model"
    path.write_bytes(model.SerializeToString())
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False}) + "\n")
    ids = {piece.piece: number for number, piece in enumerate(model.pieces)}
    stub = SimpleNamespace(vocab_file=str(path), split_by_punct=False, do_lower_case=False, add_prefix_space=True, legacy=True,
                           convert_tokens_to_ids=ids.get)
    converted = DebertaV2Converter(stub).converted()
    names = dict(pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", bos_token="[CLS]", eos_token="[SEP]", unk_token="[UNK]",
                 mask_token="[MASK]")
    return PreTrainedTokenizerFast(tokenizer_object=converted, **names)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    cases = list(bert_text.inputs(bert_text.nasty() + bert_text.MORE))
    texts = [case for case in cases if "words" not in case and "pair" not in case]
    for name, tokenizer, cases in [("first", first(), texts), ("later", later(), cases)]:
        rows = [json.dumps(bert_text.row(tokenizer, case), ensure_ascii=False, separators=(",", ":")) for case in cases]
        (FOLDER / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
