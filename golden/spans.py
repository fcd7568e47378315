"""Spans of a text that answer a question, as the pipeline `question-answering` of transformers 4.57 found them: later versions lack it."""

import torch


def spans(model, encode, question, context, window, overlap, top, longest, no_answer):
    """The `top` answers of at most `longest` tokens, from windows of at most `window` tokens that share `overlap`."""
    encoded = encode(question, context, truncation="only_second", max_length=window, stride=overlap, return_overflowing_tokens=True,
                     return_offsets_mapping=True)
    found, nothing = [], 1e6
    for number in range(len(encoded["input_ids"])):
        inputs = {key: torch.tensor(encoded[key][number])[None] for key in ["input_ids", "token_type_ids", "attention_mask"] if key in encoded}
        output, own = model(**inputs), encoded.sequence_ids(number)
        allowed = torch.tensor([place == 0 or text == 1 for place, text in enumerate(own)])
        begin, end = (x[0].where(allowed, torch.tensor(-10000.0)).softmax(0) for x in (output.start_logits, output.end_logits))
        nothing = min(nothing, (begin[0] * end[0]).item())
        begin[0] = end[0] = 0
        scores = (begin[:, None] * end[None]).triu().tril(longest - 1).flatten()
        for place in scores.argsort(descending=True, stable=True)[:top].tolist():
            first, last = divmod(place, len(own))
            if not (allowed[first] and allowed[last]):
                continue
            word = lambda place: encoded.word_to_chars(number, encoded.token_to_word(number, place), sequence_index=1)
            start, stop = word(first).start, word(last).end
            same = [one for one in found if one["answer"].lower() == context[start:stop].lower()]
            if same:
                same[0]["score"] += scores[place].item()
            else:
                found.append({"answer": context[start:stop], "start": start, "end": stop, "score": scores[place].item()})
    if no_answer:
        found.append({"answer": "", "start": 0, "end": 0, "score": nothing})
    return sorted(found, key=lambda one: -one["score"])[:top]
