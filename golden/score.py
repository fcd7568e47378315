"""Makes score.json: what sacreBLEU says about small texts, for our scores to be held against.

    pip install sacrebleu==2.6.0
    python golden/score.py

Every set of texts is scored with several options. All sentences were written for this file; long and
shuffled lines are drawn from a fixed seed.
"""

import json
import random
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF, TER

GOLDEN = Path(__file__).resolve().parent

PLAIN = (
    [
        "A dog runs across the green meadow.",
        "Two children are playing with a red ball on the beach.",
        "The man in the blue shirt reads a newspaper.",
        "Nobody knows where the old bridge leads.",
        "She sings.",
    ],
    [
        "A dog is running across a green meadow.",
        "Two kids play with a red ball at the beach.",
        "A man in a blue shirt is reading the newspaper.",
        "Nobody knows where the old bridge leads.",
        "She is singing loudly.",
    ],
    [
        "The dog runs over the green grass.",
        "On the beach, two children play with a ball that is red.",
        "The man wearing a blue shirt reads his newspaper.",
        "No one knows to where that old bridge leads.",
        "She sings.",
    ],
)

QUOTES = (
    [
        '"Well," he said, "it\'s half-done..."',
        "&quot;Escaped&quot; &amp; &lt;marked&gt; &amp;lt; <skipped> text",
        "„Nein“, sagte sie – »niemals«!",
        "What?! (Really?) [yes] {no} a/b a_b x^2 ~5% #7 @home",
        "'tis the dogs' day; isn't it: yes.",
    ],
    [
        '"Well", he said, "it is half done ..."',
        '"Escaped" & <marked> < text',
        "„Nein“ sagte sie, »niemals!«",
        "What? Really?! (yes) [no] a / b a_b x^2 5% # 7 @home",
        "'Tis the dog's day, isn't it? Yes.",
    ],
)

NUMBERS = (
    [
        "It cost $1,234.50, i.e. 3-4 times 12.5 %.",
        "In 1999-2001 there were 7,000,000.00 of them.",
        ".5 and 5. and 5.5, 6,6 ,7 8-",
        "Room 12b, 3rd floor, call +49-30-123456.",
        "½ of ٣ is ²/₃ of Ⅻ.",
    ],
    [
        "It cost $ 1234.50, i. e. 3 - 4 times 12,5 %.",
        "From 1999 to 2001 there were 7,000,000 of them.",
        "0.5 and 5 and 5.5 , 6,6, 7 8 -",
        "Room 12 b, 3rd floor, call +49 30 123456.",
        "½ of ٣ is ² / ₃ of Ⅻ .",
    ],
)

SCRIPTS = (
    [
        "我们明天去公园，好吗？",
        "今日は天気がいいですね。散歩に行きましょう！",
        "كتاب جديد على الطاولة، أليس كذلك؟",
        "Ένας ΣΟΦΟΣ άνθρωπος",
        "नमस्ते, आप कैसे हैं?",
        "🙂 fun 👩‍👩‍👧 ok → €5 ± ¥6",
        "e\u0301te\u0301 versus été, İstanbul ISTANBUL",
    ],
    [
        "明天我们去公园好吗？",
        "今日はいい天気ですね。散歩しましょう。",
        "على الطاولة كتاب جديد، أليس كذلك؟",
        "ένας σοφος ΑΝΘΡΩΠΟΣ",
        "नमस्ते! आप कैसे हैं?",
        "🙂 funny 👨‍👩‍👧 OK → € 5 ± ¥ 6",
        "été versus e\u0301te\u0301, istanbul İSTANBUL",
    ],
)

EMPTY = (
    ["", "not empty", "   ", "the same", "", "a\u00a0b\u3000c\x1cd\re"],
    ["not empty", "", "something", "the same", "", "a b c d e"],
    ["", "", "some thing", "same", "", "a b"],
)

SHORT = (["yes", "no way", "a b c"], ["yes", "no", "c b a"])

