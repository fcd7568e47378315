"""Makes small GPT-2 folders as transformers and the Hub have them, and what transformers answers with them.

    pip install -r golden/requirements.txt
    python golden/gpt2.py            golden/gpt2/, golden/gpt2.safetensors and golden/gpt2.json

`saved` is as transformers saves it today. `hub` has the same weights as the Hub's own `gpt2`: no prefix, the mask as a buffer.
`untied` has an output of its own and other choices of the configuration. As in make.py, answers are computed in float64 from the
numbers in the files and rounded to f32 at the end. README.md says what each file holds.
"""

import json
import math
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent
FOLDERS = GOLDEN / "gpt2"
TOKENIZER = GOLDEN / "text" / "gpt2"
EOS = 0
LENGTHS = [9, 1, 30, 4]
PROMPTS = ["The", "Weights and inputs", "A batch is packed: its sequences stand", "`x`, `probe`", "Token 0 ends a sentence;"]
NEW_TOKENS = 16
STRIDE = 16

PLAIN = {
    "vocab_size": 400,
    "n_positions": 48,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": EOS,
    "eos_token_id": EOS,
}

# What differs from greedy search. Sequences and their scores are told.
CASES = {
    "greedy": {},
    "greedy, repetitions": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
    "greedy, least length": {"min_new_tokens": 12},
    "beam": {"num_beams": 4},
    "beam, length penalty": {"num_beams": 3, "length_penalty": 0.3, "early_stopping": True},
    "beam, never stopped early": {"num_beams": 4, "length_penalty": 2.0, "early_stopping": "never"},
    "beam, repetitions": {"num_beams": 4, "repetition_penalty": 1.2, "no_repeat_ngram_size": 3},
    "beam, forbidden": {"num_beams": 2, "bad_words_ids": [[5], [220, 84]], "min_new_tokens": 5},
}


def tokenizer():
    files = [str(TOKENIZER / name) for name in ("vocab.json", "merges.txt")]
    found = Tokenizer(models.BPE.from_file(*files))
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    return found


def lines():
    """The beginning of README.md. Any text would do; with another one all files are made anew."""
    text = (GOLDEN / "README.md").read_text().split("## parts.safetensors")[0]
    return [line for line in text.splitlines() if line]


