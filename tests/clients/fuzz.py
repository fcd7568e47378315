"""schemathesis against the description: no 5xx, and no answer that is not described."""

import subprocess
import sys
import tempfile
from pathlib import Path

from encoders import GOLDEN, encoder
from server import Server

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
]


NUMBERS = Path(__file__).absolute().parents[2] / "crates/serve/model"


def main(program, schemathesis):
    with encoder("hidden") as words, encoder("sequence") as moods, encoder("token") as names, encoder("masked") as masked:
        models = [f"numbers={NUMBERS}", f"words={words}", f"moods={moods}", f"names={names}", f"masked={masked}"]
        code = ask(server(program, *models), schemathesis)
    # Without a name, the first model that completes prompts answers.
    small = f"small={GOLDEN / 'gpt2' / 'saved'}"
    sys.exit(code or ask(server(program, small), schemathesis, "--include-path", "/v1/completions"))


def server(program, *models):
    options = [option for model in models for option in ("--model", model)]
    return Server(program, "--max-characters", "300", *options)


def ask(server, schemathesis, *more):
    with server:
        config = Path(__file__).absolute().with_name("schemathesis.toml")
        command = [str(Path(schemathesis).absolute()), "--config-file", str(config)]
        command += ["run", f"{server.address}/openapi.json", "--url", server.address]
        # One worker: its generator of requests parses Python, and two threads that do so at a time can fail in CPython 3.11 ("AST
        # constructor recursion depth mismatch", python/cpython#106905).
        command += ["--checks", ",".join(CHECKS), "--max-examples", "60", "--workers", "1", "--seed", "1", *more]
        # It keeps notes of its own where it runs.
        with tempfile.TemporaryDirectory() as notes:
            return subprocess.run(command, check=False, cwd=notes).returncode


if __name__ == "__main__":
    main(*sys.argv[1:])
