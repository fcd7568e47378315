// A server, a browser, and the words that the tests are written in.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Browser, Builder, By, Key, logging } from "selenium-webdriver";
import chrome from "selenium-webdriver/chrome.js";

const require = createRequire(import.meta.url);
const JUST_MOVED = ["ElementClickInterceptedError", "ElementNotInteractableError", "JavascriptError", "StaleElementReferenceError"];
const SHOTS = new URL("../../../../target/screenshots/", import.meta.url).pathname;

/** The server of the built program, with the model that comes with it. */
export function startServer(...more) {
  return startServerIn({}, ...more);
}

/** The same with more in its environment. */
export async function startServerIn(environment, ...more) {
  const server = spawn(process.env.ATTENTIVE, ["serve", "--port", "0", "--log", "off", ...more], {
    env: { ...process.env, ...environment }, stdio: ["ignore", "pipe", "inherit"],
  });
  const [address] = await new Promise((resolve, reject) => {
    createInterface({ input: server.stdout }).once("line", (line) => resolve([line.replace("listening on ", "")]));
    server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  while (!(await fetch(`${address}/readyz`)).ok) await new Promise((resolve) => setTimeout(resolve, 20));
  const post = async (path, body) => {
    const response = await fetch(address + path, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
    });
    return response.json();
  };
  const stop = () => new Promise((resolve) => {
    server.once("exit", resolve);
    server.kill("SIGTERM");
  });
  return { address, post, stop };
}

/** Chromium without a screen, and where it saves what is saved. */
export async function startBrowser() {
  const downloads = mkdtempSync(join(tmpdir(), "attentive-page-"));
  const preferences = new logging.Preferences();
  preferences.setLevel(logging.Type.BROWSER, logging.Level.ALL);
  const options = new chrome.Options()
    .addArguments("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
    .setUserPreferences({ "download.default_directory": downloads, "download.prompt_for_download": false })
    .setLoggingPrefs(preferences);
  options.setChromeBinaryPath("/usr/bin/chromium");
  const driver = await new Builder()
    .forBrowser(Browser.CHROME)
    .setChromeOptions(options)
    .setChromeService(new chrome.ServiceBuilder("/usr/bin/chromedriver"))
    .build();
  await driver.sendDevToolsCommand("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
  return new Page(driver, downloads);
}

export class Page {
  constructor(driver, downloads) {
    this.driver = driver;
    this.downloads = downloads;
  }

  /** Makes the window so wide, and the system light or dark. */
  async be({ width = 1280, height = 900, theme = "light" }) {
    const metrics = { width, height, deviceScaleFactor: 1, mobile: width < 600 };
    await this.driver.sendDevToolsCommand("Emulation.setDeviceMetricsOverride", metrics);
    const features = [{ name: "prefers-color-scheme", value: theme }];
    await this.driver.sendDevToolsCommand("Emulation.setEmulatedMedia", { features });
  }

  async open(address) {
    await this.driver.get(address);
    await this.until("the first example is translated", () => this.run(`return document.querySelectorAll("#translation .piece").length > 0`));
    await this.atRest();
  }

  run(script, ...values) {
    return this.driver.executeScript(script, ...values);
  }

  find(selector) {
    return this.driver.findElement(By.css(selector));
  }

  all(selector) {
    return this.driver.findElements(By.css(selector));
  }

  /** Waits until nothing is on its way any more: what comes moves what is below it. */
  atRest() {
    return this.until("the page is at rest", () => this.run(`return document.querySelector(".busy, [aria-busy=true]") === null`));
  }

  async click(selector) {
    await this.atRest();
    await this.until(`${selector} can be clicked`, async () => {
      const element = await this.find(selector);
      await this.run(`arguments[0].scrollIntoView({ block: "center", behavior: "instant" })`, element);
      await element.click();
      return true;
    });
  }

  /** Presses keys in an element that is focused first; what is focused already is `:focus`. */
  keys(selector, ...keys) {
    return this.until(`${selector} can be reached`, async () => {
      await (await this.find(selector)).sendKeys(...keys);
      return true;
    });
  }

  /** Presses keys in an element that nothing replaces any more. */
  async press(selector, ...keys) {
    await this.atRest();
    await this.keys(selector, ...keys);
  }

  text(selector) {
    return this.run(`return document.querySelector(arguments[0]).textContent`, selector);
  }

  texts(selector) {
    return this.run(`return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)`, selector);
  }

  /** Moves a slider as a hand would, and tells the page. */
  slide(id, value) {
    return this.run(`const input = document.getElementById(arguments[0]); input.value = arguments[1];
      input.dispatchEvent(new Event("input", { bubbles: true }))`, id, value);
  }

  async until(what, so) {
    await this.driver.wait(async () => {
      try {
        return await so();
      } catch (error) {
        // An element may have been replaced or moved just now.
        if (JUST_MOVED.includes(error.name)) return false;
        throw error;
      }
    }, 20_000, what);
  }

  /** Writes into a field as a hand would, in place of what is there. */
  type(selector, text) {
    return this.keys(selector, Key.chord(Key.CONTROL, "a"), Key.BACK_SPACE, text);
  }

  /** Translates by typing, and waits for the pictures of it. */
  async translate(text, target) {
    if (target) await this.run(`document.getElementById("target").value = arguments[0]`, target);
    await this.type("#text", text);
    await this.until("the address has the text", async () => (await this.link()).get("text") === text);
    await this.atRest();
  }

  /** What the address says is shown. */
  async link() {
    return new URLSearchParams((await this.run(`return location.hash`)).replace("#try?", ""));
  }

  /** Chooses a radio button. */
  choose(name, value) {
    return this.run(`document.querySelector(\`input[name="\${arguments[0]}"][value="\${arguments[1]}"]\`).click()`, name, value);
  }

  /** A picture of the whole page. */
  async shoot(name, width) {
    // The bar on top stays where one has scrolled to; nothing else may stay behind in a picture of the whole page.
    await this.run(`scrollTo({ top: 0, behavior: "instant" });
      document.querySelectorAll(".read-out, .whole .panel").forEach((element) => (element.style.position = "static"))`);
    const height = await this.run(`return document.documentElement.scrollHeight`);
    const clip = { x: 0, y: 0, width, height, scale: 1 };
    const { data } = await this.driver.sendAndGetDevToolsCommand("Page.captureScreenshot", { captureBeyondViewport: true, clip });
    mkdirSync(SHOTS, { recursive: true });
    writeFileSync(join(SHOTS, `${name}.png`), Buffer.from(data, "base64"));
  }

  /** What axe-core finds wrong, one line each. */
  async axe() {
    await this.run(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await this.driver.executeAsyncScript(`axe.run(document).then(arguments[0])`);
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`));
  }

  /** What the page complained about since the last call. */
  async complaints() {
    const entries = await this.driver.manage().logs().get(logging.Type.BROWSER);
    return entries.filter(({ level }) => level.value >= logging.Level.WARNING.value).map(({ message }) => message);
  }
}
