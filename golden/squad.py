"""Makes squad.json: the exact match and the F1 of answers that are a little off, as torchmetrics counts them with SQuAD's rules.

    pip install torchmetrics
    python golden/squad.py
"""

import json
import random
from pathlib import Path

from text import nasty
from torchmetrics.functional.text import squad


def main():
    draw = random.Random(5)
    cases = []
    for line in nasty():
        words = line.split()
        if len(words) < 2:
            continue
        known = [" ".join(words[: draw.randint(1, len(words))]) for _ in range(draw.randint(1, 3))]
        found = " ".join(draw.sample(words, draw.randint(1, len(words)))) if draw.random() < 0.6 else draw.choice(known)
        found = draw.choice([found, found.upper(), f"the {found}.", f"A {found}"])
        cases.append({"known": known, "found": found})
    for case in cases:
        answers = {"answer_start": [0] * len(case["known"]), "text": case["known"]}
        scores = squad({"prediction_text": case["found"], "id": "1"}, {"answers": answers, "id": "1"})
        case |= {"exact": scores["exact_match"].item(), "f1": scores["f1"].item()}
    path = Path(__file__).resolve().parent / "squad.json"
    path.write_text(json.dumps(cases, indent=1, ensure_ascii=True) + "\n")
    exact = sum(case["exact"] for case in cases)
    print(len(cases), exact / len(cases), sum(case["f1"] for case in cases) / len(cases))


if __name__ == "__main__":
    main()
