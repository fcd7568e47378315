// Step by step: the colours, and a head of the model with the numbers of the server.

import assert from "node:assert/strict";
import { test } from "node:test";

const number = (text) => Number(text.replace("−", "-"));

export function steps(its) {
  const rows = async (place) => (await its.page.run(`return [...document.querySelectorAll("#${place}-table tbody tr")]
    .map((row) => [...row.children].map((cell) => cell.textContent))`));

  test("orange is half red and half yellow", async () => {
    const { page } = its;
    await page.be({});
    await page.choose("scene", "colours");
    await page.click("#colours [data-name=orange]");
    const weights = Object.fromEntries((await rows("colours")).map(([name, , , weight]) => [name, number(weight)]));
    assert.ok(weights.red > 0.45 && Math.abs(weights.red - weights.yellow) < 1e-6, JSON.stringify(weights));
    const [red, green, blue] = (await page.text("#swatch-value")).match(/[\d.]+/g).map(Number);
    assert.ok(red > 0.95 && Math.abs(green - 0.5) < 0.05 && blue < 0.05, `${red} ${green} ${blue}`);
    const sum = Object.values(weights).reduce((a, b) => a + b, 0);
    assert.ok(Math.abs(sum - 1) < 1e-5);
  });

  test("without the division the softmax turns peaky", async () => {
    const { page } = its;
    await page.click("#colours [data-name=brown]");
    const peak = async () => Math.max(...(await rows("colours")).map((row) => number(row[3])));
    const divided = await peak();
    await page.click("#divide");
    assert.ok((await peak()) > divided + 0.1);
    assert.match(await page.text("#colours-picture svg"), /not divided/);
    await page.click("#divide");
  });

  test("a query of one's own can be mixed", async () => {
    const { page } = its;
    await page.click("#colours [data-name=anything]");
    assert.ok((await rows("colours")).every((row) => Math.abs(number(row[3]) - 1 / 6) < 1e-5));
    await page.run(`document.getElementById("mixer").closest("details").open = true`);
    await page.slide("mix-blue", "1");
    const weights = Object.fromEntries((await rows("colours")).map(([name, , , weight]) => [name, number(weight)]));
    assert.ok(weights.blue > 0.9, JSON.stringify(weights));
    assert.equal(await page.text("#swatch-name"), "a mixture");
  });

  test("a head of the model has the numbers of the server, and its weights", async () => {
    const { page, server } = its;
    const text = "twenty-one";
    await page.translate(text, "de");
    await page.choose("scene", "head");
    for (const [kind, layer, head, query] of [["cross", 1, 2, 1], ["decoder", 0, 1, 2], ["encoder", 1, 0, 3]]) {
      await page.run(`for (const [id, value] of Object.entries(arguments[0])) {
        const select = document.getElementById(id);
        if (![...select.options].some((option) => option.value === String(value))) continue;
        select.value = value;
        select.dispatchEvent(new Event("change"));
      }`, { "head-kind": kind });
      await page.until("the kind is there", () => page.run(`return document.getElementById("head-kind").value === arguments[0]`, kind));
      for (const [id, value] of [["head-layer", layer], ["head-head", head], ["head-query", query]]) {
        const select = "const select = document.getElementById(arguments[0]);";
        await page.until("it can be chosen", () => page.run(`${select} return select.options.length > arguments[1]`, id, value));
        await page.run(`${select} select.value = arguments[1]; select.dispatchEvent(new Event("change"))`, id, value);
        await page.until("it is chosen", () => page.run(`${select} return select.value === String(arguments[1])`, id, value));
      }
      const look = { kinds: [kind], layers: [layer], heads: [head], vectors: { kind, layer, head } };
      const answer = await server.post("/v1/attention", { text, target: "de", ...look });
      const { queries, keys, scale, causal } = answer.vectors;
      const products = keys.map((key) => key.reduce((sum, k, i) => sum + k * queries[query][i], 0));
      await page.until("its numbers are there", async () => Math.abs(number((await rows("head"))[0][1]) - products[0]) < 1e-4);
      for (const [i, row] of (await rows("head")).entries()) {
        assert.ok(Math.abs(number(row[1]) - products[i]) < 1e-4, `${row}`);
        if (causal && i > query) {
          assert.equal(row[2], "masked");
          assert.equal(number(row[3]), 0);
          continue;
        }
        assert.ok(Math.abs(number(row[2]) - products[i] * scale) < 1e-4, `${row}`);
        assert.ok(Math.abs(number(row[3]) - answer.attention[0].weights[query][i]) < 1e-4, `${row}`);
      }
    }
  });

  test("a row of the heat map is followed when it is clicked", async () => {
    const { page } = its;
    await page.choose("scene", "colours");
    await page.choose("kind", "cross");
    await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("cross"));
    await page.press("#picture svg", "\uE015", "\uE015", "\uE007");
    await page.until("the head is shown", () => page.run(`return !document.getElementById("head").hidden
      && document.getElementById("head-query").value === "1"`));
  });
}
