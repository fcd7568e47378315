"""Makes small T5 folders as transformers and the Hub have them, and what transformers answers with them.

    pip install -r golden/requirements.txt
    python golden/t5.py              golden/t5/, golden/t5.safetensors and golden/t5.json

`first` is a T5 1.0 as transformers saves it today, with `spiece.model` alone for its tokenizer. `later` is a T5 1.1 with the
`config.json` of older versions, an output of its own, and `tokenizer.json`. Each has learned a little, so that it is unsure of what
it writes. Answers are computed in float64 from the numbers in the files (but for norms and softmax, which T5 computes in f32) and
rounded to f32 at the end. README.md says what each file holds.
"""

import io
import json
import shutil
from pathlib import Path

import sentencepiece
import torch
from safetensors.torch import save_file
from transformers import T5Config, T5ForConditionalGeneration, T5Tokenizer
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
FOLDERS = GOLDEN / "t5"
SOURCES = [8, 1, 37, 4]
TARGETS = [5, 9, 30, 1]
PIECES = 130
EOS = 1
NEW_TOKENS = 16
PROMPTS = ["Weights and inputs are f32.", "A batch is packed:", "The", "`x`, `probe` <extra_id_0> are <extra_id_1>", "Größe 世界 </s>"]

PLAIN = {
    "vocab_size": PIECES + 100 + 4,  # rows that no token has, as the Hub's have some
    "d_model": 24,
    "d_kv": 7,
    "d_ff": 40,
    "num_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 12,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.0,
}
LATER = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 1, "layer_norm_epsilon": 1e-4}

CASES = {
    "greedy": {},
    "greedy, repetitions": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
    "beam": {"num_beams": 4},
    "beam, length penalty": {"num_beams": 3, "length_penalty": 0.3, "early_stopping": True},
    "beam, least length": {"num_beams": 2, "min_new_tokens": 12},
}


def lines():
    """The beginning of README.md. Any text would do; with another one all files are made anew."""
    text = (GOLDEN / "README.md").read_text().split("## parts.safetensors")[0]
    return [line for line in text.splitlines() if line]


def pieces():
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()),
        model_writer=written,
        vocab_size=PIECES,
        model_type="unigram",
        character_coverage=0.995,
        pad_id=0,
        eos_id=EOS,
        unk_id=2,
        bos_id=-1,
        normalization_rule_name="identity",  # the Hub's have NFKC, whose table would be most of the file
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()


def train(model, encode):
    """A little: to write on after a part of a line."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    text = [encode(line) for line in lines() if len(line) > 30]
    for _ in range(300):
        batch = [text[i] for i in torch.randint(0, len(text), (8,))]
        cuts = [int(torch.randint(1, len(ids) - 1, ())) for ids in batch]
        sources = [torch.tensor(ids[:cut] + [EOS]) for ids, cut in zip(batch, cuts)]
        targets = [torch.tensor(ids[cut:] + [EOS]) for ids, cut in zip(batch, cuts)]
        source = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True)
        target = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=-100)
        loss = model(input_ids=source, attention_mask=(source != 0).long(), labels=target).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.2f}")


def older_config(folder):
    """The fields as versions before 5 wrote them."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for name in ["scale_decoder_outputs", "is_gated_act", "dense_act_fn", "dtype", "is_decoder"]:
        del config[name]
    config |= {"tie_word_embeddings": False, "torch_dtype": "float32", "output_past": True, "n_positions": 512}
    path.write_text(json.dumps(config, indent=2) + "\n")


def load(name, dtype=torch.float64):
    folder = FOLDERS / name
    return T5ForConditionalGeneration.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).to(dtype).eval()


def answers(name, pairs):
    model = load(name)
    outputs = [model(input_ids=s[None], labels=t[None], output_attentions=True) for s, t in pairs]
    logits = torch.cat([output.logits[0] for output in outputs])
    third = outputs[2]
    stored = {"logits": logits}
    for kind in ["encoder_attentions", "decoder_attentions", "cross_attentions"]:
        stored[kind] = torch.stack([attention[0] for attention in third[kind]])
    loss = torch.nn.functional.cross_entropy(logits, torch.cat([t for _, t in pairs]))
    loss.backward()
    stored["loss"] = loss
    stored |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    return {f"{name}.{key}": tensor.detach().float().contiguous() for key, tensor in stored.items()}


def written(model, source, settings):
    """The sequences that are found for a source, best first, without the start token."""
    beams = settings.get("num_beams", 1)
    found = model.generate(
        torch.tensor([source]),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        num_return_sequences=beams,
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
    results = []
    for i, sequence in enumerate(found.sequences):
        tokens = sequence[1:].tolist()
        if EOS in tokens:
            tokens = tokens[: tokens.index(EOS) + 1]
        score = round(found.sequences_scores[i].item(), 6) if beams > 1 else None
        results.append({"tokens": tokens, "score": score})
    return results


def main():
    torch.manual_seed(12)
    shutil.rmtree(FOLDERS, ignore_errors=True)
    model_file = pieces()
    (FOLDERS / "first").mkdir(parents=True)
    (FOLDERS / "first" / "spiece.model").write_bytes(model_file)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_file)
    assert processor.get_piece_size() == PIECES
    tokenizer = T5Tokenizer.from_pretrained(FOLDERS / "first")
    for name, config in {"first": PLAIN, "later": PLAIN | LATER}.items():
        model = T5ForConditionalGeneration(T5Config(**config))
        if name == "later":
            model.lm_head.weight = torch.nn.Parameter(0.2 * torch.randn(PLAIN["vocab_size"], PLAIN["d_model"]))
        train(model, processor.encode)
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if "relative" in key or "norm" in key:
                    # Nothing stays at one or near zero, where a mistake could hide.
                    parameter.add_(0.2 * torch.randn(parameter.shape))
        model.save_pretrained(FOLDERS / name)
    tokenizer.save_pretrained(FOLDERS / "later")
    older_config(FOLDERS / "later")

    draw = lambda length: torch.cat([torch.randint(2, PIECES, (length - 1,)), torch.tensor([EOS])])
    pairs = [(draw(source), draw(target)) for source, target in zip(SOURCES, TARGETS)]
    integers = lambda numbers: torch.as_tensor(numbers, dtype=torch.int32)
    stored = {"source.ids": torch.cat([s for s, _ in pairs]).int(), "source.lengths": integers(SOURCES)}
    stored |= {"target.ids": torch.cat([t for _, t in pairs]).int(), "target.lengths": integers(TARGETS)}
    for name in ("first", "later"):
        stored |= answers(name, pairs)
    save_file(stored, GOLDEN / "t5.safetensors")

    ids = [tokenizer(prompt).input_ids for prompt in PROMPTS]
    texts = {"prompts": PROMPTS, "ids": ids, "new_tokens": NEW_TOKENS}
    for name in ("first", "later"):
        exact = load(name)
        cases = []
        for case, settings in CASES.items():
            results = [written(exact, source, settings) for source in ids]
            cases.append({"name": case, "settings": settings, "results": results})
        greedy = [tokenizer.decode(found[0]["tokens"], skip_special_tokens=True) for found in cases[0]["results"]]
        texts[name] = {"cases": cases, "greedy": greedy}
        print(name, greedy)
    (GOLDEN / "t5.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
