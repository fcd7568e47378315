"""Lets the program compute models of full size with random weights, and holds its memory against their files.

    python golden/full_size.py [NAME ...]

Makes nothing that is kept. Each model has the sizes of the folder of that name on the Hub and small tokenizers of `golden/`. The
program may use as much memory at its peak as the file has, a tenth more, and 100 MB. ATTENTIVE is the program,
target/release/attentive if it is not set. Needs 8 GB of memory and of disk for the largest model.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

# The command for each model, in which `{}` stands for its folder, and the folder that lends its tokenizer to models of text.
MODELS = {
    "roberta-large": ("fill-mask --model {}", "a <mask> runs", "roberta/masked"),
    "deberta-v3-base": ("embed --model {}", "a dog runs", "deberta_text/later"),
    "openai-gpt": ("generate --model {} --max-new-tokens 20", "a dog", "gpt1"),
    "t5-large": ("generate --model {} --max-new-tokens 20", "a dog runs", "t5/first"),
    "bart-large": ("summarize --model {} --max-length 20", "a dog runs", "bart/bart"),
    "nllb-200-distilled-600M": ("translate --model {} --from en --to de --max-length 20", "a dog runs", "bart/nllb"),
    "vit-base-patch16-224": ("classify --model {}", "{}/picture.png", None),
    "dinov2-base": ("embed --model {}", "{}/picture.png", None),
    "detr-resnet-50": ("detect --model {}", "{}/picture.png", None),
}


def make(name, folder):
    """Writes a model with random weights, and a picture. A process of its own does it, whose memory is not counted."""
    import numpy
    import torch
    import transformers as hf
    from PIL import Image

    large = dict(encoder_layers=12, decoder_layers=12, encoder_attention_heads=16, decoder_attention_heads=16, d_model=1024)
    wide = dict(encoder_ffn_dim=4096, decoder_ffn_dim=4096)
    torch.manual_seed(1)
    processor = None
    match name:
        case "roberta-large":
            sizes = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
            tokens = dict(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)
            model = hf.RobertaForMaskedLM(hf.RobertaConfig(**sizes, **tokens))
        case "deberta-v3-base":
            sizes = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
            tokens = dict(vocab_size=128100, max_position_embeddings=512, type_vocab_size=0, position_biased_input=False)
            attention = dict(relative_attention=True, position_buckets=256, share_att_key=True, pos_att_type="p2c|c2p")
            model = hf.DebertaV2Model(hf.DebertaV2Config(**sizes, **tokens, **attention, norm_rel_ebd="layer_norm"))
        case "openai-gpt":
            model = hf.OpenAIGPTLMHeadModel(hf.OpenAIGPTConfig())
        case "t5-large":
            sizes = dict(d_model=1024, d_kv=64, d_ff=4096, num_layers=24, num_heads=16, decoder_start_token_id=0)
            model = hf.T5ForConditionalGeneration(hf.T5Config(**sizes))
        case "bart-large":
            model = hf.BartForConditionalGeneration(hf.BartConfig(**large, **wide))
        case "nllb-200-distilled-600M":
            config = hf.M2M100Config(**large, **wide, vocab_size=256206, scale_embedding=True)
            model = hf.M2M100ForConditionalGeneration(config)
        case "vit-base-patch16-224":
            model, processor = hf.ViTForImageClassification(hf.ViTConfig(num_labels=1000)), hf.ViTImageProcessor()
        case "dinov2-base":
            crop = dict(size={"shortest_edge": 256}, crop_size={"height": 224, "width": 224})
            model = hf.Dinov2Model(hf.Dinov2Config(image_size=518, patch_size=14))
            processor = hf.BitImageProcessor(**crop)
        case "detr-resnet-50":
            backbone = dict(use_timm_backbone=False, backbone=None, backbone_config=hf.ResNetConfig(out_features=["stage4"]))
            model, processor = hf.DetrForObjectDetection(hf.DetrConfig(**backbone)), hf.DetrImageProcessor()
    model.save_pretrained(folder)
    if processor:
        processor.save_pretrained(folder)
    pixels = numpy.random.default_rng(1).integers(0, 256, (480, 640, 3), dtype=numpy.uint8)
    Image.fromarray(pixels).save(pathlib.Path(folder) / "picture.png")


MODEL_FILES = ["config.json", "model.safetensors", "generation_config.json"]


def peak_of(line):
    """Runs a command, and tells the most memory that it had, in bytes."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(line)} failed")
    return usage.ru_maxrss * 1024


def main(names):
    program = os.environ.get("ATTENTIVE", "target/release/attentive")
    failed = False
    for name in names or MODELS:
        command, text, lender = MODELS[name]
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            subprocess.run([sys.executable, __file__, "--make", name, scratch], check=True, stderr=subprocess.DEVNULL)
            for file in (HERE / lender).iterdir() if lender else []:
                if file.name not in MODEL_FILES and file.is_file():
                    shutil.copy(file, folder)
            size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
            peak = peak_of([program, *(word.replace("{}", scratch) for word in [*command.split(), text])])
        limit = size * 1.1 + 100e6
        # What a model of pictures computes with may be larger than its weights.
        failed |= bool(lender) and peak > limit
        most = f", at most {limit / 1e6:.0f} MB" if lender else ""
        print(f"{name}: a file of {size / 1e6:.0f} MB, {peak / 1e6:.0f} MB at peak{most}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    make(*sys.argv[2:]) if sys.argv[1:2] == ["--make"] else main(sys.argv[1:])
