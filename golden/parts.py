"""Makes parts.safetensors: what the stacks of T5 and of GPT-2 answer, for the parts that the paper does not have.

    python golden/parts.py

As in make.py, answers are computed in float64 from weights and inputs that f32 can hold, and rounded to f32 at the end. (T5 itself
computes norms and softmax in f32.) README.md says what the file holds.
"""

import re
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2Model, T5Config, T5Model

GOLDEN = Path(__file__).resolve().parent
LENGTHS = [5, 1, 31]  # of the source
QUERY_LENGTHS = [3, 27, 2]  # of the target

# From the names of T5 and GPT-2 to ours.
NAMES = [
    (r"^(encoder|decoder)\.block\.(\d+)\.layer\.0\.SelfAttention\.relative_attention_bias", r"\1.relative_attention_bias"),
    (r"\.block\.(\d+)\.layer\.0\.SelfAttention\.", r".layers.\1.self_attn."),
    (r"\.block\.(\d+)\.layer\.0\.layer_norm", r".layers.\1.self_attn_layer_norm"),
    (r"\.block\.(\d+)\.layer\.1\.EncDecAttention\.", r".layers.\1.encoder_attn."),
    (r"^decoder\.block\.(\d+)\.layer\.1\.layer_norm", r"decoder.layers.\1.encoder_attn_layer_norm"),
    (r"\.block\.(\d+)\.layer\.\d\.DenseReluDense\.", r".layers.\1."),
    (r"\.block\.(\d+)\.layer\.\d\.layer_norm", r".layers.\1.final_layer_norm"),
    (r"_attn\.o\.", "_attn.out_proj."),
    (r"_attn\.([qkv])\.", r"_attn.\1_proj."),
    (r"^(encoder|decoder)\.final_layer_norm", r"\1.layer_norm"),
    (r"^h\.", "layers."),
    (r"\.ln_1\.", ".self_attn_layer_norm."),
    (r"\.ln_2\.", ".final_layer_norm."),
    (r"\.attn\.c_proj\.", ".self_attn.out_proj."),
    (r"\.mlp\.c_fc\.", ".fc1."),
    (r"\.mlp\.c_proj\.", ".fc2."),
    (r"^ln_f\.", "layer_norm."),
    (r"^wpe\.", "embed_positions."),
    (r"^wte\.", "embed_tokens."),
]


def t5():
    """Encoder and decoder of T5 v1.1: RMS norm, gated GELU, a table over relative positions, no biases, no scale."""
    random = torch.Generator().manual_seed(1)
    config = T5Config(
        vocab_size=3,
        d_model=24,
        d_kv=7,
        d_ff=40,
        num_layers=2,
        num_heads=4,
        relative_attention_num_buckets=10,
        relative_attention_max_distance=20,
        feed_forward_proj="gated-gelu",
        dropout_rate=0.0,
        layer_norm_epsilon=1e-3,
    )
    model = T5Model._from_config(config, attn_implementation="eager")
    draw(model, random)
    inputs = {
        "source": normal(random, sum(LENGTHS), 24),
        "target": normal(random, sum(QUERY_LENGTHS), 24),
        "probe": normal(random, sum(QUERY_LENGTHS), 24),
    }

    def compute(dtype):
        model.to(dtype).zero_grad()
        source, target = (leaf(inputs[name], dtype) for name in ["source", "target"])
        memory = [model.encoder(inputs_embeds=x[None]).last_hidden_state for x in source.split(LENGTHS)]
        y = torch.cat([
            model.decoder(inputs_embeds=x[None], encoder_hidden_states=keys).last_hidden_state[0]
            for x, keys in zip(target.split(QUERY_LENGTHS), memory)
        ])
        (y * inputs["probe"].to(dtype)).sum().backward()
        answers = {"memory": torch.cat([m[0] for m in memory]), "y": y}
        return answers | {"grad.source": source.grad, "grad.target": target.grad} | gradients(model)

    lengths = {"source.lengths": integers(LENGTHS), "target.lengths": integers(QUERY_LENGTHS)}
    return store("t5", model, inputs | lengths, compute)


