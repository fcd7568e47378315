"""Makes the golden files of texts for encoders: small BERT vocabularies, and what transformers makes of hard text with them.

    pip install -r golden/requirements.txt
    python golden/bert_text.py              # writes golden/bert_text
    python golden/bert_text.py multi30k     # writes golden/bert_text/multi30k.json; needs ../shared, see README.md

The hard text is golden/text/nasty.txt, which text.py makes. Vocabularies are drawn from it by a rule, so that the same file gives
the same vocabularies.
"""

import json
import logging
import shutil
import sys
import unicodedata
import zlib
from pathlib import Path

from transformers import AutoTokenizer, BertTokenizer

GOLDEN = Path(__file__).resolve().parent
FOLDER = GOLDEN / "bert_text"
SHARED = GOLDEN.parent.parent / "shared"

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
OTHER_SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
WORDS = ["dog", "cat", "run", "##s", "##ning", "the", "old", "man", "Hund", "läuft", "cafe", "café", "##é", "na", "##ive", "is", "a",
         "combin", "##ing", "zero", "width", "##width", "control", "end", "中", "文", "日本", "東", "##京", "ß", "##ß", "i̇", "ﬁ", "don",
         "word", "##word", "unaffable", "un", "##aff", "##able", "[unused1]"]

MORE = [
    "The dog [MASK] runs.",
    "[MASK][MASK] [mask] [ MASK ] [MASK]",
    "[CLS] in the middle [SEP] and [PAD] [UNK] at the end [SEP]",
    "a <mask> of <s> another </s> make",
    "a  <new> dog<new>cat",
    "é" * 99, "é" * 100, "é" * 101, "e\u0301" * 60,
    "dog" * 33, "dog" * 34, "word" + "\u200b" * 200 + "word",
    "dog\u0000cat\ufffdold\u00adman\u200bthe\u2060a",
    "İstanbul ŞİŞLİ ǅ ﬁ ß ẞ ΑΣ ΑΣ.",
    "日本語東京dogｶﾀｶﾅ中文",
    "\u0301\u0301\u0301", "a\u0301", "\u00a0", "\r\n", "\u3000dog\u3000",
    "dog.cat,the;old:man!a?the'old\"man(the)cat[the]{a}<b>|c\\d/e@f#g$h%i^j&k*l-m_n=o+p`q~r",
    "¿dog? ¡cat! «the» „old“ …man— ·a·",
]


def variants():
    """Folders: how each differs from BERT's usual vocabulary and configuration."""
    yield "uncased", dict()
    yield "cased", dict(do_lower_case=False)
    yield "accents", dict(do_lower_case=True, strip_accents=False, tokenize_chinese_chars=False)
    yield "stripped", dict(do_lower_case=False, strip_accents=True)
    roles = ["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"]
    yield "renamed", dict(do_lower_case=False, **dict(zip(roles, OTHER_SPECIAL)))
    new = {"content": "<new>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    yield "added", dict(added_tokens_decoder=lambda size: {str(size): new})
    yield "left", dict(truncation_side="left")


def nasty():
    return (GOLDEN / "text/nasty.txt").read_bytes().decode().split("\n")[:-1]


def vocabulary(lines, config):
    """Special tokens, words, and of all characters those whose number is not one of every third."""
    special = [config.get("pad_token"), config.get("unk_token"), config.get("cls_token"), config.get("sep_token"), config.get("mask_token")]
    special = SPECIAL if special[0] is None else special
    text = "".join(lines)
    text = set(text) | set(text.lower()) | set(unicodedata.normalize("NFD", text)) | set(unicodedata.normalize("NFD", text.lower()))
    characters = [c for c in sorted(text) if ord(c) % 3 and not c.isspace() and unicodedata.category(c)[0] != "C"]
    continued = ["##" + c for c in characters if ord(c) % 2 and c.isalnum()]
    return list(dict.fromkeys([*special, *WORDS, *characters, *continued]))


def make(name, config, lines):
    folder = FOLDER / name
    folder.mkdir()
    tokens = vocabulary(lines, config)
    config = {key: value(len(tokens)) if callable(value) else value for key, value in config.items()}
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8", newline="\n")
    if config:
        config = {"tokenizer_class": "BertTokenizer", **config}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False) + "\n", encoding="utf-8")
    return BertTokenizer.from_pretrained(folder)


