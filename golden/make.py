"""Makes the golden files: what PyTorch and transformers answer, for the tests to hold our answers against.

    pip install torch transformers safetensors numpy
    python golden/make.py

(requirements.txt pins the versions that made the files in the repository.)

Weights and inputs are numbers that f32 can hold. From them every output and gradient is computed in float64
and only then rounded to f32: what is stored is the exact answer, not the answer of another f32 program, so a
test measures our error alone. The losses of Adam stay float64. To show which tolerance a test can ask for,
everything is computed a second time in float32, and the difference is printed: the norm of the difference
relative to the norm of the tensor, as in the tests.

A batch is packed: its sequences stand one after another along the rows, `[tokens, d]`, with their lengths
beside them, and there is no padding. README.md says what each file holds.
"""

import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent

# The layers.
D_MODEL, HEADS, D_FF = 24, 4, 40
LENGTHS = [5, 1, 9]  # of what attends to itself, and of the memory
QUERY_LENGTHS = [3, 7, 2]  # of what attends to the memory

# The whole model. The last of the 61 embeddings is the padding, which is never produced.
CLASSES = PADDING = 60
END = 0
SOURCE_LENGTHS = [7, 3, 11, 1]
TARGET_LENGTHS = [6, 4, 9, 2]
WARMUP = 4


def attention():
    """Multi-head attention: of a batch to itself, the same causally, and of another batch to the first."""
    random = torch.Generator().manual_seed(1)
    weights = randomised(nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True), random)
    rows, queries = sum(LENGTHS), sum(QUERY_LENGTHS)
    inputs = {
        "x": normal(random, rows, D_MODEL),
        "cross.x": normal(random, queries, D_MODEL),
        "probe.self": normal(random, rows, D_MODEL),
        "probe.causal": normal(random, rows, D_MODEL),
        "probe.cross": normal(random, queries, D_MODEL),
    }

    def compute(dtype):
        answers = {}
        for case in ["self", "causal", "cross"]:
            module = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
            module.load_state_dict(weights)
            module.to(dtype)
            memory = leaf(inputs["x"], dtype)
            x = leaf(inputs["cross.x"], dtype) if case == "cross" else memory
            ys, attention_weights = [], []
            query_lengths = QUERY_LENGTHS if case == "cross" else LENGTHS
            for query, key in zip(x.split(query_lengths), memory.split(LENGTHS)):
                mask = causal_mask(len(query), dtype) if case == "causal" else None
                y, a = module(query[None], key[None], key[None], attn_mask=mask, average_attn_weights=False)
                ys.append(y[0])
                attention_weights.append(a[0])
            y = torch.cat(ys)
            (y * inputs[f"probe.{case}"].to(dtype)).sum().backward()
            answers[f"{case}.y"] = y
            answers[f"{case}.grad.x"] = x.grad
            if case == "cross":
                answers["cross.weights"] = attention_weights[0]
                answers["cross.grad.memory"] = memory.grad
            for name, gradient in in_our_names(gradients(module)).items():
                answers[f"{case}.grad.{name}"] = gradient
        return answers

    lengths = {"lengths": integers(LENGTHS), "cross.lengths": integers(QUERY_LENGTHS)}
    write("attention", in_our_names(weights) | lengths | inputs, compute)


def encoder_layer():
    """One encoder layer, as the paper has it and with the norms first."""
    random = torch.Generator().manual_seed(2)
    weights = randomised(nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF), random)
    inputs = {"x": normal(random, sum(LENGTHS), D_MODEL), "probe": normal(random, sum(LENGTHS), D_MODEL)}
    names = {"norm1": "self_attn_layer_norm", "linear1": "fc1", "linear2": "fc2", "norm2": "final_layer_norm"}

    def compute(dtype):
        answers = {}
        for case, options in LAYER_CASES.items():
            layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, dropout=0.0, batch_first=True, **options)
            layer.load_state_dict(weights)
            layer.to(dtype)
            x = leaf(inputs["x"], dtype)
            y = torch.cat([layer(sequence[None])[0] for sequence in x.split(LENGTHS)])
            (y * inputs["probe"].to(dtype)).sum().backward()
            answers[f"{case}.y"] = y
            answers[f"{case}.grad.x"] = x.grad
            for name, gradient in in_our_names(gradients(layer), names).items():
                answers[f"{case}.grad.{name}"] = gradient
        return answers

    write("encoder_layer", in_our_names(weights, names) | {"lengths": integers(LENGTHS)} | inputs, compute)


