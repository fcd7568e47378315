// Models that add a bias to their scores: each term is told apart, and each part can be drawn alone.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder } from "./encoder.mjs";
import { startServer } from "./browser.mjs";

const T5 = new URL("../../../../golden/t5/first", import.meta.url).pathname;
const TEXT = "a dog and a [MASK]";

const number = (text) => Number(text.replace("−", "-"));

/** What stands above the columns of numbers, and how they follow from the vectors of a head. */
const MODELS = {
  t5: { kind: "encoder", head: ["key", "q · k", "+ distance", "= score", "weight"], hint: /for the distance of the two tokens/ },
  deberta: {
    kind: "encoder", head: ["key", "q · k", "÷ √(3·8)", "+ q · pos", "+ k · pos", "= score", "weight"], hint: /content to position.*position to content/,
  },
};

export function terms(its) {
  let server, deberta;
  before(async () => {
    deberta = folder("masked", "deberta");
    server = await startServer("--model", `t5=${T5}`, "--model", `deberta=${deberta}`);
  });
  after(async () => {
    await server?.stop();
    if (deberta) rmSync(deberta, { recursive: true });
  });

  /** Opens a model with the text. */
  const open = async (model) => {
    const { page } = its;
    await page.driver.get("about:blank");
    await page.driver.get(`${server.address}/#try?task=${model === "t5" ? "translate" : "fill"}&model=${model}&text=${encodeURIComponent(TEXT)}`);
    await page.until("it is drawn", () => page.run(`return document.querySelector("#picture svg") !== null`));
    await page.atRest();
  };

  /** Chooses an option of a select as a reader does. */
  const select = (id, value) => its.page.run(`const select = document.getElementById(arguments[0]); select.value = arguments[1];
    select.dispatchEvent(new Event("change"))`, id, String(value));

  for (const [model, { kind, head, hint }] of Object.entries(MODELS)) {
    test(`a score of ${model} is the sum of its terms`, async () => {
      const { page } = its;
      await page.be({ width: 1280, theme: "light" });
      await open(model);
      await page.choose("scene", "head");
      await page.atRest();
      await select("head-kind", kind);
      await page.atRest();
      await select("head-layer", 1);
      await page.atRest();
      await select("head-head", 2);
      await page.atRest();
      await select("head-query", 1);
      await page.atRest();
      const { vectors, attention: [{ weights }] } = await server.post("/v1/attention", {
        model, text: TEXT, kinds: [kind], layers: [1], heads: [2], vectors: { kind, layer: 1, head: 2 },
      });
      assert.deepEqual(await page.texts("#head-table thead th"), head);
      const rows = await page.run(`return [...document.querySelectorAll("#head-table tbody tr")]
        .map((row) => [...row.children].slice(1).map((cell) => cell.textContent))`);
      assert.equal(rows.length, vectors.keys.length);
      rows.map((row) => row.map(number)).forEach((row, i) => {
        const product = vectors.keys[i].reduce((sum, k, d) => sum + k * vectors.queries[1][d], 0);
        const divided = vectors.scale === 1 ? [] : [product * vectors.scale];
        const added = vectors.terms.map(({ numbers }) => numbers[1][i]);
        const score = added.reduce((a, b) => a + b, product * vectors.scale);
        [product, ...divided, ...added, score, weights[1][i]].forEach((expected, at) =>
          assert.ok(Math.abs(row[at] - expected) < 2e-5, `${model} ${i} ${at}: ${row[at]} ${expected}`));
      });
      assert.match(await page.text("#head-terms"), hint);
      await page.shoot(`terms-${model}`, 1280);
      assert.deepEqual(await page.axe(), []);
    });

    test(`content and bias of ${model} can be drawn alone`, async () => {
      const { page } = its;
      await page.choose("kind", kind);
      await page.atRest();
      assert.equal(await page.run(`return document.getElementById("part").hidden`), false);
      for (const [view, part] of [["content", "content"], ["bias", "bias"], ["both", null]]) {
        await page.choose("part", view);
        await page.until(`${view} is drawn`, async () => (await page.text("#chosen")).endsWith(part ? `${part} alone` : "head 3"));
        await page.atRest();
        const { attention: [{ weights }] } = await server.post("/v1/attention", { model, text: TEXT, kinds: [kind], layers: [1], heads: [2], part });
        await page.press("#picture svg", "\uE015", "\uE015", "\uE014");
        assert.equal(number((await page.text("#read-out")).split(": ").at(-1)).toFixed(4), weights[1][1].toFixed(4), view);
        assert.equal((await page.all("#grid .to-come")).length, 0);
      }
      assert.deepEqual(await page.complaints(), []);
    });
  }

  test("attention without a bias has no parts to choose from", async () => {
    const { page } = its;
    await open("t5");
    await page.choose("kind", "cross");
    await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("cross"));
    assert.equal(await page.run(`return document.getElementById("part").hidden`), true);
  });

  test("a page that was written has the terms and the parts", async () => {
    const { page } = its;
    const file = join(page.downloads, "t5.html");
    execFileSync(process.env.ATTENTIVE, ["inspect", "--model", T5, TEXT, "--out", file]);
    await page.driver.get(`file://${file}`);
    await page.until("it is drawn", () => page.run(`return document.querySelector("#picture svg") !== null`));
    await page.choose("kind", "encoder");
    await page.atRest();
    await page.choose("part", "bias");
    await page.until("the bias is drawn", async () => (await page.text("#chosen")).endsWith("bias alone"));
    await page.choose("scene", "head");
    await page.until("the terms are there", async () => (await page.texts("#head-table thead th")).includes("+ distance"));
    assert.deepEqual(await page.axe(), []);
    assert.deepEqual(await page.complaints(), []);
    rmSync(file);
  });
}
