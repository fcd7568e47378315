"""Makes labels.json: what scikit-learn and seqeval say about small lists of classes and tags.

    pip install -r golden/requirements.txt
    python golden/labels.py

Lists are drawn from a fixed seed, the lists of tags with all that schemes forbid in them.
"""

import json
import random
import warnings
from pathlib import Path

from seqeval.metrics import accuracy_score
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support
from sklearn import metrics

GOLDEN = Path(__file__).resolve().parent

SCHEMES = {
    "IOB2": ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
    "IOB1": ["O", "I-PER", "I-PER", "B-PER", "I-LOC"],
    "IOBES": ["O", "B-PER", "I-PER", "E-PER", "S-PER", "S-LOC", "E-LOC"],
    "bare": ["O", "B", "I", "E", "S"],
    "odd": ["O", "B-a-b", "I-a-b", "I-", "B-", "Ixy", "LOC", "L", ".", ".-x", "o", "I-ä-é", "S-b", "Ö-x"],
}


def classes(draw):
    for name, labels in [("binary", ["0", "1"]), ("three", ["a", "b", "c"]), ("many", [str(i) for i in range(12)])]:
        for count in [1, 7, 60]:
            for right in [0.0, 0.5, 1.0]:
                expected = [draw.choice(labels) for _ in range(count)]
                found = [label if draw.random() < right else draw.choice(labels) for label in expected]
                yield of_classes(name, expected, found)
    yield of_classes("never expected", ["a", "a", "b"], ["c", "c", "c"])


def of_classes(name, expected, found):
    scores = lambda **options: metrics.precision_recall_fscore_support(expected, found, zero_division=0, **options)
    answer = {"name": name, "expected": expected, "found": found, "accuracy": metrics.accuracy_score(expected, found)}
    for average in ["micro", "macro", "weighted"]:
        answer[average] = list(scores(average=average)[:3])
    labels = sorted(set(expected) | set(found))
    each = scores(labels=labels)
    answer["each"] = {label: [float(part[i]) for part in each[:3]] for i, label in enumerate(labels)}
    return answer


def tags(draw):
    for name, scheme in SCHEMES.items():
        for right in [0.0, 0.6, 0.9]:
            expected = [[draw.choice(scheme) for _ in range(draw.randint(1, 9))] for _ in range(25)]
            found = [[tag if draw.random() < right else draw.choice(scheme) for tag in line] for line in expected]
            yield of_tags(name, expected, found)
    yield of_tags("nothing found", [["B-PER", "O"]], [["O", "O"]])


def of_tags(name, expected, found):
    answer = {"name": name, "expected": [" ".join(line) for line in expected], "found": [" ".join(line) for line in found]}
    answer["accuracy"] = accuracy_score(expected, found)
    for average in ["micro", "macro", "weighted"]:
        scores = precision_recall_fscore_support(expected, found, average=average, zero_division=0)
        answer[average] = [float(score) for score in scores[:3]]
    # Of each sentence alone; ends are inclusive.
    answer["spans"] = [get_entities(line) for line in expected]
    return answer


def main():
    warnings.simplefilter("ignore")
    draw = random.Random(1)
    golden = {"classes": list(classes(draw)), "tags": list(tags(draw))}
    (GOLDEN / "labels.json").write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