def train(model, tokens):
    """A little, so that the model writes words and is unsure of them."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(250):
        starts = torch.randint(0, len(tokens) - 40, (16,))
        batch = torch.stack([tokens[start : start + 40] for start in starts])
        loss = model(batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.2f}")


def hub_folder():
    """The same weights under the names of the first versions."""
    folder = FOLDERS / "hub"
    folder.mkdir()
    state = load_file(FOLDERS / "saved" / "model.safetensors")
    old = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    positions = PLAIN["n_positions"]
    for layer in range(PLAIN["n_layer"]):
        old[f"h.{layer}.attn.bias"] = torch.ones(positions, positions).tril()[None, None]
    save_file(old, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((FOLDERS / "saved" / "config.json").read_text())
    # The fields of 2019, one of them under two names.
    kept = ["activation_function", "architectures", "attn_pdrop", "bos_token_id", "embd_pdrop", "eos_token_id"]
    kept += ["initializer_range", "layer_norm_epsilon", "model_type", "n_embd", "n_head", "n_layer", "n_positions"]
    kept += ["resid_pdrop", "vocab_size"]
    fields = {name: config[name] for name in kept} | {"n_ctx": positions}
    fields["task_specific_params"] = {"text-generation": {"do_sample": True, "max_length": 50}}
    (folder / "config.json").write_text(json.dumps(fields, indent=2) + "\n")


def load(name, dtype=torch.float64):
    folder = FOLDERS / name
    return GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).to(dtype).eval()


def rows(model, texts):
    """The logits of each text alone, one after the other."""
    return torch.cat([model(text[None]).logits[0] for text in texts])


def answers(name, texts):
    model = load(name)
    logits = rows(model, texts)
    with torch.no_grad():
        single = rows(load(name, torch.float32), texts)
    print(f"{name}: float32 is off by {((logits - single).norm() / logits.norm()).item():.1e}")
    stored = {"logits": logits, "attention": torch.stack([a[0] for a in model(texts[2][None], output_attentions=True).attentions])}
    # The next token of all but the last of each text.
    starts = [sum(LENGTHS[:i]) for i in range(len(LENGTHS))]
    predicted = torch.cat([logits[start : start + length - 1] for start, length in zip(starts, LENGTHS)])
    loss = torch.nn.functional.cross_entropy(predicted, torch.cat([text[1:] for text in texts]))
    loss.backward()
    stored["loss"] = loss
    stored |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    return {f"{name}.{key}": tensor.detach().float().contiguous() for key, tensor in stored.items()}


def written(model, prompt, settings):
    """The sequences that are found for a prompt, best first, without the prompt."""
    beams = settings.get("num_beams", 1)
    found = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        num_return_sequences=beams,
        pad_token_id=EOS,
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
    results = []
    for i, sequence in enumerate(found.sequences):
        tokens = sequence[len(prompt) :].tolist()
        if EOS in tokens:
            tokens = tokens[: tokens.index(EOS) + 1]
        score = round(found.sequences_scores[i].item(), 6) if beams > 1 else None
        results.append({"tokens": tokens, "score": score})
    return results


@torch.no_grad()
def perplexity(model, tokens, stride):
    """As the guide of transformers does it: windows of all positions, `stride` apart, in which each token is predicted once.

    Each token counts alike. Where windows do not overlap, the first token of each is not predicted."""
    total = predicted = end_before = 0
    for begin in range(0, len(tokens), stride):
        end = min(begin + model.config.n_positions, len(tokens))
        logits = model(tokens[None, begin:end]).logits[0, :-1]
        targets = tokens[begin + 1 : end].clone()
        targets[: max(end_before - begin - 1, 0)] = -100
        total += torch.nn.functional.cross_entropy(logits, targets, ignore_index=-100, reduction="sum").item()
        predicted += (targets != -100).sum().item()
        end_before = end
        if end == len(tokens):
            break
    assert predicted == len(tokens) - 1 or stride == model.config.n_positions
    return math.exp(total / predicted)


def main():
    torch.manual_seed(11)
    shutil.rmtree(FOLDERS, ignore_errors=True)
    encode = tokenizer()
    text = lines()
    tokens = torch.tensor([token for line in text for token in [*encode.encode(line).ids, EOS]])
    model = GPT2LMHeadModel(GPT2Config(**PLAIN, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    train(model, tokens)
    model.save_pretrained(FOLDERS / "saved")
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(TOKENIZER / name, FOLDERS / "saved" / name)
    hub_folder()
    other = {"n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-3}
    other |= {"scale_attn_weights": False, "tie_word_embeddings": False}
    untied = GPT2LMHeadModel(GPT2Config(**PLAIN | {"vocab_size": 90}, **other))
    with torch.no_grad():
        for parameter in untied.parameters():
            parameter.add_(0.15 * torch.randn(parameter.shape))
    untied.save_pretrained(FOLDERS / "untied")

    texts = [torch.randint(1, 90, (length,)) for length in LENGTHS]
    stored = {"ids": torch.cat(texts).int(), "lengths": torch.tensor(LENGTHS, dtype=torch.int32)}
    for name in ("saved", "untied"):
        stored |= answers(name, texts)
    with torch.no_grad():
        assert torch.equal(rows(load("hub"), texts), rows(load("saved"), texts))
    save_file(stored, GOLDEN / "gpt2.safetensors")

    exact = load("saved")
    prompts = [encode.encode(prompt).ids for prompt in PROMPTS]
    cases = []
    for name, settings in CASES.items():
        results = [written(exact, prompt, settings) for prompt in prompts]
        cases.append({"name": name, "settings": settings, "results": results})
    texts = {"prompts": PROMPTS, "ids": prompts, "new_tokens": NEW_TOKENS, "cases": cases}
    texts["greedy"] = [encode.decode(found[0]["tokens"]) for found in cases[0]["results"]]
    measured = text[3:12]
    tokens = torch.tensor(encode.encode("\n".join(measured) + "\n").ids)
    texts["perplexity"] = {
        "text": "\n".join(measured) + "\n",
        "tokens": len(tokens),
        "values": {str(stride): perplexity(exact, tokens, stride) for stride in (STRIDE, PLAIN["n_positions"])},
    }
    (GOLDEN / "gpt2.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
