"""LibreTranslate's and OpenAI's own Python clients, as they are, against the server."""

import base64
import json
import struct
import sys
import tempfile

import openai
from encoders import ANSWERS, GOLDEN, encoder
from libretranslatepy import LibreTranslateAPI
from server import Server

TEXT = "four thousand three hundred and twenty-one"
GERMAN = "viertausenddreihunderteinundzwanzig"
GERMAN_SENTENCE = "Der Zug hatte heute Morgen wieder Verspätung, also gingen wir zu Fuß ins Büro."


def libretranslate(server):
    client = LibreTranslateAPI(server.address + "/")
    assert client.translate("twenty-one", "en", "de") == "einundzwanzig"
    assert client.translate("ninety-seven", "en", "fr") == "quatre-vingt-dix-sept"
    [found] = client.detect(GERMAN_SENTENCE)
    assert found["language"] == "de" and 0 < found["confidence"] <= 100, found
    [english] = client.languages()
    assert english["code"] == "en" and sorted(english["targets"]) == ["de", "fr"], english


def completions(client):
    names = [model.id for model in client.models.list()]
    assert names == ["numbers", "numbers:de", "numbers:fr"], names
    assert client.models.retrieve("numbers").owned_by == "attentive"
    answer = client.completions.create(model="numbers:de", prompt=[TEXT, "one"])
    assert [choice.text for choice in answer.choices] == [GERMAN, "eins"], answer
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    pieces = [chunk.choices[0].text for chunk in client.completions.create(model="numbers:de", prompt=TEXT, stream=True)]
    assert "".join(pieces) == GERMAN and len(pieces) > 3, pieces


def chat(client):
    messages = [{"role": "system", "content": "Translate."}, {"role": "user", "content": TEXT}]
    answer = client.chat.completions.create(model="numbers:de", messages=messages)
    assert answer.choices[0].message.content == GERMAN, answer
    assert answer.choices[0].finish_reason == "stop"
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(model="numbers:de", messages=messages, **options))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == GERMAN and len(chunks) > 4, chunks
    assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens
    drawn = client.chat.completions.create(model="numbers:de", messages=messages, temperature=2.0, n=4, seed=3)
    again = client.chat.completions.create(model="numbers:de", messages=messages, temperature=2.0, n=4, seed=3)
    texts = [choice.message.content for choice in drawn.choices]
    assert texts == [choice.message.content for choice in again.choices] and len(texts) == 4


def continuations(program):
    answers = json.loads((GOLDEN / "gpt2.json").read_text())
    with Server(program, "--model", f"small={GOLDEN / 'gpt2' / 'saved'}") as server:
        client = openai.OpenAI(base_url=f"{server.address}/v1", api_key="any", max_retries=0)
        greedy = {"model": "small", "temperature": 0}
        for prompts in (answers["prompts"], answers["ids"]):
            answer = client.completions.create(prompt=prompts, **greedy)
            texts = [text.removesuffix("<|endoftext|>") for text in answers["greedy"]]
            assert [choice.text for choice in answer.choices] == texts, answer
            assert {choice.finish_reason for choice in answer.choices} == {"stop", "length"}, answer
        options = {"prompt": answers["prompts"][2], "echo": True, "n": 2, "seed": 5, "logprobs": 2, "max_tokens": 9}
        whole = client.completions.create(model="small", **options)
        told = ["", ""]
        for chunk in client.completions.create(model="small", stream=True, stream_options={"include_usage": True}, **options):
            for choice in chunk.choices:
                told[choice.index] += choice.text
        assert told == [choice.text for choice in whole.choices], whole
        assert chunk.usage == whole.usage, chunk
        logprobs = whole.choices[0].logprobs
        assert logprobs.token_logprobs[0] is None and "".join(logprobs.tokens) == told[0], logprobs
        try:
            client.chat.completions.create(model="small", messages=[{"role": "user", "content": "Hello"}])
        except openai.BadRequestError as refused:
            assert "/v1/completions" in refused.body["message"], refused.body
        else:
            raise AssertionError("a chat with a language model was not refused")


def embeddings(program):
    with encoder("hidden") as folder, Server(program, "--model", f"words={folder}") as server:
        client = openai.OpenAI(base_url=f"{server.address}/v1", api_key="any", max_retries=0)
        texts = ANSWERS["texts"][:2]
        # Without a format the client asks for base64 and decodes it.
        answer = client.embeddings.create(model="words", input=texts)
        floats = client.embeddings.create(model="words", input=texts, encoding_format="float")
        # Python's numbers are wider: what was a float32 becomes one again.
        floats = [struct.unpack("<32f", struct.pack("<32f", *one.embedding)) for one in floats.data]
        for found, same, expected in zip(answer.data, floats, ANSWERS["mean"]):
            assert tuple(found.embedding) == same, found
            assert max(abs(a - b) for a, b in zip(found.embedding, expected)) < 1e-5, found
        assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0, answer.usage
        body = {"model": "words", "input": texts, "encoding_format": "base64"}
        for found, same in zip(server.post("/v1/embeddings", body)["data"], floats):
            assert struct.unpack("<32f", base64.b64decode(found["embedding"])) == same, found
        try:
            client.embeddings.create(model="words", input=ANSWERS["texts"][2])
        except openai.BadRequestError as refused:
            assert "maximum context length" in refused.body["message"], refused.body
        else:
            raise AssertionError("a text that is too long was not refused")


def refusals(client):
    for error, ask in [
        (openai.NotFoundError, {"model": "gpt-4", "prompt": "one"}),
        (openai.BadRequestError, {"model": "numbers", "prompt": "one", "n": 1000}),
    ]:
        try:
            client.completions.create(**ask)
        except error as refused:
            assert refused.body["param"] in ("model", "n"), refused.body
        else:
            raise AssertionError(f"{ask} was not refused")


def keys(program):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("# keys\nsecret\n")
        file.flush()
        with Server(program, "--api-keys", file.name) as server:
            client = openai.OpenAI(base_url=f"{server.address}/v1", api_key="secret")
            assert client.completions.create(model="numbers", prompt="one").choices[0].text == "eins"
            wrong = openai.OpenAI(base_url=f"{server.address}/v1", api_key="wrong", max_retries=0)
            try:
                wrong.models.list()
            except openai.AuthenticationError:
                pass
            else:
                raise AssertionError("a wrong key was let in")
            client = LibreTranslateAPI(server.address + "/", api_key="secret")
            assert client.translate("one", "en", "de") == "eins"


def main(program):
    with Server(program) as server:
        libretranslate(server)
        client = openai.OpenAI(base_url=f"{server.address}/v1", api_key="any")
        completions(client)
        chat(client)
        refusals(client)
    continuations(program)
    embeddings(program)
    keys(program)
    print("libretranslatepy and openai work as they are")


if __name__ == "__main__":
    main(sys.argv[1])
