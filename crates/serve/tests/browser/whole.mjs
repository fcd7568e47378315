// The whole model: each step can be chosen, and leads to the sections below it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Key } from "selenium-webdriver";

const TEXT = "four thousand three hundred and twenty-one";

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
}
