"""Makes the golden files of tokenizers: small models, a nasty text, and what the libraries make of it.

    pip install -r golden/requirements.txt
    python golden/text.py              # writes golden/text
    python golden/text.py multi30k     # writes golden/text/multi30k.json; needs ../shared, see README.md

The models are trained on the sentences below, so they know little and much of the nasty text is unknown to them:
that is where tokenizers differ.
"""

import io
import json
import logging
import random
import shutil
import struct
import sys
import zlib
from pathlib import Path

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, GPT2Tokenizer, MarianTokenizer

GOLDEN = Path(__file__).resolve().parent
TEXT = GOLDEN / "text"
SHARED = GOLDEN.parent.parent / "shared"

SUBJECTS = ["a dog", "the old man", "two children", "my neighbour's cat", "a woman in a red coat", "ein Hund",
            "der alte Mann", "zwei Kinder", "die Katze des Nachbarn", "eine Frau im roten Mantel"]
VERBS = ["runs", "is sitting", "are playing", "sleeps", "looks", "läuft", "sitzt", "spielen", "schläft", "schaut"]
PLACES = ["on the grass.", "near the river!", "beside 12 green bottles,", "at 7:30 in the café?", "im Gras.",
          "am Fluß!", "neben 12 grünen Flaschen,", "um 7.30 Uhr im Café?", "(without a doubt)", "– ohne Zweifel –"]

NASTY = [
    "A dog runs on the grass.",
    "",
    " ",
    "   \t  ",
    "  leading, double  and trailing  ",
    "tab\tseparated\t\tcolumns",
    "no\u00a0break\u202fspaces\u3000and\u2003wide ones",
    "zero\u200bwidth\u200dmarks\u200c and\ufeffbyte order",
    "soft\u00adhyphen and word\u2060joiner",
    "family 👨‍👩‍👧‍👦 flag 🏳️‍🌈 skin 👍🏽 keycap 1️⃣ country 🇩🇪🇫🇷",
    "👩🏿‍🚀👩🏿‍🚀",
    "composed é ö ñ ế, apart e\u0301 o\u0308 n\u0303 e\u0302\u0301 e\u0301\u0302",
    "stacked z\u0351\u036b\u0343\u0369\u035b a\u0323\u0307\u0302 A\u030a Å Å",
    "marks alone \u0301\u0308 and before a\u0301\u0323b",
    "日本語のテキスト、東京タワーとｶﾀｶﾅ。",
    "中文文本，没有空格！全角ＡＢＣ１２３",
    "한국어 텍스트 한\u1112\u1161\u11ab 각",
    "مرحبا بالعالم، هذا نص ﷺ لاإله",
    "שָׁלוֹם עוֹלָם",
    "नमस्ते दुनिया क्षत्रिय",
    "ภาษาไทยไม่มีช่องว่าง",
    "Привет, мир! Ёлка й",
    "ligatures ﬁ ﬂ ﬀ ß ẞ Ǆ ŉ, squares ㌔ ㍿ ℃ № ½ ⅷ ①",
    "quotes “a” ‘b’ «c» „d“ ‹e› ''f'' `g`",
    "dashes - – — ― − ‐ … ⋯",
    "control \x00\x01\x02\x07\x08\x0b\x0c\x0e\x1b\x1f\x7f end",
    "more control \x80\x85\x8f\x90\x9f\u2028\u2029 end",
    "carriage return\r in the middle and at the end\r",
    "replacement \ufffd private \ue000 noncharacter \uffff \U0010ffff",
    "mathematical 𝐀𝓑ℂ 𝟙𝟚 and 𠀋 beyond the plane",
    "the visible space ▁ and ▁▁two ▁of them",
    "</s> <unk> <pad> <s> [CLS] [SEP] [UNK] <|endoftext|> written out",
    "a</s>b<unk>c <pad>",
    "<0x41> <0xE2><0x96> bytes written out",
    ">>fra<< A dog runs.",
    ">>fra<<A dog >>deu<< runs.",
    " >>fra<< not at the start",
    ">>unknown<< language, >> not << one",
    "<sep>user<sep>defined<url>symbols <url><sep> and<se p>",
    "don't can't we'll it's I'm you're THEY'VE o'clock",
    "snake_case camelCase CONSTANT_CASE a.b.c x=y+1; foo(bar)[0] #tag @name",
    "https://example.org/path?query=1&b=2#top user@example.com",
    "1234567890 1,234,567.89 3.14159 0x1F -42 1e-10 ٣٤٥ ५६७",
    "!!!??? ... ,,, ;;; ::: *** ~~~ ^^^ $$$ %%%",
    "x" * 150,
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
    "ab" * 80 + " " + "ba" * 80,
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
    "İstanbul ıI ǅ ſ ﬅ Σς",
    "a \u0300 combining after a space, and \u0300at a start",
    "q\u0307\u0323 and q\u0323\u0307 are the same",
    "ﾊﾟﾋﾞ ｶﾞ か\u3099 は\u309a",
    "die Katze des Nachbarn schläft im roten Mantel.",
    "Der brau ne Hund liegt auf einem blauen Bettt",  # ttt can be cut in two ways that cost the same but for rounding
]


