"""What impossible numbers, broken files and hostile clients do to programs: a table with a column for each.

    python3 tests/hostile/run.py MODEL PROGRAM...

MODEL is a Marian folder, such as one that `attentive train` made. Each case runs in a folder of its own, with 60 seconds and 12 GB
of memory. It shows how it ended (the exit code, `panic` or `time`), after how many seconds, with how many MB at peak, and the end of
what was said. Needs Python alone.
"""

import gzip
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

SECONDS, MEMORY = 60, 12 << 30
WORDS = "one two three four five six seven eight nine ten".split()


class Case:
    """A folder to try one thing in, with one program."""

    def __init__(self, program, model):
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hostile"))
        self.model = model

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, content):
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def start(self, arguments, **options):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([self.program, *arguments], preexec_fn=limit, cwd=self.folder, **options)

    def run(self, *arguments, text=None):
        """How a command ends, in a line, and what it wrote to stdout."""
        begin = time.perf_counter()
        process = self.start(arguments, stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL)
        outputs = {}
        for name in ["stdout", "stderr"]:
            read = lambda name=name: outputs.__setitem__(name, getattr(process, name).read())
            outputs[name + " thread"] = threading.Thread(target=read)
            outputs[name + " thread"].start()
        if text is not None:
            try:
                process.stdin.write(text)
                process.stdin.close()
            except BrokenPipeError:
                pass
        killer = threading.Timer(SECONDS, process.kill)
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        killer.cancel()
        [outputs[name + " thread"].join() for name in ["stdout", "stderr"]]
        seconds = time.perf_counter() - begin
        said = outputs["stderr"].decode(errors="replace").strip().splitlines()
        # Wrong usage is told in the first line, behind which comes advice.
        said = [line for line in said if line.startswith("error: ")][:1] or said
        ended = f"exit {os.WEXITSTATUS(status)}" if os.WIFEXITED(status) else f"killed by {os.WTERMSIG(status)}"
        if seconds > SECONDS:
            ended = "time"
        if any("panicked" in line for line in said):
            ended = "panic"
        line = f"{ended}, {seconds:.1f} s, {usage.ru_maxrss >> 10} MB: {said[-1][-160:] if said else ''}"
        return line, outputs["stdout"]

    def changed(self, **changes):
        """A copy of the model in which files were changed: each is given its content and answers with another."""
        copy = self.folder / "model"
        shutil.copytree(self.model, copy, copy_function=shutil.copyfile)
        for name, change in changes.items():
            path = copy / name.replace("__", ".")
            path.write_bytes(change(path.read_bytes()))
        return str(copy)

    def train(self, *arguments, source=None, target=None):
        lines = [" ".join(random.Random(i).choices(WORDS, k=8)) for i in range(400)]
        given = ["train", "--out", self.path("run")]
        for name, own in [("source", source), ("target", target)]:
            given += [f"--{name}", self.write(name, "\n".join(own or lines) + "\n")]
        for name in ["valid-source", "valid-target"]:
            given += [f"--{name}", self.write(name, "\n".join(lines[:20]) + "\n")]
        few = ["--preset", "tiny", "--vocab-size", "60", "--batch-tokens", "512", "--threads", "1"]
        steps = [] if "--steps" in arguments else ["--steps", "6"]
        given += [*few, *steps]
        # A flag that is given twice is wrong usage: the case's own comes instead.
        for name in [argument for argument in arguments if argument in given]:
            del given[given.index(name) : given.index(name) + 2]
        return self.run(*given, *arguments)[0]


def config(**fields):
    """A change of a JSON file."""
    return lambda text: json.dumps({**json.loads(text), **fields}).encode()


def with_line(line):
    lines = [" ".join(random.Random(i).choices(WORDS, k=8)) for i in range(400)]
    return lines[:100] + [line] + lines[101:]


def not_a_number(weights):
    """The first weight of the first layer becomes NaN."""
    length = struct.unpack("<Q", weights[:8])[0]
    header = json.loads(weights[8 : 8 + length])
    name = next(name for name in sorted(header) if name.endswith("fc1.weight"))
    at = 8 + length + header[name]["data_offsets"][0]
    return weights[:at] + struct.pack("<f", float("nan")) + weights[at + 4 :]


