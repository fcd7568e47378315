"""Python's huggingface_hub and `attentive` on one cache: what one has downloaded the other finds. `hub.py PROGRAM`"""

import hashlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

MODEL = pathlib.Path(__file__).parents[2] / "crates" / "serve" / "model"
NAME = "ada/numbers-en-de"
COMMIT = "a" * 40
# Files of so many bytes are large: they are named by their SHA-256, and a redirect leads to them.
LARGE = 1000


def etag(contents):
    if len(contents) >= LARGE:
        return hashlib.sha256(contents).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(contents) + contents).hexdigest()


class Hub(http.server.BaseHTTPRequestHandler):
    """The Hub's protocol for one model."""

    protocol_version = "HTTP/1.1"
    files = {path.name: path.read_bytes() for path in MODEL.iterdir()}
    asked = []

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(*self.found())

    def do_GET(self):
        self.answer(*self.found())

    def found(self):
        path = self.path.split("?")[0]
        self.asked.append((self.command, path))
        if path in (f"/api/models/{NAME}/revision/main", f"/api/models/{NAME}/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in self.files]
            model = {"id": NAME, "modelId": NAME, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings}
            return 200, {"Content-Type": "application/json"}, json.dumps(model).encode()
        if path == f"/api/models/{NAME}/tree/{COMMIT}":
            return 200, {"Content-Type": "application/json"}, json.dumps([self.entry(name) for name in self.files]).encode()
        for start in (f"/{NAME}/resolve/main/", f"/{NAME}/resolve/{COMMIT}/", "/store/"):
            name = path.removeprefix(start)
            if path.startswith(start) and name in self.files:
                contents = self.files[name]
                headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{etag(contents)}"'}
                if len(contents) < LARGE or start == "/store/":
                    return 200, headers, contents
                linked = {"X-Linked-ETag": headers["ETag"], "X-Linked-Size": str(len(contents))}
                # Another host: the same server by another name.
                location = f"http://localhost:{self.server.server_port}/store/{name}"
                return 302, {**headers, **linked, "Location": location}, b""
        return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b""

    def entry(self, name):
        contents = self.files[name]
        entry = {"type": "file", "path": name, "size": len(contents), "oid": etag(contents)[:40]}
        if len(contents) >= LARGE:
            entry["lfs"] = {"oid": etag(contents), "size": len(contents), "pointerSize": 100}
        return entry

    def answer(self, status, headers, contents):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(contents)


def run(program, home, *arguments, offline=False):
    environment = {"HF_HOME": home, "HF_ENDPOINT": os.environ["HF_ENDPOINT"], "HF_HUB_OFFLINE": "1" if offline else "0"}
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.returncode}: {done.stderr}"
    return done.stdout


def python(home, code, offline=False):
    """Runs lines of Python in a process of their own, since the package reads the environment once."""
    variables = {"HF_HOME": home, "HF_HUB_OFFLINE": "1" if offline else "0", "HF_HUB_DISABLE_XET": "1"}
    code = f"from huggingface_hub import *\nfrom huggingface_hub import _CACHED_NO_EXIST\nNAME = {NAME!r}\n{code}"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ours_is_found_by_python(program):
    with tempfile.TemporaryDirectory() as home:
        folder = run(program, home, "pull", NAME).strip()
        found = python(home, "print(snapshot_download(NAME, local_files_only=True))", offline=True)
        assert found == folder, (found, folder)
        weights = python(home, "print(hf_hub_download(NAME, 'model.safetensors'))", offline=True)
        assert pathlib.Path(weights).read_bytes() == Hub.files["model.safetensors"]
        # That a file is missing on the Hub is remembered, too.
        absent = python(home, "print(try_to_load_from_cache(NAME, 'vocab.txt') is _CACHED_NO_EXIST)", offline=True)
        assert absent == "True", absent
        # With a network nothing large comes again.
        Hub.asked.clear()
        python(home, "hf_hub_download(NAME, 'model.safetensors')")
        assert not any(path.startswith("/store/") for _, path in Hub.asked), Hub.asked
        blobs = {path.resolve() for path in pathlib.Path(folder).iterdir()}
        count = python(home, "print(*[repo.nb_files for repo in scan_cache_dir().repos])")
        assert count == str(len(blobs)), count
        warnings = python(home, "print(scan_cache_dir().warnings)")
        assert warnings == "[]", warnings


def pythons_is_found_by_us(program):
    with tempfile.TemporaryDirectory() as home:
        folder = python(home, "print(snapshot_download(NAME))")
        text = run(program, home, "translate", "--model", NAME, "--to", "de", "twenty-one", offline=True)
        assert text == "einundzwanzig\n", text
        # With a network we ask once which files there are, and download nothing.
        Hub.asked.clear()
        for _ in range(2):
            run(program, home, "translate", "--model", NAME, "--to", "de", "two")
        assert [path for _, path in Hub.asked] == [f"/api/models/{NAME}/revision/main"], Hub.asked
        assert run(program, home, "pull", NAME).strip() == folder
        [row] = json.loads(run(program, home, "models", "--json"))
        assert (row["name"], row["revisions"], row["tasks"]) == (NAME, ["main"], ["translate"]), row
        run(program, home, "models", "rm", NAME)
        assert python(home, "print(len(scan_cache_dir().repos))") == "0"


def both_at_the_same_time(program):
    with tempfile.TemporaryDirectory() as home:
        Hub.asked.clear()
        threads = [
            threading.Thread(target=run, args=(program, home, "pull", NAME)),
            threading.Thread(target=python, args=(home, "snapshot_download(NAME)")),
            threading.Thread(target=run, args=(program, home, "pull", NAME)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fetched = [path for command, path in Hub.asked if command == "GET" and path.startswith("/store/")]
        assert len(fetched) == len(set(fetched)), fetched
        text = run(program, home, "translate", "--model", NAME, "--to", "de", "two", offline=True)
        assert text == "zwei\n", text


def main():
    program = os.path.abspath(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
    for test in (ours_is_found_by_python, pythons_is_found_by_us, both_at_the_same_time):
        test(program)
        print(f"{test.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
