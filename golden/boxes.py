"""Makes boxes.json: boxes that are there, boxes that were found, and COCO's twelve numbers of them, computed by pycocotools; and
matching.json: matrices of costs, and the least sum of a matching, computed by scipy.

    pip install pycocotools numpy scipy
    python golden/boxes.py

Cases are random and adversarial: equal scores, boxes twice, crowds, pictures without boxes, boxes of exactly the areas at which sizes
change, more than a hundred boxes in a picture. README.md says what the file holds.
"""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from scipy.optimize import linear_sum_assignment

GOLDEN = Path(__file__).resolve().parent
NAMES = ["AP", "AP50", "AP75", "APsmall", "APmedium", "APlarge", "AR1", "AR10", "AR100", "ARsmall", "ARmedium", "ARlarge"]


def case(seed):
    random = np.random.default_rng(seed)
    images, categories = int(random.integers(1, 6)), int(random.integers(1, 4))
    annotations, detections = [], []
    for image in range(images):
        for _ in range(random.integers(0, 9)):
            kind = random.integers(0, 8)
            side = [32.0, 96.0][random.integers(0, 2)]
            w, h = (side, side) if kind == 0 else random.integers(1, [40, 200][random.integers(0, 2)], 2).astype(float)
            x, y = random.integers(0, 400, 2).astype(float)
            annotation = {"image_id": image, "category_id": int(random.integers(1, categories + 1)), "bbox": [x, y, float(w), float(h)]}
            annotation |= {"area": float(w * h * (1 if kind < 4 else round(random.uniform(0.3, 1), 3))), "iscrowd": int(kind == 7)}
            annotations.append(annotation | {"id": len(annotations) + 1})
            for _ in range(random.integers(0, 4)):
                jitter = [0, 0, 0, 0] if random.integers(0, 3) == 0 else random.integers(-9, 10, 4)
                box = np.maximum(np.array(annotation["bbox"]) + jitter, [0, 0, 1, 1])
                category = annotation["category_id"] if random.integers(0, 5) else int(random.integers(1, categories + 2))
                detections.append((image, category, box, random.uniform()))
        crowd = 130 if seed % 7 == 0 and image == 0 else random.integers(0, 5)
        for _ in range(crowd):
            box = np.concatenate([random.integers(0, 400, 2), random.integers(1, 150, 2)]).astype(float)
            detections.append((image, int(random.integers(1, categories + 1)), box, random.uniform()))
    ties = seed % 3 == 0
    found = [
        {"image_id": i, "category_id": c, "bbox": [float(x) for x in b], "score": round(s, 1) if ties else round(s, 6)}
        for i, c, b, s in detections
    ]
    names = [{"id": i + 1, "name": f"c{i + 1}"} for i in range(categories)]
    there = {"images": [{"id": i, "file_name": f"{i}.png"} for i in range(images)], "annotations": annotations, "categories": names}
    return there, found


def scores(there, found):
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = json.loads(json.dumps(there))
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(json.loads(json.dumps(found))), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return dict(zip(NAMES, evaluation.stats.tolist()))


def cases(count):
    seed = 0
    while count:
        there, found = case(seed)
        seed += 1
        if found:  # pycocotools reads no empty lists
            count -= 1
            yield there, found, scores(there, found)


def matrices(count):
    """Rows, columns, costs and the least sum; every third matrix has many equal costs."""
    random = np.random.default_rng(3)
    for i in range(count):
        rows, columns = random.integers(0, 60 if i % 50 == 9 else 13, 2)
        costs = random.integers(0, 4, (rows, columns)) if i % 3 == 0 else random.normal(size=(rows, columns)).round(4)
        yield int(rows), int(columns), costs.ravel().tolist(), float(costs[linear_sum_assignment(costs)].sum())


def main():
    (GOLDEN / "matching.json").write_text(json.dumps(list(matrices(60)), separators=(",", ":")) + "\n")
    stored = [{"references": t, "detections": f, "scores": s} for t, f, s in cases(8)]
    (GOLDEN / "boxes.json").write_text(json.dumps(stored, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
