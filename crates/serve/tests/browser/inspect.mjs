// What `attentive inspect` writes: a page that needs no server.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const MODEL = new URL("../../model", import.meta.url).pathname;

export function inspect(its) {
  test("a page that was written has all pictures, opened from the disk", async () => {
    const { page } = its;
    const file = join(page.downloads, "attention.html");
    execFileSync(process.env.ATTENTIVE, ["inspect", "--model", MODEL, ">>de<< twenty-one", "--out", file]);
    await page.be({});
    await page.driver.get(`file://${file}`);
    await page.until("it is drawn", () => page.run(`return document.querySelector("#picture svg") !== null`));
    for (const kind of ["encoder", "decoder", "cross"]) {
      await page.choose("kind", kind);
      await page.until("the kind is drawn", async () => (await page.text("#chosen")).startsWith(kind));
      assert.equal((await page.all("#grid .map")).length, 10);
    }
    await page.choose("view", "lines");
    await page.until("lines are drawn", async () => (await page.all("#picture .strokes path")).length > 5);
    // The whole model, and a head step by step, without a server.
    assert.deepEqual(await page.texts(".stack h3"), ["Encoder", "Decoder"]);
    await page.click("[data-step='cross-1']");
    await page.until("the step is told", async () => (await page.text("#whole-step h3")) === "Layer 2 of 2: cross attention");
    const [states] = await page.run(`return [document.querySelector("#whole-step .states svg").getAttribute("aria-label")]`);
    assert.match(states, /^Hidden states of \d+ tokens?, 64 numbers each/);
    await page.choose("scene", "head");
    await page.until("it is followed step by step", async () => (await page.all("#head-picture svg")).length > 0);
    await page.shoot("inspect", 1280);
    assert.deepEqual(await page.axe(), []);
    assert.deepEqual(await page.complaints(), []);
  });
}
