"""Makes a small GPT-Neo folder as transformers writes it, and what it answers.

    python golden/gpt_neo.py         golden/gpt_neo/ and golden/gpt_neo.safetensors

Of three layers the second sees a window of five tokens. The rest is as in gpt1.py.
"""

import shutil

import bert
import torch
from gpt1 import answers, fill
from safetensors.torch import save_file
from transformers import GPTNeoConfig, GPTNeoForCausalLM
from transformers.utils import logging

FOLDER = bert.GOLDEN / "gpt_neo"


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    random = torch.Generator().manual_seed(14)
    config = GPTNeoConfig(
        vocab_size=210, max_position_embeddings=40, hidden_size=32, num_layers=3, num_heads=4, intermediate_size=48, window_size=5,
        attention_types=[[["global", "local", "global"], 1]], bos_token_id=209, eos_token_id=209,
    )
    model = GPTNeoForCausalLM(config)
    fill(model, random)
    model.save_pretrained(FOLDER)
    save_file(answers(GPTNeoForCausalLM, FOLDER, random), bert.GOLDEN / "gpt_neo.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    main()
