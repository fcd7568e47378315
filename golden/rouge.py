"""Makes rouge.json: what rouge-score says of small texts.

    pip install rouge-score
    python golden/rouge.py
"""

import json
import random
from pathlib import Path

from rouge_score.rouge_scorer import RougeScorer
from text import nasty

KINDS = ["rouge1", "rouge2", "rougeL"]


def main():
    draw = random.Random(3)
    summaries = nasty()
    references = []
    for _ in range(2):
        texts = []
        for line in summaries:
            words = line.split(" ")
            draw.shuffle(words) if draw.random() < 0.3 else None
            kept = [word for word in words if draw.random() < 0.8] + draw.sample(["a", "dog", "Ein", "the", "7"], 2)
            texts.append(" ".join(kept))
        references.append(texts)
    scorer = RougeScorer(KINDS)
    cases = {}
    for name, used in {"one": references[:1], "two": references}.items():
        scores = [scorer.score_multi([texts[i] for texts in used], summary) for i, summary in enumerate(summaries)]
        cases[name] = {
            kind: [100 * sum(getattr(score[kind], part) for score in scores) / len(scores) for part in ("precision", "recall", "fmeasure")]
            for kind in KINDS
        }
    answers = {"summaries": summaries, "references": references, **cases}
    path = Path(__file__).resolve().parent / "rouge.json"
    path.write_text(json.dumps(answers, indent=1, ensure_ascii=True) + "\n")
    print(cases)


if __name__ == "__main__":
    main()