def corpus():
    draw = random.Random(1)
    return [f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(PLACES)}" for _ in range(600)]


def nasty():
    """The lines above, and lines of characters from all over Unicode, with spaces and letters between them."""
    draw = random.Random(2)
    pools = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0x1100, 0x11FF),
             (0x1E00, 0x1FFF), (0x2000, 0x2BFF), (0x3000, 0x33FF), (0xAC00, 0xACFF), (0xF900, 0xFFFD), (0x1D400, 0x1D7FF),
             (0x1F300, 0x1FAFF)]
    lines = list(NASTY)
    for _ in range(40):
        pool = draw.sample(pools, 3) + [(0x61, 0x7A), (0x300, 0x30F)]
        line = ""
        for _ in range(draw.randint(5, 30)):
            low, high = draw.choice(pool)
            line += draw.choice([chr(draw.randint(low, high)), chr(draw.randint(low, high)), " ", "dog"])
        lines.append(line)
    return lines


def train_sentencepiece(name, **options):
    quiet = dict(minloglevel=2, num_threads=1, hard_vocab_limit=False)
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=written, **quiet, **options)
    model = ModelProto.FromString(written.getvalue())
    model.normalizer_spec.normalization_rule_tsv = ""  # a path of this machine
    (TEXT / f"{name}.model").write_bytes(model.SerializeToString())
    return sentencepiece.SentencePieceProcessor(model_file=str(TEXT / f"{name}.model"))


def of_sentencepiece(model, lines):
    ids = [model.encode(line) for line in lines]
    answers = {"ids": ids, "text": [model.decode(line) for line in ids]}
    if model.unk_id() in sum(ids, []):
        # Where all is known, the pieces are the names of the ids.
        answers["pieces"] = [" ".join(model.encode(line, out_type=str)) for line in lines]
    return answers


def sentencepieces(lines):
    """Every choice that changes how text is cut."""
    symbols = dict(user_defined_symbols=["<sep>", "<url>", "dog", "ein"])
    yield "unigram", nmt_nfkc(lines)
    yield "unigram_symbols", train_sentencepiece(
        "unigram_symbols", model_type="unigram", vocab_size=120, normalization_rule_name="identity",
        add_dummy_prefix=False, remove_extra_whitespaces=False, character_coverage=0.98, **symbols)
    yield "bpe_symbols", train_sentencepiece(
        "bpe_symbols", model_type="bpe", vocab_size=200, normalization_rule_name="identity",
        remove_extra_whitespaces=False, control_symbols=["<ctl>"], pad_id=3, **symbols)
    yield "bpe_bytes", train_sentencepiece(
        "bpe_bytes", model_type="bpe", vocab_size=450, normalization_rule_name="identity", byte_fallback=True,
        treat_whitespace_as_suffix=True, split_by_whitespace=False)
    yield "bpe_symbols_unused", unused("bpe_symbols")
    yield "unigram_symbols_unused", unused("unigram_symbols")


