// The whole model: each step can be chosen, and leads to the sections below it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Key } from "selenium-webdriver";

const TEXT = "four thousand three hundred and twenty-one";

const number = (text) => Number(text.replace("−", "-"));

export function whole(its) {
  test("the whole model has every layer, and ends with the probabilities of the next token", async () => {
    const { page, server } = its;
    await page.be({});
    await page.open(server.address);
    await page.translate(TEXT, "de");
    assert.deepEqual(await page.texts(".stack h3"), ["Encoder", "Decoder"]);
    const names = await page.run(`return [...document.querySelectorAll(".step")].map((step) => step.dataset.step)`);
    assert.deepEqual(names, [
      "source-tokens", "source-embedding", "encoder-0", "encoder-0-forward", "encoder-1", "encoder-1-forward", "encoded",
      "target-tokens", "target-embedding", "decoder-0", "cross-0", "decoder-0-forward", "decoder-1", "cross-1", "decoder-1-forward",
      "logits", "next",
    ]);
    const whole = await server.post("/v1/translate", { text: TEXT, target: "de", beam: 4, n_best: 4 });
    const { tokens } = whole.translations[0].hypotheses[0];
    await page.run(`const select = document.getElementById("whole-token"); select.value = "2"; select.dispatchEvent(new Event("change"))`);
    await page.atRest();
    const prefix_tokens = tokens.slice(0, 2).map(({ id }) => id);
    const answer = await server.post("/v1/translate", { text: TEXT, target: "de", prefix_tokens, alternatives: 6 });
    const most = Math.max(...answer.translations[0].hypotheses.map((one) => one.tokens[2].logprob));
    await page.until("the probabilities are those of the third token", async () =>
      Math.abs(Number((await page.texts("#whole-step .score"))[0].replace("%", "")) - 100 * Math.exp(most)) <= 0.06);
    // Tokens of the same text are told apart.
    const next = await page.texts("#whole-step .text");
    assert.equal(new Set(next).size, next.length, next.join(" "));
  });

  test("a step of attention is chosen with the keyboard, and shown below", async () => {
    const { page } = its;
    await page.press("[data-step=next]", Key.ARROW_UP, Key.ARROW_UP, Key.ARROW_UP, Key.ENTER);
    await page.until("it is told", async () => (await page.text("#whole-step h3")) === "Layer 2 of 2: cross attention");
    await page.until("it is drawn below", async () => (await page.text("#chosen")) === "cross attention, layer 2, mean of all heads");
    await page.click("[data-step='encoder-0']");
    await page.until("the other is drawn", async () => (await page.text("#chosen")) === "encoder self-attention, layer 1, mean of all heads");
    assert.equal((await page.texts("#whole-step .score")).length, 5);
    await page.choose("kind", "cross");
  });

  test("each step shows its hidden states, which are those of the server", async () => {
    const { page, server } = its;
    const whole = await server.post("/v1/translate", { text: TEXT, target: "de", beam: 4, n_best: 4 });
    const translation_tokens = whole.translations[0].hypotheses[0].tokens.map(({ id }) => id);
    const ask = (hidden) => server.post("/v1/attention", { text: TEXT, target: "de", translation_tokens, kinds: [], hidden });
    const steps = {
      "source-embedding": { stack: "encoder", point: "embedding" }, "encoder-1": { stack: "encoder", point: "attention", layer: 1 },
      "encoder-0-forward": { stack: "encoder", point: "feed_forward", layer: 0 }, encoded: { stack: "encoder", point: "output" },
      "cross-1": { stack: "decoder", point: "cross", layer: 1 }, "decoder-1-forward": { stack: "decoder", point: "feed_forward", layer: 1 },
      logits: { stack: "decoder", point: "output" },
    };
    for (const [name, step] of Object.entries(steps)) {
      await page.click(`[data-step='${name}']`);
      const { hidden, source } = await ask(step);
      await page.until(`the states of ${name} are drawn`, async () => (await page.all("#whole-step .states svg")).length === 1);
      await page.press("#whole-step .states svg", Key.ARROW_DOWN, Key.ARROW_DOWN, Key.ARROW_RIGHT, Key.ARROW_RIGHT, Key.ARROW_RIGHT);
      const [, value, length] = /: (−?[\d.]+)\. Its vector is ([\d.]+) long/.exec(await page.text("#whole-step .read-out"));
      assert.ok(Math.abs(number(value) - hidden.values[1][3]) < 1e-4, `${name} ${value} ${hidden.values[1][3]}`);
      assert.ok(Math.abs(number(length) - hidden.norms[1]) < 0.006, `${name} ${length} ${hidden.norms[1]}`);
      // Of a decoder, what was written behind the chosen token is not there yet.
      const rows = step.stack === "encoder" ? source.length : 3;
      assert.match(await page.run(`return document.querySelector("#whole-step .states svg").getAttribute("aria-label")`), new RegExp(` of ${rows} tokens`));
    }
    assert.deepEqual(await page.axe(), []);
  });

  test("hidden states of a long text stay small", async () => {
    const { page } = its;
    await page.translate(Array.from({ length: 200 }, (_, i) => ["one", "seven", "twenty", "hundred"][i % 4]).join(" "), "de");
    await page.click("[data-step='encoder-1-forward']");
    await page.until("they are drawn", async () => (await page.all("#whole-step .states svg")).length === 1);
    const [tall, whole] = await page.run(`const { offsetHeight, scrollHeight } = document.querySelector("#whole-step .states");
      return [offsetHeight, scrollHeight]`);
    assert.ok(tall < 400 && whole > 3000, `${tall} ${whole}`);
    await page.translate(TEXT, "de");
  });
}