def gpt2():
    """GPT-2: norms first and one at the end, learned positions, GELU by tanh, a fused projection, no memory, a tied output."""
    random = torch.Generator().manual_seed(2)
    config = GPT2Config(vocab_size=37, n_positions=40, n_embd=24, n_layer=2, n_head=4, n_inner=40,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    model = GPT2Model._from_config(config, attn_implementation="eager")
    draw(model, random)
    ids = torch.randint(0, 37, (sum(LENGTHS),), generator=random)
    inputs = {"ids": ids.int(), "lengths": integers(LENGTHS)}
    targets = torch.randint(0, 37, (sum(LENGTHS),), generator=random)

    def compute(dtype):
        model.to(dtype).zero_grad()
        hidden = torch.cat([model(x[None]).last_hidden_state[0] for x in ids.split(LENGTHS)])
        logits = hidden @ model.wte.weight.T
        loss = torch.nn.functional.cross_entropy(logits, targets)
        loss.backward()
        return {"logits": logits, "loss": loss} | gradients(model)

    return store("gpt2", model, inputs | {"targets": targets.int()}, compute)


def draw(model, random):
    """Weights with nothing at zero or one, where a mistake could hide."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.copy_(normal(random, *parameter.shape) * 24**-0.5)
            else:
                centre = 1.0 if "norm.weight" in name or re.search(r"ln_.\.weight", name) else 0.0
                parameter.copy_(centre + 0.2 * normal(random, *parameter.shape))
            if "relative_attention_bias" in name:
                parameter.mul_(5)


def gradients(model):
    return {f"grad.{name}": p.grad for name, p in model.named_parameters() if p.grad is not None}


def ours(name, tensor):
    """The tensor under our names: GPT-2's linear layers lie transposed, and its queries, keys and values in one."""
    prefix = "grad." if name.startswith("grad.") else ""
    name = name.removeprefix("grad.")
    if re.search(r"\.c_(attn|proj|fc)\.weight", name):
        tensor = tensor.T
    found = {name: tensor}
    if ".attn.c_attn." in name:
        found = {
            name.replace(".attn.c_attn.", f".self_attn.{part}_proj."): chunk
            for part, chunk in zip("qkv", tensor.chunk(3))
        }
    for pattern, replacement in NAMES:
        found = {re.sub(pattern, replacement, name): tensor for name, tensor in found.items()}
    return {prefix + name: tensor for name, tensor in found.items()}


def store(case, model, given, compute):
    """What is given, the weights and the answers; prints how near float32 comes."""
    weights = {name: p.detach().clone() for name, p in model.named_parameters() if "shared" not in name}
    exact = {name: t.detach().clone() for name, t in compute(torch.float64).items()}
    single = {name: t.detach().double() for name, t in compute(torch.float32).items()}
    errors = {name: ((exact[name] - single[name]).norm() / exact[name].norm()).item() for name in exact}
    errors = {name: e for name, e in errors.items() if "c_attn.bias" not in name}
    worst = max(errors, key=errors.get)
    print(f"{case}: float32 is off by at most {errors[worst]:.1e}, in {worst}")
    stored = dict(given)
    for tensors in (weights, {name: t.float() for name, t in exact.items()}):
        for name, tensor in tensors.items():
            stored |= ours(name, tensor)
    return {f"{case}.{name}": tensor.contiguous().clone() for name, tensor in stored.items()}


def normal(random, *shape):
    return torch.randn(*shape, generator=random)


def integers(values):
    return torch.tensor(values, dtype=torch.int32)


def leaf(tensor, dtype):
    return tensor.detach().clone().to(dtype).requires_grad_()


if __name__ == "__main__":
    torch.set_num_threads(1)
    tensors = t5() | gpt2()
    save_file(tensors, GOLDEN / "parts.safetensors")