def unused(name):
    """The same model, but every third piece takes part in merges only."""
    model = ModelProto.FromString((TEXT / f"{name}.model").read_bytes())
    for piece in model.pieces[::3]:
        if piece.type == ModelProto.SentencePiece.NORMAL and len(piece.piece) > 1:
            piece.type = ModelProto.SentencePiece.UNUSED
    (TEXT / f"{name}_unused.model").write_bytes(model.SerializeToString())
    return sentencepiece.SentencePieceProcessor(model_file=str(TEXT / f"{name}_unused.model"))


def nmt_nfkc(lines):
    """The rules of nmt_nfkc that the nasty text can touch, as a file for the trainer: the whole table has 240 kB."""
    whole = train_sentencepiece("whole", model_type="unigram", vocab_size=420, byte_fallback=True)
    table = ModelProto.FromString(whole.serialized_model_proto()).normalizer_spec.precompiled_charsmap
    (TEXT / "whole.model").unlink()
    (length,) = struct.unpack_from("<I", table)
    units, strings = struct.unpack_from(f"<{length // 4}I", table, 4), table[4 + length:]
    offset = lambda unit: unit >> 10 << ((unit & 1 << 9) >> 6)
    rules, todo = {}, [(offset(units[0]), b"")]
    while todo:
        node, key = todo.pop()
        for byte in range(1, 256):
            unit = units[node ^ byte]
            if unit & (1 << 31 | 0xFF) == byte:
                child = node ^ byte ^ offset(unit)
                todo.append((child, key + bytes([byte])))
                if unit >> 8 & 1:
                    begin = units[child] & (1 << 31) - 1
                    rules[key + bytes([byte])] = strings[begin:strings.index(0, begin)]
    text = set("".join(lines)) | set("abcdefghijklmnopqrstuvwxyz")
    hexadecimal = lambda data: " ".join(f"{ord(character):X}" for character in data.decode())
    kept = {key: value for key, value in rules.items() if set(key.decode()) <= text}
    path = TEXT / "rules.tsv"
    path.write_text("".join(f"{hexadecimal(key)}\t{hexadecimal(value)}\n" for key, value in sorted(kept.items())))
    model = train_sentencepiece(
        "unigram", model_type="unigram", vocab_size=420, byte_fallback=True, normalization_rule_tsv=str(path))
    path.unlink()
    assert [model.encode(line) for line in lines] == [whole.encode(line) for line in lines]
    return model


def marian(lines):
    """Two models, a vocabulary that lacks some of their pieces and has pieces of neither, and language tokens."""
    folder = TEXT / "marian"
    folder.mkdir()
    shutil.copy(TEXT / "bpe_symbols.model", folder / "source.spm")
    shutil.copy(TEXT / "unigram_symbols.model", folder / "target.spm")
    sides = [sentencepiece.SentencePieceProcessor(model_file=str(folder / name)) for name in ["source.spm", "target.spm"]]
    pieces = [side.id_to_piece(i) for side in sides for i in range(4, side.get_piece_size())]
    tokens = ["</s>", "<unk>", ">>fra<<", ">>deu<<", *dict.fromkeys(p for i, p in enumerate(pieces) if i % 7), "日", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}, ensure_ascii=False))
    tokenizer = MarianTokenizer.from_pretrained(folder)
    source = [tokenizer(line).input_ids for line in lines]
    target = [tokenizer(text_target=line).input_ids for line in lines]
    decode = lambda ids: tokenizer.decode(ids, skip_special_tokens=True, use_source_tokenizer=False)
    return {"ids": source, "target": target, "text": [decode(ids) for ids in target]}