def translate(case, model, *arguments):
    line, written = case.run("translate", "--model", model, *arguments, text=b"A man rides a horse.\n")
    return f"{line} [{written.count(10)} lines]"


def other_corpus(case):
    case.train("--steps", "3")
    lines = (case.folder / "source").read_text().splitlines()
    case.write("source", "".join(line + "\n" for line in reversed(lines)))
    return case.run("train", "--out", case.path("run"), "--resume", "--steps", "6")[0]


def half_a_metric(case):
    case.train("--steps", "3")
    metrics = case.folder / "run" / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-9])
    return case.run("train", "--out", case.path("run"), "--resume", "--steps", "6")[0]


def sigterm(case, beam):
    """How long a translation goes on behind SIGTERM."""
    lines = case.write("lines", "A man in a red shirt rides a brown horse along the beach.\n" * 2000)
    process = case.start(["translate", "--model", case.model, "--beam", beam, "--input", lines, "--output", case.path("out")])
    time.sleep(5)
    process.send_signal(signal.SIGTERM)
    begin = time.perf_counter()
    process.communicate()
    return f"exit {process.returncode}, {time.perf_counter() - begin:.2f} s after the signal"


class Server:
    """A server of the model on a free port."""

    def __init__(self, case, *arguments):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = case.start(["serve", "--model", case.model, "--port", str(self.port), *arguments], **quiet)
        for _ in range(300):
            try:
                if self.ask("/translate", {"q": "A dog.", "source": "en", "target": "de"})[0] != "503":
                    break
            except OSError:
                pass
            time.sleep(0.1)

    def ask(self, path, body, headers=(), host="127.0.0.1", half_closed=False):
        """The status and the body of the answer."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = [*headers, f"Content-Length: {len(body)}", "Connection: close"]
        head = [f"POST {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as stream:
            stream.sendall("\r\n".join([*head, *headers, "", ""]).encode() + body)
            if half_closed:
                stream.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: stream.recv(1 << 16), b""))
        if not answer:
            return "no answer", b""
        head, _, body = answer.partition(b"\r\n\r\n")
        return head.split()[1].decode(), body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def asked(path, body, *arguments, **options):
    def ask(case):
        if "--api-keys" in arguments:
            case.write("keys", "secret\n")
        with Server(case, *arguments) as server:
            status, answer = server.ask(path, body, **options)
            return f"{status} {answer[:110].decode(errors='replace')}"

    return ask


def much_text(case):
    with Server(case) as server:
        status, answer = server.ask("/translate", {"q": "dog " * 1250, "source": "en", "target": "de"})
        text = json.loads(answer).get("translatedText", answer.decode()) if status == "200" else answer.decode()
        status_of_chat, chat = server.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "dog " * 1250}]})
        choice = json.loads(chat)["choices"][0] if status_of_chat == "200" else {}
        return f"{status}, {len(text.split())} of 1250 words; chat {status_of_chat}, finish_reason {choice.get('finish_reason')}"


def hostile_tokenizer(merges=(), **parts):
    def case(case):
        model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": merges}
        absent = ["truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"]
        text = {"version": "1.0", "added_tokens": [], **dict.fromkeys(absent), **parts, "model": model}
        return case.run("tokenize", "--model", case.write("tokenizer.json", json.dumps(text)), text=b"abab a\n")[0]

    return case


def zeros(case):
    source = case.write("zeros.gz", gzip.compress(bytes(300 << 20), 1))
    target = case.write("target", "a\n")
    return case.run("train", "--source", source, "--target", target, "--out", case.path("run"), "--steps", "2", "--preset", "tiny")[0]


def long_line(case):
    line, written = case.run("translate", "--model", case.model, text=b"x" * (60 << 20) + b"\n")
    return f"{line} [{len(written)} bytes]"


HUGE = str(1 << 63)
CASES = {
    "`<pad>` in a target line of training": lambda case: case.train("--steps", "60", target=with_line("one <pad> two")),
    "NUL in a line of training": lambda case: case.train(source=with_line("one \0 two"), target=with_line("one \0 two")),
    "a weight that is NaN: translate": lambda case: translate(case, case.changed(model__safetensors=not_a_number)),
    "the same in int8": lambda case: translate(case, case.changed(model__safetensors=not_a_number), "--precision", "int8"),
    "the same: convert": lambda case: case.run("convert", "--model", case.changed(model__safetensors=not_a_number), "--out", case.path("out"))[0],
    "encoder_layers 2^31": lambda case: translate(case, case.changed(config__json=config(encoder_layers=1 << 31))),
    "max_position_embeddings 2^31": lambda case: translate(case, case.changed(config__json=config(max_position_embeddings=1 << 31))),
    "d_model 128 against the weights: info": lambda case: case.run("info", case.changed(config__json=config(d_model=128)))[0],
    "num_beams 10,000 in the folder": lambda case: translate(case, case.changed(generation_config__json=config(num_beams=10_000))),
    "num_beams 100,000 in the folder": lambda case: translate(case, case.changed(generation_config__json=config(num_beams=100_000))),
    "num_return_sequences 3 in the folder": lambda case: translate(case, case.changed(generation_config__json=config(num_beams=4, num_return_sequences=3))),
    **{f"{flag} 2^63": (lambda case, flag=flag: case.train(flag, HUGE)) for flag in ["--seed", "--keep", "--steps", "--batch-tokens", "--longest", "--d-ff", "--accumulate", "--warmup"]},
    "a tokenizer whose BPE merges what it has not": hostile_tokenizer(merges=[["a", "c"]]),
    "a tokenizer with a broken charsmap": hostile_tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "AQIDBA=="}),
    "a tokenizer that cuts pieces of 0 characters": hostile_tokenizer(pre_tokenizer={"type": "FixedLength", "length": 0}),
    "a tokenizer that strips backwards": hostile_tokenizer(decoder={"type": "Strip", "content": "a", "start": 1 << 40, "stop": 1 << 40}),
    "1,250 words to the server": much_text,
    "another Host on loopback": asked("/translate", {"q": "A dog.", "source": "en", "target": "de"}, host="evil.example"),
    "`bearer` in lower case": asked("/v1/chat/completions", {"messages": [{"role": "user", "content": "A dog."}]}, "--api-keys", "keys", headers=["Authorization: bearer secret"]),
    "Content-Encoding gzip": asked("/translate", gzip.compress(b'{"q": "A dog.", "source": "en", "target": "de"}'), headers=["Content-Encoding: gzip"]),
    "a client that closes its half": asked("/translate", {"q": "A dog.", "source": "en", "target": "de"}, half_closed=True),
    "`tools` in a chat": asked("/v1/chat/completions", {"messages": [{"role": "user", "content": "A dog."}], "tools": [{"type": "function", "function": {"name": "f"}}]}),
    "`stop: null` in a chat": asked("/v1/chat/completions", {"messages": [{"role": "user", "content": "A dog."}], "stop": None, "max_tokens": 4}),
    "--resume with other lines, as many and as long": other_corpus,
    "--resume behind half a line of metrics.jsonl": half_a_metric,
    "SIGTERM at a beam of 256": lambda case: sigterm(case, "256"),
    "a line of 60 MB without a space": long_line,
    "300 MB of zeros in a gzip": zeros,
}


def main():
    if len(sys.argv) < 3:
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        sys.exit(2)
    model, *programs = [os.path.abspath(path) for path in sys.argv[1:]]
    print("| what | " + " | ".join(programs) + " |\n|" + "---|" * (1 + len(programs)))
    for name, try_it in CASES.items():
        results = []
        for program in programs:
            case = Case(program, model)
            try:
                results.append(try_it(case).replace("|", "/").replace("\n", " ").replace(str(case.folder), "…"))
            except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                results.append(f"not tried: {error}")
            finally:
                shutil.rmtree(case.folder)
        print(f"| {name} | " + " | ".join(results) + " |", flush=True)


if __name__ == "__main__":
    main()