def decoder_layer():
    """One decoder layer, as the paper has it and with the norms first."""
    random = torch.Generator().manual_seed(3)
    weights = randomised(nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF), random)
    inputs = {
        "x": normal(random, sum(QUERY_LENGTHS), D_MODEL),
        "memory": normal(random, sum(LENGTHS), D_MODEL),
        "probe": normal(random, sum(QUERY_LENGTHS), D_MODEL),
    }
    names = {
        "norm1": "self_attn_layer_norm",
        "multihead_attn": "encoder_attn",
        "norm2": "encoder_attn_layer_norm",
        "linear1": "fc1",
        "linear2": "fc2",
        "norm3": "final_layer_norm",
    }

    def compute(dtype):
        answers = {}
        for case, options in LAYER_CASES.items():
            layer = nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, dropout=0.0, batch_first=True, **options)
            layer.load_state_dict(weights)
            layer.to(dtype)
            x, memory = leaf(inputs["x"], dtype), leaf(inputs["memory"], dtype)
            y = torch.cat([
                layer(query[None], key[None], tgt_mask=causal_mask(len(query), dtype))[0]
                for query, key in zip(x.split(QUERY_LENGTHS), memory.split(LENGTHS))
            ])
            (y * inputs["probe"].to(dtype)).sum().backward()
            answers[f"{case}.y"] = y
            answers[f"{case}.grad.x"] = x.grad
            answers[f"{case}.grad.memory"] = memory.grad
            for name, gradient in in_our_names(gradients(layer), names).items():
                answers[f"{case}.grad.{name}"] = gradient
        return answers

    lengths = {"lengths": integers(QUERY_LENGTHS), "memory.lengths": integers(LENGTHS)}
    write("decoder_layer", in_our_names(weights, names) | lengths | inputs, compute)


def transformer():
    """The whole Transformer: its folder, one batch through it, the gradients of the loss, ten steps."""
    random = torch.Generator().manual_seed(4)
    folder = GOLDEN / "transformer"
    save_model(folder, random)
    sources = [sentence(random, length) for length in SOURCE_LENGTHS]
    targets = [sentence(random, length) for length in TARGET_LENGTHS]
    decoder_inputs = [torch.cat([torch.tensor([PADDING]), target[:-1]]) for target in targets]

    def forward(model):
        """Runs the batch padded and masked, as transformers wants it; what it returns is packed."""
        source, source_mask = padded(sources)
        decoder_input, decoder_mask = padded(decoder_inputs)
        output = model(
            input_ids=source,
            attention_mask=source_mask,
            decoder_input_ids=decoder_input,
            decoder_attention_mask=decoder_mask,
            output_attentions=True,
            output_hidden_states=True,
            use_cache=False,
        )
        logits = output.logits[decoder_mask][:, :CLASSES]
        return {
            "encoder.y": output.encoder_last_hidden_state[source_mask],
            "decoder.y": output.decoder_hidden_states[-1][decoder_mask],
            "cross.weights": output.cross_attentions[1][0, :, : TARGET_LENGTHS[0], : SOURCE_LENGTHS[0]],
            "logits": logits,
            "loss": F.cross_entropy(logits, torch.cat(targets), label_smoothing=0.1),
        }

    def compute(dtype):
        model = MarianMTModel.from_pretrained(folder, attn_implementation="eager").to(dtype).eval()
        answers = forward(model)
        answers["loss"].backward()
        found = gradients(model)
        assert found.keys() == load_file(folder / "model.safetensors").keys() - {"final_logits_bias"}
        for name, gradient in found.items():
            answers[f"grad.{name}"] = gradient
        answers["adam.losses"] = adam_losses(model, lambda: forward(model)["loss"])
        return answers

    inputs = {
        "source.ids": torch.cat(sources).int(),
        "source.lengths": integers(SOURCE_LENGTHS),
        "decoder.ids": torch.cat(decoder_inputs).int(),
        "target.ids": torch.cat(targets).int(),
        "target.lengths": integers(TARGET_LENGTHS),
    }
    losses = write("transformer", inputs, compute)["adam.losses"]
    print("    adam.losses:", *[f"{loss:.12f}" for loss in losses])


