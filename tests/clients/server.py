"""The server of the built program, for as long as a `with` block lasts."""

import json
import subprocess
import time
import urllib.error
import urllib.request


class Server:
    def __init__(self, program, *more):
        self.command = [program, "serve", "--port", "0", "--log", "off", *more]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().removeprefix("listening on ").strip()
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/readyz").read()
                return self
            except urllib.error.HTTPError:
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        assert code == 0, f"the server ended with {code}"

    def post(self, path, body):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
