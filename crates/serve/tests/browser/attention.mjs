// Attention: the grid, the large heat map, the lines, and whether the numbers are those of the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Key } from "selenium-webdriver";

const TEXT = "four thousand three hundred and twenty-one";

export function attention(its) {
  const ask = async (kind) => {
    const { server } = its;
    const whole = await server.post("/v1/translate", { text: TEXT, target: "de", beam: 4, n_best: 4 });
    const translation_tokens = whole.translations[0].hypotheses[0].tokens.map(({ id }) => id);
    return server.post("/v1/attention", { text: TEXT, target: "de", translation_tokens, kinds: [kind] });
  };

  test("every layer and head of every kind is a small picture", async () => {
    const { page, server } = its;
    await page.be({});
    await page.open(server.address);
    // An example is shown from the beginning.
    assert.equal(await page.run(`return document.querySelector("#attention .filled").hidden`), false);
    await page.translate(TEXT, "de");
    const { data: [{ details }] } = await (await fetch(`${server.address}/v1/models`)).json();
    for (const kind of ["encoder", "decoder", "cross"]) {
      await page.choose("kind", kind);
      await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith(kind));
      const layers = kind === "encoder" ? details.encoder_layers : details.decoder_layers;
      assert.equal((await page.all("#grid .map")).length, layers * (details.h + 1));
    }
  });

  test("values on hover are those of the server", async () => {
    const { page } = its;
    for (const kind of ["encoder", "decoder", "cross"]) {
      await page.choose("kind", kind);
      await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith(kind));
      const answer = await ask(kind);
      await page.click("#grid .map:nth-of-type(3)");
      await page.until("the third head is chosen", async () => (await page.text("#chosen")).endsWith("layer 1, head 3"));
      const [matrix] = answer.attention.filter(({ layer, head }) => layer === 0 && head === 2);
      for (const [keys, row, column] of [[[Key.ARROW_DOWN], 0, 0], [[Key.ARROW_DOWN, Key.ARROW_DOWN, Key.ARROW_RIGHT], 2, 1]]) {
        await page.press("#picture svg", ...keys);
        const value = (await page.text("#read-out")).split(": ").at(-1);
        assert.equal(Number(value).toFixed(4), matrix.weights[row][column].toFixed(4), `${kind} ${row} ${column}`);
      }
    }
  });

  test("the pointer reads the cell under it, and what is masked is masked", async () => {
    const { page } = its;
    await page.choose("kind", "decoder");
    await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("decoder"));
    assert.ok((await page.all("#picture path[fill='url(#masked)']")).length > 0);
    await page.atRest();
    await page.run(`document.querySelector("#picture svg").scrollIntoView({ block: "center", behavior: "instant" })`);
    const frame = await page.run(`const box = document.querySelector("#picture svg > rect").getBoundingClientRect();
      return [box.left, box.top, box.width, box.height]`);
    const at = (x, y) => page.driver.actions().move({ x: Math.round(frame[0] + x), y: Math.round(frame[1] + y) }).perform();
    await at(frame[2] - 4, 4);
    assert.match(await page.text("#read-out"), /masked$/);
    await at(4, 4);
    assert.match(await page.text("#read-out"), /: 1\.0000$/);
  });

  test("heads are chosen with arrow keys, and the mean is there", async () => {
    const { page } = its;
    await page.choose("kind", "cross");
    await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("cross"));
    await page.press("#grid [tabindex='0']", Key.END, Key.ENTER);
    await page.until("the mean is chosen", async () => (await page.text("#chosen")).endsWith("mean of all heads"));
    const answer = await ask("cross");
    const [matrix] = answer.attention.filter(({ head }) => head === null).slice(-1);
    const heads = answer.attention.filter(({ layer, head }) => layer === matrix.layer && head !== null);
    const mean = heads.reduce((sum, head) => sum + head.weights[1][1], 0) / heads.length;
    await page.press("#picture svg", Key.ARROW_DOWN, Key.ARROW_DOWN, Key.ARROW_RIGHT);
    const value = Number((await page.text("#read-out")).split(": ").at(-1));
    assert.ok(Math.abs(value - mean) < 1e-4, `${value} ${mean}`);
  });

  test("lines lead from each token to what it looks at", async () => {
    const { page } = its;
    await page.choose("view", "lines");
    await page.until("lines are drawn", async () => (await page.all("#picture .strokes path")).length > 5);
    await page.press("#picture svg", Key.ARROW_DOWN);
    assert.match(await page.text("#read-out"), /^“vier” → “.+” 0\.\d\d/);
    assert.deepEqual(await page.texts("#heads [aria-pressed=true]"), [" mean"]);
    const visible = await page.run(`return [...document.querySelectorAll("#picture .strokes path")]
      .filter((path) => path.style.display !== "none").length`);
    assert.ok(visible < (await page.all("#picture .strokes path")).length);
    const strokes = async () => new Set(await page.run(
      `return [...document.querySelectorAll("#picture .strokes path")].map((path) => path.getAttribute("stroke"))`)).size;
    assert.equal(await strokes(), 1);
    await page.click("#heads [data-head='1']");
    await page.click("#heads [data-head='3']");
    await page.until("two heads are added", async () => (await strokes()) === 3);
    await page.click("#heads [data-head=mean]");
    await page.until("the mean is off", async () => (await strokes()) === 2);
    await page.click("#heads [data-head=none]");
    await page.until("nothing is drawn", async () => (await strokes()) === 0);
    await page.click("#heads [data-head=all]");
    await page.until("all heads are drawn", async () => (await strokes()) === 4);
    await page.choose("view", "heatmap");
  });

  test("a hundred tokens do not choke it", async () => {
    const { page } = its;
    // The numbers model reads anything that is made of number words.
    const words = Array.from({ length: 100 }, (_, i) => ["one", "seven", "twenty", "hundred"][i % 4]).join(" ");
    await page.translate(words, "de");
    for (const kind of ["encoder", "decoder", "cross"]) {
      await page.choose("kind", kind);
      await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith(kind));
    }
    await page.choose("kind", "encoder");
    await page.until("it is drawn", async () => (await page.text("#chosen")).startsWith("encoder"));
    // Every small picture has something to see, and uses the strongest colour.
    const blank = await page.run(`return [...document.querySelectorAll("#grid canvas")].filter((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const isStrong = Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 3).join()).includes("11,49,87");
      return new Set(data).size < 5 || !isStrong;
    }).length`);
    assert.equal(blank, 0);
    const slowest = await page.run(`
      const begin = performance.now();
      document.querySelectorAll("#grid .map")[1].click();
      return new Promise((resolve) => setTimeout(() => resolve(performance.now() - begin), 0));`);
    console.log(`      redrawing a hundred tokens took ${Math.round(slowest)} ms`);
    await page.shoot("hundred-tokens", 1280);
    const tall = await page.run(`return document.getElementById("attention").offsetHeight`);
    assert.ok(tall < 2500, `the attention of a hundred tokens is ${tall} pixels tall`);
    await page.choose("view", "lines");
    await page.until("lines are drawn", async () => (await page.all("#picture .strokes path")).length > 50);
    await page.choose("view", "heatmap");
    await page.choose("kind", "cross");
    await page.translate(TEXT, "de");
  });
}