def save_model(folder, random):
    """A small MarianMTModel, initialised so that every part of it matters to the loss."""
    model = MarianMTModel(MarianConfig(
        vocab_size=CLASSES + 1,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        activation_function="relu",
        dropout=0.0,
        max_position_embeddings=64,
        scale_embedding=True,
        pad_token_id=PADDING,
        decoder_start_token_id=PADDING,
        eos_token_id=END,
        forced_eos_token_id=END,
    ))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            elif name == "model.shared.weight":
                parameter.normal_(0, model.config.d_model**-0.5, generator=random)
                parameter[PADDING] = 0
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter, generator=random)
            else:
                parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.1, generator=random)
    model.save_pretrained(folder)


def adam_losses(model, loss_of_batch):
    """Ten steps of the paper's Adam and its schedule; each loss is the one before its update."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, foreach=False)
    losses = []
    for step in range(1, 11):
        for group in optimizer.param_groups:
            group["lr"] = model.config.d_model**-0.5 * min(step**-0.5, step * WARMUP**-1.5)
        optimizer.zero_grad()
        loss = loss_of_batch()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().double())
    return torch.stack(losses)


LAYER_CASES = {
    "post_relu": {"norm_first": False, "activation": "relu"},
    "pre_gelu": {"norm_first": True, "activation": "gelu"},
}


def normal(random, *shape):
    return torch.randn(*shape, generator=random)


def integers(values):
    return torch.tensor(values, dtype=torch.int32)


def leaf(tensor, dtype):
    """A copy of its own that collects a gradient."""
    return tensor.detach().clone().to(dtype).requires_grad_()


def randomised(module, random):
    """Weights for `module` with nothing at zero or one, where a mistake could hide."""
    weights = {}
    for name, parameter in module.named_parameters():
        if parameter.dim() == 2:
            weights[name] = normal(random, *parameter.shape) * parameter.shape[1] ** -0.5
        else:
            centre = 1.0 if re.match(r"norm\d\.weight", name) else 0.0
            weights[name] = centre + 0.2 * normal(random, *parameter.shape)
    return weights


def gradients(module):
    """Of all parameters but the table of positions, which no gradient reaches."""
    return {name: p.grad for name, p in module.named_parameters() if "embed_positions" not in name}


def in_our_names(tensors, names={}):
    """From PyTorch's names to those of Marian and BART; `in_proj` becomes its three projections."""
    renamed = {}
    for name, tensor in tensors.items():
        first, dot, rest = name.partition(".")
        name = names.get(first, first) + dot + rest
        if "in_proj_" in name:
            for part, chunk in zip("qkv", tensor.chunk(3)):
                renamed[name.replace("in_proj_", f"{part}_proj.")] = chunk
        else:
            renamed[name] = tensor
    return renamed


def causal_mask(length, dtype):
    return nn.Transformer.generate_square_subsequent_mask(length, dtype=dtype)


def sentence(random, length):
    """`length` tokens, of which the last is the end."""
    return torch.cat([torch.randint(1, CLASSES, (length - 1,), generator=random), torch.tensor([END])])


def padded(sentences):
    """[sentences, longest], and a mask that is true at the tokens: indexing with it packs again."""
    mask = pad_sequence([torch.ones(len(s), dtype=torch.bool) for s in sentences], batch_first=True)
    return pad_sequence(sentences, batch_first=True, padding_value=PADDING), mask


def write(file, given, compute):
    """Writes what is given together with the answers, and prints how near float32 comes to them."""
    answers = {name: tensor.detach() for name, tensor in compute(torch.float64).items()}
    in_f32 = {name: tensor.detach().double() for name, tensor in compute(torch.float32).items()}
    stored = given | {name: a if name == "adam.losses" else a.float() for name, a in answers.items()}
    path = GOLDEN / f"{file}.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, path)

    # A bias of the keys shifts all scores of a query alike; softmax does not notice, the gradient is zero.
    vanishing = [name for name in answers if "grad" in name and name.endswith("k_proj.bias")]
    errors = {
        name: ((answer - in_f32[name]).norm() / answer.norm()).item()
        for name, answer in answers.items()
        if name not in vanishing
    }
    worst = sorted(errors, key=errors.get, reverse=True)[:3]
    print(f"{file}: {len(stored)} tensors, {path.stat().st_size} bytes; float32 is off by at most")
    for name in worst:
        print(f"    {errors[name]:.1e} {name}")
    largest = [max(found[name].norm().item() for name in vanishing) for found in (answers, in_f32)]
    print("    gradients of key biases: norm at most {:.0e}, in float32 {:.0e}".format(*largest))
    return answers


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    attention()
    encoder_layer()
    decoder_layer()
    transformer()
