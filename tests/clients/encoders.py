"""Small BERT models with a tokenizer, each in a folder that lasts as long as a `with` block, and what transformers answers with them."""

import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

GOLDEN = Path(__file__).absolute().parents[2] / "golden"
ANSWERS = json.loads((GOLDEN / "tasks.json").read_text())


@contextmanager
def encoder(model):
    with tempfile.TemporaryDirectory() as folder:
        for file in ("config.json", "model.safetensors"):
            shutil.copy(GOLDEN / "bert" / model / file, folder)
        Path(folder, "vocab.txt").write_text("\n".join(ANSWERS["words"]) + "\n")
        yield folder
