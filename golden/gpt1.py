"""Makes a small GPT-1 folder as transformers writes it, with its tokenizer, and what it answers.

    python golden/gpt1.py            golden/gpt1/, golden/gpt1.safetensors and golden/gpt1.jsonl

As in bert.py, answers are computed in float64 from the numbers in the files and rounded to f32 at the end.
"""

import json
import shutil

import bert
import bert_text
import text
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel, OpenAIGPTTokenizer
from transformers.utils import logging

FOLDER = bert.GOLDEN / "gpt1"
NEW_TOKENS = 10


def tokenizer():
    """Byte pairs over the sentences of text.py, and what the tokenizer makes of the hard text."""
    FOLDER.mkdir()
    model = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    model.normalizer = normalizers.BertNormalizer(lowercase=True)
    model.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(vocab_size=250, special_tokens=["<unk>"], show_progress=False, end_of_word_suffix="</w>")
    model.train_from_iterator(text.corpus(), trainer)
    model.model.save(str(FOLDER))
    tokenizer = OpenAIGPTTokenizer.from_pretrained(FOLDER)
    rows = []
    for line in bert_text.nasty():
        ids = tokenizer(line).input_ids
        rows.append(json.dumps({"ids": ids, "text": tokenizer.backend_tokenizer.decode(ids)}, ensure_ascii=False))
    (bert.GOLDEN / "gpt1.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")
    return len(tokenizer)


def fill(model, random):
    """Numbers of which none is zero or one, where a mistake could hide."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")) else 0.0
            parameter.copy_(centre + 0.2 * torch.randn(parameter.shape, generator=random))


def answers(kind, folder, random):
    """What the model of a folder says of some texts, and what it writes after the first."""
    load = lambda dtype: kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).to(dtype).eval()
    texts = [torch.randint(5, 200, (n,), generator=random) for n in bert.LENGTHS]
    model = load(torch.float64)
    logits = torch.cat([model(text[None]).logits[0] for text in texts])
    with torch.no_grad():
        single = torch.cat([load(torch.float32)(text[None]).logits[0] for text in texts])
    print(f"float32 is off by {((logits - single).norm() / logits.norm()).item():.1e}")
    starts = [sum(bert.LENGTHS[:i]) for i in range(len(texts))]
    predicted = torch.cat([logits[start : start + len(text) - 1] for start, text in zip(starts, texts)])
    loss = torch.nn.functional.cross_entropy(predicted, torch.cat([text[1:] for text in texts]))
    loss.backward()
    stored = {"ids": torch.cat(texts), "lengths": torch.tensor(bert.LENGTHS), "logits": logits, "loss": loss}
    stored |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    with torch.no_grad():
        written = texts[0]
        for _ in range(NEW_TOKENS):
            written = torch.cat([written, model(written[None]).logits[0, -1].argmax()[None]])
    stored["written"] = written[len(texts[0]) :]
    return {name: bert.narrow(tensor).contiguous() for name, tensor in stored.items()}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    random = torch.Generator().manual_seed(13)
    config = OpenAIGPTConfig(vocab_size=tokenizer(), n_positions=40, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                             attn_pdrop=0.0)
    model = OpenAIGPTLMHeadModel(config)
    fill(model, random)
    model.save_pretrained(FOLDER)
    save_file(answers(OpenAIGPTLMHeadModel, FOLDER, random), bert.GOLDEN / "gpt1.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
