"""What transformers answers with the small models of bert/: vectors, masked words, classes, tags.

usage: python golden/tasks.py

Writes tasks.json: the words of a vocabulary, texts, and the answers. The models are those that bert.py made.
"""
import json
import os
import tempfile

import torch
import transformers

from spans import spans

here = os.path.dirname(os.path.abspath(__file__))
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "a", "dog", "cat", "run", "##s", "##ning", "the", "man",
         "wo", "##man", "in", "lon", "##don", "ada", "love", "##lace", "play", "##ed", "big", "small", "red", "house", "and"]
# As many as the models have.
words += [f"word{i}" for i in range(len(words), 100)]
texts = ["A dog runs.", "the woman in London, running", "Ada Lovelace and a small red house and a big dog and a cat", "zzz", ""]
masked = ["a [MASK] runs.", "The [MASK] plays and the [MASK] runs"]
pairs = [["a dog runs.", "a cat"], ["the man played", "the woman played and the man played and the woman ran in the red house"]]


question_texts = ["the dog", "a cat"]
contexts = ["A dog runs.", "the woman in London, running and a small red house and a big dog and a cat, and the man played in London.",
            "Ada Lovelace.  in  the house"]
# What is asked for: window, overlap, top, longest, no answer.
asked = [[16, 4, 1, 15, False], [12, 3, 4, 3, False], [16, 0, 3, 2, True]]


def load(kind, name):
    return getattr(transformers, kind).from_pretrained(os.path.join(here, "bert", name)).eval()


with tempfile.TemporaryDirectory() as folder:
    open(os.path.join(folder, "vocab.txt"), "w").write("".join(word + "\n" for word in words))
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    limit = load("BertModel", "hidden").config.max_position_embeddings

    def encode(*text):
        return tokenizer(*text, truncation=True, max_length=limit, return_tensors="pt")

    answers = {"words": words, "texts": texts, "masked_texts": masked, "pairs": pairs}
    with torch.inference_mode():
        model = load("BertModel", "hidden")
        vectors = [model(**encode(text)).last_hidden_state[0] for text in texts]
        answers["mean"] = [(x.mean(0) / x.mean(0).norm()).tolist() for x in vectors]
        answers["first"] = [x[0].tolist() for x in vectors]

        model = load("BertForMaskedLM", "masked")
        answers["filled"] = []
        for text in masked:
            ids = encode(text)
            places = (ids["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
            best = model(**ids).logits[0, places].softmax(-1).topk(3)
            answers["filled"].append([[[t, s] for t, s in zip(*row)] for row in zip(best.indices.tolist(), best.values.tolist())])

        model = load("BertForSequenceClassification", "sequence")
        names = [model.config.id2label[i] for i in range(model.config.num_labels)]
        inputs = [[text] for text in texts] + pairs
        answers["classes"] = [dict(zip(names, model(**encode(*one)).logits[0].softmax(-1).tolist())) for one in inputs]

        model = load("BertForTokenClassification", "token")
        answers["tags"] = []
        for text in texts:
            ids = encode(text)
            best = model(**ids).logits[0].softmax(-1).max(-1)
            seen, tags = set(), []
            for place, word in enumerate(ids.word_ids(0)):
                if word is not None and word not in seen:
                    seen.add(word)
                    span = ids.word_to_chars(0, word)
                    tags.append([text[span.start:span.end], model.config.id2label[int(best.indices[place])], float(best.values[place])])
            answers["tags"].append(tags)

        model = load("BertForSequenceClassification", "rank")
        # As batches of one: alone, transformers takes an empty second text for none.
        answers["ranks"] = [[float(model(**encode([query], [text])).logits) for text in texts] for query in question_texts]

        model = load("BertForQuestionAnswering", "answer")
        answers |= {"questions": question_texts, "contexts": contexts, "asked": asked}
        answers["spans"] = [[spans(model, tokenizer, question, context, *how) for how in asked]
                            for question in question_texts for context in contexts]

json.dump(answers, open(os.path.join(here, "tasks.json"), "w"), indent=0)
print("wrote tasks.json")