def disagreeing(lines):
    """A `tokenizer.json` that asks for truncation and padding and lowercases, and a configuration that does not."""
    folder = FOLDER / "json"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary(lines, {})) + "\n", encoding="utf-8", newline="\n")
    tokenizer = BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=True)
    tokenizer.backend_tokenizer.enable_truncation(8)
    tokenizer.backend_tokenizer.enable_padding(length=8)
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "vocab.txt").unlink()
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": None}
    (folder / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    return BertTokenizer.from_pretrained(folder)


def inputs(lines):
    """One text, two, and words, with and without a limit."""
    for i, line in enumerate(lines):
        yield dict(text=line)
        if i % 5 == 0:
            yield dict(text=line, pair=lines[(i * 7 + 3) % len(lines)])
            yield dict(text=line, pair=lines[(i * 3 + 1) % len(lines)], limit=6 + i % 11)
        if i % 6 == 0:
            yield dict(text=line, limit=3 + i % 13)
        if i % 4 == 0:
            yield dict(words=line.split(" "))
    yield dict(words=["unaffable", "", "dog cat", "\u200b", "don't", "[MASK]", "[SEP]", "é" * 120, "東京", "\u0301", "a"])
    yield dict(words=["unaffable"] * 5, limit=7)
    yield dict(text="", pair="")
    # Rooms that are odd and even, for texts of the same length and of others.
    for first, second in [(9, 9), (9, 8), (8, 9), (9, 2)]:
        for limit in [10, 11]:
            yield dict(text=" ".join(["dog"] * first), pair=" ".join(["cat"] * second), limit=limit)


def encode(tokenizer, case):
    options = dict(return_offsets_mapping=True, return_special_tokens_mask=True, return_token_type_ids=True, padding=False)
    # The stored truncation is left out in both.
    options.update(truncation="longest_first", max_length=case["limit"]) if "limit" in case else options.update(truncation=False)
    # As a batch of one: alone, transformers takes an empty second text for none.
    if "words" in case:
        encoded = tokenizer([case["words"]], is_split_into_words=True, **options)
    else:
        encoded = tokenizer([case["text"]], [case["pair"]] if "pair" in case else None, **options)
    none = lambda numbers: [-1 if number is None else number for number in numbers]
    return {
        "ids": encoded["input_ids"][0],
        "types": encoded["token_type_ids"][0],
        "special": encoded["special_tokens_mask"][0],
        "texts": none(encoded.sequence_ids(0)),
        "words": none(encoded.word_ids(0)),
        "spans": [place for span in encoded["offset_mapping"][0] for place in span],
    }


def row(tokenizer, case):
    """Numbers as strings take half the room; what a template alone decides is left out where it is plain."""
    answer = encode(tokenizer, case)
    whole = len(encode(tokenizer, {key: value for key, value in case.items() if key != "limit"})["ids"])
    answer["cut"] = whole - len(answer["ids"])
    assert all((text == -1) == bool(special) for text, special in zip(answer["texts"], answer["special"]))
    del answer["special"]
    return {"input": case, **{key: " ".join(map(str, value)) if isinstance(value, list) else value for key, value in answer.items()}}


def write(name, tokenizer, cases):
    rows = [json.dumps(row(tokenizer, case), ensure_ascii=False, separators=(",", ":")) for case in cases]
    (FOLDER / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")


def multi30k():
    """The CRC-32 over 1,000 lines of Multi30k with MiniLM, from tokenizer.json and from vocab.txt alone."""
    minilm = SHARED / "reference/minilm"
    english, german = ((SHARED / f"data/multi30k/train.{language}").read_text(encoding="utf-8").split("\n")[:1000]
                       for language in ["en", "de"])
    tokenizers = {"tokenizer.json": AutoTokenizer.from_pretrained(minilm),
                  "vocab.txt": BertTokenizer(vocab=str(minilm / "vocab.txt"), do_lower_case=True)}
    sums = {}
    for name, tokenizer in tokenizers.items():
        cases = {"texts": [dict(text=line) for line in english],
                 "pairs": [dict(text=a, pair=b, limit=32) for a, b in zip(english, german)],
                 "words": [dict(words=line.split(" ")) for line in german]}
        for kind, cases in cases.items():
            answers = [encode(tokenizer, case) for case in cases]
            lines = [" ".join(map(str, answer[key])) for answer in answers for key in ["ids", "types", "texts", "words", "spans"]]
            sums[f"{name} {kind}"] = zlib.crc32("".join(line + "\n" for line in lines).encode())
    (FOLDER / "multi30k.json").write_text(json.dumps(sums, indent=1) + "\n")


def main():
    logging.disable(logging.WARNING)
    if sys.argv[1:] == ["multi30k"]:
        return multi30k()
    kept = FOLDER / "multi30k.json"
    sums = kept.read_bytes() if kept.exists() else None
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    if sums:
        kept.write_bytes(sums)
    lines = nasty() + MORE
    every = {"uncased": 1, "cased": 1}
    for name, config in variants():
        tokenizer = make(name, config, lines)
        write(name, tokenizer, list(inputs(lines if name in every else lines[::4] + MORE)))
    write("json", disagreeing(lines), list(inputs(lines[::4] + MORE)))


if __name__ == "__main__":
    main()
