// Positions, the learning rate, and every picture as a file.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Key } from "selenium-webdriver";

export function figures(its) {
  test("positional encodings are those of the formula", async () => {
    const { page } = its;
    await page.slide("positions-d", "64");
    const read = async () => {
      const [position, dimension, value] = (await page.text("#positions-read-out")).replace("−", "-").match(/-?[\d.]+/g).map(Number);
      return { position, dimension, value };
    };
    for (const key of [Key.ARROW_DOWN, Key.ARROW_RIGHT, Key.ARROW_RIGHT]) {
      await page.press("#positions-picture svg", key);
      const { position, dimension, value } = await read();
      const angle = position / 10000 ** ((2 * (dimension >> 1)) / 64);
      const expected = dimension % 2 ? Math.cos(angle) : Math.sin(angle);
      assert.ok(Math.abs(value - expected) < 1e-4, `${position} ${dimension} ${value} ${expected}`);
    }
    await page.choose("order", "halves");
    const { position, dimension, value } = await read();
    const angle = position / 10000 ** ((2 * (dimension % 32)) / 64);
    assert.ok(Math.abs(value - (dimension >= 32 ? Math.cos(angle) : Math.sin(angle))) < 1e-4);
  });

  test("the learning rate has its peak where the warm-up ends", async () => {
    const { page } = its;
    await page.slide("schedule-warmup", "8000");
    await page.slide("schedule-d", "2");
    const peak = 256 ** -0.5 * 8000 ** -0.5;
    const label = await page.run(`return document.querySelector("#schedule-picture svg").getAttribute("aria-label")`);
    assert.ok(label.includes("at step 8,000"), label);
    const [digits] = label.match(/peak is ([\d.]+) · 10⁻⁴/).slice(1).map(Number);
    assert.ok(Math.abs(digits * 1e-4 - peak) < 1e-6, `${digits} ${peak}`);
    await page.press("#schedule-picture svg", Key.ARROW_RIGHT);
    assert.match(await page.text("#schedule-read-out"), /^step 10,200: /);
  });

  test("every picture is saved as SVG and as PNG", async () => {
    const { page } = its;
    await page.translate("twenty-one", "de");
    await page.choose("scene", "colours");
    const places = ["#picture-save", "#colours", "#positions-body", "#schedule-body"];
    for (const view of ["heatmap", "lines"]) {
      await page.choose("view", view);
      await page.atRest();
      await saves(page, places.splice(0, view === "heatmap" ? 1 : 4));
      places.unshift("#picture-save");
    }
    await page.choose("view", "heatmap");
    await page.choose("scene", "head");
    await page.atRest();
    await saves(page, ["#head"]);
  });
}

/** What a whole file ends with: the browser gives it its name before all of it is written. */
const ENDS = { svg: "</svg>", png: "IEND\xae\x42\x60\x82" };

/** Clicks what saves, and looks at the files. */
async function saves(page, places) {
  for (const place of places) {
    for (const ending of ["svg", "png"]) {
      readdirSync(page.downloads).forEach((name) => rmSync(join(page.downloads, name), { force: true }));
      await page.click(`${place} [aria-label="Save this picture as ${ending.toUpperCase()}"]`);
      let name, bytes;
      await page.until(`${place} is saved, whole`, () => {
        name = readdirSync(page.downloads).find((name) => name.endsWith(`.${ending}`));
        bytes = name && readFileSync(join(page.downloads, name));
        return bytes?.toString("latin1").endsWith(ENDS[ending]);
      });
      if (ending === "png") {
        assert.deepEqual([...bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
        assert.ok(bytes.readUInt32BE(16) > 300, `${name} is ${bytes.readUInt32BE(16)} wide`);
      } else {
        const text = bytes.toString("utf8");
        assert.ok(text.startsWith("<svg") && text.includes("<path") && !text.includes("NaN"), name);
        const broken = await page.run(`return new DOMParser().parseFromString(arguments[0], "image/svg+xml")
          .querySelector("parsererror")?.textContent`, text);
        assert.equal(broken, null, name);
      }
    }
  }
}
