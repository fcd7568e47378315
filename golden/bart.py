"""Makes small folders of BART, mBART and M2M-100 as transformers saves them, and what transformers answers with them.

    pip install -r golden/requirements.txt
    python golden/bart.py            golden/bart/, golden/bart.safetensors and golden/bart.json

The three are one model with other choices: where norms stand, a norm of the embedded tokens, learned positions or sinusoids. Each has
learned a little, so that it is unsure of what it writes. Answers are computed in float64 from the numbers in the files and rounded to
f32 at the end. README.md says what each file holds.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from t5 import PROMPTS, SOURCES, TARGETS, lines
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BartForConditionalGeneration,
    BartTokenizer,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
)
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
FOLDERS = GOLDEN / "bart"
EOS = 2
PAD = 1
VOCABULARY = 330
NEW_TOKENS = 14

PLAIN = {
    "vocab_size": VOCABULARY,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 48,
    "decoder_start_token_id": EOS,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}

KINDS = {
    "bart": (BartConfig, BartForConditionalGeneration, {"forced_eos_token_id": EOS}),
    "mbart": (MBartConfig, MBartForConditionalGeneration, {"scale_embedding": True, "forced_eos_token_id": EOS}),
    "m2m": (M2M100Config, M2M100ForConditionalGeneration, {"scale_embedding": True}),
}

CASES = {
    "greedy": {},
    "beam": {"num_beams": 4},
    "beam, as summaries want it": {
        "num_beams": 3, "length_penalty": 2.0, "early_stopping": True, "no_repeat_ngram_size": 3, "min_length": 8
    },
}


def bpe():
    """Pieces of bytes with the special tokens of BART where BART has them."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - 1, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    found.train_from_iterator(lines(), trainer)
    model = json.loads(found.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    return BartTokenizer(vocab=model["vocab"] | {"<mask>": VOCABULARY - 1}, merges=merges)


def train(model, encode):
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    text = [encode(line)[1:-1][:40] for line in lines() if len(line) > 30]
    for _ in range(250):
        batch = [text[i] for i in torch.randint(0, len(text), (8,))]
        cuts = [int(torch.randint(1, len(ids) - 1, ())) for ids in batch]
        sources = [torch.tensor([0] + ids[:cut] + [EOS]) for ids, cut in zip(batch, cuts)]
        targets = [torch.tensor([0] + ids[cut:] + [EOS]) for ids, cut in zip(batch, cuts)]
        source = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=PAD)
        target = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=-100)
        loss = model(input_ids=source, attention_mask=(source != PAD).long(), labels=target).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.2f}")


def load(name):
    folder = FOLDERS / name
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return model.to(torch.float64).eval()


def answers(name, pairs):
    model = load(name)
    outputs = [model(input_ids=s[None], labels=t[None], output_attentions=True) for s, t in pairs]
    logits = torch.cat([output.logits[0] for output in outputs])
    stored = {"logits": logits, "cross_attentions": torch.stack([a[0] for a in outputs[2].cross_attentions])}
    loss = torch.nn.functional.cross_entropy(logits, torch.cat([t for _, t in pairs]))
    loss.backward()
    stored["loss"] = loss
    stored |= {f"grad.{key}": parameter.grad for key, parameter in model.named_parameters()}
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
    torch.manual_seed(13)
    shutil.rmtree(FOLDERS, ignore_errors=True)
    tokenizer = bpe()
    ids = [tokenizer(prompt).input_ids for prompt in PROMPTS]
    for name, (configuration, kind, own) in KINDS.items():
        model = kind(configuration(**PLAIN | own))
        if name == "bart":
            model.generation_config.forced_bos_token_id = 0  # as the Hub's large ones have it
        train(model, lambda text: tokenizer(text).input_ids)
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if "norm" in key or key.endswith("bias"):
                    # Nothing stays at zero or one, where a mistake could hide.
                    parameter.add_(0.1 * torch.randn(parameter.shape))
        model.save_pretrained(FOLDERS / name)
    tokenizer.save_pretrained(FOLDERS / "bart")

    draw = lambda length: torch.cat([torch.randint(4, VOCABULARY, (length - 1,)), torch.tensor([EOS])])
    pairs = [(draw(source), draw(target)) for source, target in zip(SOURCES, TARGETS)]
    integers = lambda numbers: torch.as_tensor(numbers, dtype=torch.int32)
    stored = {"source.ids": torch.cat([s for s, _ in pairs]).int(), "source.lengths": integers(SOURCES)}
    stored |= {"target.ids": torch.cat([t for _, t in pairs]).int(), "target.lengths": integers(TARGETS)}
    texts = {"prompts": PROMPTS, "ids": ids, "new_tokens": NEW_TOKENS}
    for name in KINDS:
        stored |= answers(name, pairs)
        exact = load(name)
        cases = []
        for case, settings in CASES.items():
            results = [written(exact, source, settings) for source in ids]
            forced = {key: getattr(exact.generation_config, key) for key in ("forced_bos_token_id", "forced_eos_token_id")}
            cases.append({"name": case, "settings": settings | forced, "results": results})
        greedy = [tokenizer.decode(found[0]["tokens"], skip_special_tokens=True) for found in cases[0]["results"]]
        texts[name] = {"cases": cases, "greedy": greedy}
        print(name, greedy)
    save_file(stored, GOLDEN / "bart.safetensors")
    (GOLDEN / "bart.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
