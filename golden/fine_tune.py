"""Fine-tunes a folder of a BERT with transformers: what `attentive train --task classify|tag --from` is held against.

    python golden/fine_tune.py classify FOLDER train.tsv dev.tsv [--seeds 1 2 3] [--epochs 3]
    python golden/fine_tune.py tag FOLDER train.bio dev.bio [--seeds 1 2 3] [--epochs 2]

The files are those that `attentive train` reads. The same settings there:

    attentive train --task TASK --from FOLDER --data TRAIN --valid-data DEV --out OUT --batch-size 32 --batch-tokens 32768 \\
        --epochs N --learning-rate 5e-5 --schedule linear --warmup 50 --weight-decay 0.01 --clip 1 --ema 0 --longest 128 --seed SEED

Each seed prints the accuracy, or seqeval's F1 of spans, after the last epoch, and the minutes of training without those of validation.
Products of matrices are computed in bf16, as `--precision auto` computes them on processors with AMX. Nothing of it is kept.
"""

import argparse
import json
import random
import statistics
import time

import torch
import transformers
from seqeval.metrics import f1_score

BATCH, RATE, WARMUP, DECAY, CLIP, LONGEST = 32, 5e-5, 50, 0.01, 1.0, 128
IGNORED = -100


def classes(path):
    """Words and one label of each line."""
    for line in open(path, encoding="utf-8"):
        label, text = line.rstrip("\n").split("\t", 1)
        yield text, label


def tags(path):
    """Words and tags of each sentence."""
    words, labels = [], []
    for line in [*open(path, encoding="utf-8"), "\n"]:
        if line.strip():
            word, label = line.rstrip("\n").split("\t")
            words.append(word)
            labels.append(label)
        elif words:
            yield words, labels
            words, labels = [], []


def encode(task, tokenizer, examples, numbers):
    """Token ids of each example, and its label or the label of each token: a word's first token answers for it."""
    for text, label in examples:
        encoded = tokenizer(text, truncation=True, max_length=LONGEST, is_split_into_words=task == "tag")
        if task == "classify":
            yield encoded["input_ids"], numbers[label]
            continue
        words = encoded.word_ids()
        first = [word is not None and word not in words[:i] for i, word in enumerate(words)]
        yield encoded["input_ids"], [numbers[label[word]] if new else IGNORED for word, new in zip(words, first)]


def batch_of(examples):
    longest = max(len(ids) for ids, _ in examples)
    pad = lambda rows, value: torch.tensor([row + [value] * (longest - len(row)) for row in rows])
    ids = [ids for ids, _ in examples]
    labels = [label for _, label in examples]
    labels = torch.tensor(labels) if isinstance(labels[0], int) else pad(labels, IGNORED)
    return {"input_ids": pad(ids, 0), "attention_mask": pad([[1] * len(row) for row in ids], 0), "labels": labels}


def score(task, model, examples, labels):
    """The share of right classes, or the F1 of spans."""
    model.eval()
    order = sorted(range(len(examples)), key=lambda i: len(examples[i][0]))
    wanted, found = [], []
    for begin in range(0, len(order), BATCH):
        batch = batch_of([examples[i] for i in order[begin : begin + BATCH]])
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            best = model(**{name: batch[name] for name in ("input_ids", "attention_mask")}).logits.argmax(-1)
        for want, got in zip(batch["labels"].tolist(), best.tolist()):
            if task == "classify":
                wanted.append(want)
                found.append(got)
            else:
                places = [i for i, label in enumerate(want) if label != IGNORED]
                wanted.append([labels[want[i]] for i in places])
                found.append([labels[got[i]] for i in places])
    model.train()
    if task == "classify":
        return sum(a == b for a, b in zip(wanted, found)) / len(wanted)
    return f1_score(wanted, found)


def fine_tune(options, seed, train, valid, labels):
    torch.manual_seed(seed)
    kind = {
        "classify": transformers.AutoModelForSequenceClassification,
        "tag": transformers.AutoModelForTokenClassification,
    }[options.task]
    model = kind.from_pretrained(options.folder, num_labels=len(labels)).train()
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, fused=True)
    steps = options.epochs * -(-len(train) // BATCH)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP, steps)
    order = random.Random(seed)
    begin = time.perf_counter()
    for _ in range(options.epochs):
        shuffled = order.sample(train, len(train))
        for at in range(0, len(shuffled), BATCH):
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(**batch_of(shuffled[at : at + BATCH])).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
    minutes = (time.perf_counter() - begin) / 60
    return score(options.task, model, valid, labels), minutes


def main():
    options = argparse.ArgumentParser()
    options.add_argument("task", choices=["classify", "tag"])
    for name in ["folder", "train", "valid"]:
        options.add_argument(name)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--epochs", type=int, default=3)
    options = options.parse_args()
    torch.set_num_threads(2)

    read = {"classify": classes, "tag": tags}[options.task]
    train, valid = list(read(options.train)), list(read(options.valid))
    labels = sorted({label for _, of in train for label in ([of] if options.task == "classify" else of)})
    numbers = {label: i for i, label in enumerate(labels)}
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder)
    train, valid = (list(encode(options.task, tokenizer, examples, numbers)) for examples in (train, valid))
    scores = []
    for seed in options.seeds:
        result, minutes = fine_tune(options, seed, train, valid, labels)
        scores.append(result)
        print(json.dumps({"seed": seed, "score": round(100 * result, 2), "minutes": round(minutes, 2)}), flush=True)
    print(json.dumps({"mean": round(100 * statistics.mean(scores), 2)}))


if __name__ == "__main__":
    main()