NOTHING_ALIKE = (["alpha beta gamma delta epsilon"], ["one two three four five six"], ["uno due"])

CASE = (
    ["THE CAT SAT ON THE MAT .", "the Cat Sat On a Mat"],
    ["The cat sat on the mat.", "The cat sat on a mat"],
)


def shuffled():
    """Sentences whose words, or pieces of them, stand in other places."""
    random_ = random.Random(1)
    sentence = "when the last ferry had left we walked back along the empty shore and told each other old stories"
    words = sentence.split()
    hypotheses, references = [], []
    for _ in range(6):
        order = words[:]
        for _ in range(random_.randrange(1, 4)):
            start, length = random_.randrange(len(order)), random_.randrange(1, 7)
            piece = order[start : start + length]
            del order[start : start + length]
            place = random_.randrange(len(order) + 1)
            order[place:place] = piece
        hypotheses.append(" ".join(order))
        references.append(" ".join(words))
    random_.shuffle(words)
    return hypotheses + [" ".join(words)], references + references[:1]


def long_lines():
    """Lines beyond the beam, the longest shift and the number of shifts that TER looks at."""
    random_ = random.Random(2)

    def line(length, words):
        return " ".join(f"w{random_.randrange(words)}" for _ in range(length))

    lengths = [(180, 180, 400), (90, 260, 9), (260, 90, 9), (1, 70, 3), (2, 130, 3), (130, 2, 3), (60, 60, 3)]
    pairs = [(line(a, words), line(b, words)) for a, b, words in lengths]
    # A piece of 40 words that stands 60 words off, and one that stands 45 words off.
    for length, distance in [(40, 60), (12, 45)]:
        words = [f"v{i}" for i in range(200)]
        piece = words[20 : 20 + length]
        rest = words[:20] + words[20 + length :]
        moved = rest[: 20 + distance] + piece + rest[20 + distance :]
        pairs.append((" ".join(moved), " ".join(words)))
    return [hypothesis for hypothesis, _ in pairs], [reference for _, reference in pairs]


SETS = {
    "plain": PLAIN[:2],
    "plain, two references": PLAIN,
    "plain, three references of which two are the same": PLAIN + PLAIN[2:],
    "quotes": QUOTES,
    "numbers": NUMBERS,
    "scripts": SCRIPTS,
    "empty lines": EMPTY[:2],
    "empty lines, two references": EMPTY,
    "short": SHORT,
    "one word": (["word"], ["word"]),
    "only empty": (["", ""], ["", ""]),
    "nothing but a reference": (["", ""], ["something is", "here"]),
    "nothing but a hypothesis": (["something is", "here"], ["", ""]),
    "nothing alike": NOTHING_ALIKE[:2],
    "nothing alike, two references": NOTHING_ALIKE,
    "case": CASE,
    "shuffled": shuffled(),
    "long lines": long_lines(),
}
TOKENIZERS = ["13a", "intl", "char", "none"]
OPTIONS = [(tokenize, lowercase) for tokenize in TOKENIZERS for lowercase in [False, True]]


def score(hypothesis, references, tokenize, lowercase):
    metrics = {
        "bleu": BLEU(tokenize=tokenize, lowercase=lowercase),
        "chrf": CHRF(lowercase=lowercase),
        "chrf++": CHRF(lowercase=lowercase, word_order=2),
        "ter": TER(),
    }
    scores = {name: metric.corpus_score(hypothesis, references).score for name, metric in metrics.items()}
    signature = {name: metric.get_signature().format() for name, metric in metrics.items()}
    return {"tokenize": tokenize, "lowercase": lowercase, **scores, "signature": signature}


def main():
    sets = []
    for name, (hypothesis, *references) in SETS.items():
        answers = [score(hypothesis, references, *options) for options in OPTIONS]
        sets.append({"name": name, "hypothesis": hypothesis, "references": references, "answers": answers})
    with open(GOLDEN / "score.json", "w", encoding="utf-8") as file:
        json.dump(sets, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