def gpt2(lines):
    folder = TEXT / "gpt2"
    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.model.save(str(folder))
    tokenizer = GPT2Tokenizer.from_pretrained(folder)
    ids = [tokenizer(line).input_ids for line in lines]
    return {"ids": ids, "text": [tokenizer.decode(line, skip_special_tokens=True) for line in ids]}


def bert(lines, name, lowercase):
    folder = TEXT / name
    folder.mkdir()
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=250, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase}))
    tokenizer = BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=lowercase)
    ids = [tokenizer(line).input_ids for line in lines]
    # `decode` of the `tokenizers` library itself: transformers would tidy the result once more or not, by its version.
    decode = lambda ids: tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=True)
    return {"ids": ids, "text": [decode(line) for line in ids]}


def unigram_json(lines):
    """A `tokenizer.json` of another make."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    (TEXT / "json").mkdir()
    tokenizer.save(str(TEXT / "json" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = [tokenizer.encode(line).ids for line in lines]
    return {"ids": ids, "text": [tokenizer.decode(line) for line in ids]}


def write(name, answers):
    lines = len(next(iter(answers.values())))
    rows = [json.dumps({key: answers[key][i] for key in answers}, ensure_ascii=False, separators=(",", ":")) for i in range(lines)]
    (TEXT / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")


def digest(rows):
    """The CRC-32 of lines of numbers, each ended by a newline, as `attentive tokenize --ids` writes them."""
    return zlib.crc32("".join(" ".join(map(str, row)) + "\n" for row in rows).encode())


def multi30k():
    """Sums over every line of Multi30k, for all models here and the reference checkpoint."""
    lines = {}
    for language in ["en", "de"]:
        parts = [SHARED / "data/multi30k" / f"{part}.{language}" for part in ["train", "val", "test_2016_flickr"]]
        lines[language] = "".join(path.read_text(encoding="utf-8") for path in parts).split("\n")[:-1]
    encoders = {}
    for path in sorted(TEXT.glob("*.model")):
        encoders[path.name] = sentencepiece.SentencePieceProcessor(model_file=str(path)).encode
    gpt2, cased, uncased = GPT2Tokenizer.from_pretrained(TEXT / "gpt2"), TEXT / "bert", TEXT / "bert_uncased"
    encoders["gpt2"] = lambda line: gpt2(line).input_ids
    for folder, lowercase in [(cased, False), (uncased, True)]:
        tokenizer = BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=lowercase)
        encoders[folder.name] = lambda line, tokenizer=tokenizer: tokenizer(line).input_ids
    for name, folder in [("marian", TEXT / "marian"), ("marian-multi30k", SHARED / "reference/marian-multi30k")]:
        tokenizer = MarianTokenizer.from_pretrained(folder)
        encoders[name] = lambda line, tokenizer=tokenizer: tokenizer(line).input_ids
    minilm = Tokenizer.from_file(str(SHARED / "reference/minilm/tokenizer.json"))
    minilm.no_padding()
    minilm.no_truncation()
    encoders["minilm"] = lambda line: minilm.encode(line).ids
    sums = {name: {language: digest(map(encode, lines[language])) for language in lines} for name, encode in encoders.items()}
    (TEXT / "multi30k.json").write_text(json.dumps(sums, indent=1) + "\n")


def main():
    logging.disable(logging.WARNING)
    if sys.argv[1:] == ["multi30k"]:
        return multi30k()
    shutil.rmtree(TEXT, ignore_errors=True)
    TEXT.mkdir()
    lines = nasty()
    (TEXT / "nasty.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    for name, model in sentencepieces(lines):
        write(name, of_sentencepiece(model, lines))
    write("marian", marian(lines))
    write("gpt2", gpt2(lines))
    write("bert", bert(lines, "bert", False))
    write("bert_uncased", bert(lines, "bert_uncased", True))
    write("json", unigram_json(lines))


if __name__ == "__main__":
    main()
