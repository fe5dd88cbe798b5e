// Support for the browser tests: a daemon with a home of its own, real calls, a page that is
// watched. Nothing here sleeps for a guess: it waits for a condition, or fails.

import { spawn, execFile } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import puppeteer from "puppeteer-core";

const BINARY = process.env.STANDPIPE_BIN;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
// The package with Redis's tools has the server under this name.
const REDIS = process.env.REDIS_SERVER ?? "redis-check-rdb";
const SCREENSHOTS = process.env.SCREENSHOTS
  ?? new URL("../../target/screenshots", import.meta.url).pathname;
// With UI_FILES the page comes from that folder instead of the daemon: no build between two looks.
const UI_FILES = process.env.UI_FILES;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Far above what anything here takes; reached only when it never comes. */
const PATIENCE = 20_000;

/** Asks until it is so. */
export async function until(what, isSo) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await isSo();
    if (found) return found;
    if (Date.now() > end) throw new Error(`it never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A place of its own for ledgers and configuration, with everything that runs in it. */
export class Home {
  constructor(config = "") {
    this.path = mkdtempSync(join(tmpdir(), "standpipe-browser-"));
    this.config = join(this.path, "standpipe.toml");
    writeFileSync(this.config, `open_pools = true\n${config}`);
    // The state directory is a user's, so that the pictures of the documentation have no path of a
    // test.
    this.env = { ...process.env, HOME: this.path, STANDPIPE_CONFIG: this.config };
    for (const name of ["AGENT", "HOME"]) delete this.env[`STANDPIPE_${name}`];
    delete this.env.XDG_STATE_HOME;
    this.children = [];
    this.over = new AbortController();
  }

  write(name, text) {
    const path = join(this.path, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  /** Runs the command to its end: what it printed. */
  run(...args) {
    return new Promise((resolve, reject) => execFile(BINARY, args, { env: this.env },
      (error, stdout, stderr) => (error
        ? reject(new Error(`standpipe ${args.join(" ")}: ${stderr || error}`))
        : resolve(stdout.trim()))));
  }

  async status(pool) {
    const { pools } = JSON.parse(await this.run("status", "--json"));
    return pools.find((of) => of.pool === pool);
  }

  /** Starts a command and leaves it running. */
  start(...args) {
    const child = spawn(BINARY, args, { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    child.said = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => { child.said = (child.said + data).slice(-20_000); });
    }
    child.ended = new Promise((resolve) => child.once("exit", resolve));
    this.children.push(child);
    return child;
  }

  /** A call that lasts until it is ended. */
  hold(pool, ...args) {
    return this.start("--quiet", "hold", pool, ...args, "--", "sleep", "600");
  }

  /** A call over HTTP: its lease, once it is admitted. It waits for as long as the test runs. */
  async reserve(body) {
    const answer = await fetch(`${this.url}/v1/leases`, { method: "POST",
      headers: { "content-type": "application/json" }, signal: this.over.signal,
      body: JSON.stringify({ timeout_ms: 3_600_000, ttl_ms: 3_600_000, ...body }) });
    if (answer.status !== 201) throw new Error(`${answer.status}: ${await answer.text()}`);
    return (await answer.json()).lease;
  }

  /** The same, without waiting until it is admitted. */
  queue(body) {
    this.reserve(body).catch(() => {}); // It is ended with the home.
  }

  /** The daemon, ready; on its old port if it had one, else on one that the system chooses. */
  async up(ready = "/readyz") {
    this.daemon = this.start("up", "--listen", `127.0.0.1:${this.port ?? 0}`);
    let isOver = false;
    this.daemon.ended.then(() => { isOver = true; });
    await until("the daemon is ready", async () => {
      if (isOver) throw new Error(`the daemon ended: ${this.daemon.said}`);
      [, this.url, this.port] = /(http:\/\/127\.0\.0\.1:(\d+))\//.exec(this.daemon.said) ?? [];
      const answer = this.url && await fetch(`${this.url}${ready}`).catch(() => null);
      return answer?.ok;
    });
  }

  /** As the kernel would: no goodbye. */
  async killDaemon() {
    this.daemon.kill("SIGKILL");
    await this.daemon.ended;
  }

  async end() {
    this.over.abort();
    for (const child of this.children) child.kill("SIGKILL");
    await Promise.all(this.children.map((child) => child.ended));
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** A provider that answers every message with the same usage. */
export async function provider() {
  const answer = JSON.stringify({ id: "msg_1", type: "message", role: "assistant",
    content: [{ type: "text", text: "done" }], model: "claude-sonnet-4-5", stop_reason: "end_turn",
    usage: { input_tokens: 2_400, output_tokens: 380 } });
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" })
      .end(answer));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** A Redis server of its own, on a port that the system chooses. */
export async function redis(home) {
  const socket = createSocket();
  await new Promise((resolve) => socket.listen(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  const args = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", home.path];
  const child = spawn(REDIS, args.map(String), { argv0: "redis-server",
    stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (data) => { output += data; });
  child.ended = new Promise((resolve) => child.once("exit", resolve));
  home.children.push(child);
  await until("Redis is ready", () => output.includes("Ready to accept connections"));
  return { url: `redis://127.0.0.1:${port}`, child };
}

export function launch() {
  return puppeteer.launch({
    executablePath: CHROMIUM,
    // The tests run as root in containers, where the sandbox cannot.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
  });
}

/** A page that keeps everything that went wrong in it. */
export async function open(browser, url, { wide = 1280, high = 900, scheme = "light",
  isPhone = false } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.wrong = [];
  page.expectsErrors = false;
  const note = (what) => page.expectsErrors || page.wrong.push(what);
  page.on("console", (said) => ["error", "warning"].includes(said.type())
    && note(`console: ${said.text()}`));
  page.on("pageerror", (error) => page.wrong.push(`exception: ${error.message}`));
  page.on("requestfailed", (request) => note(`failed: ${request.url()} ${
    request.failure()?.errorText}`));
  page.on("response", (answer) => answer.status() >= 400
    && note(`${answer.status()}: ${answer.url()}`));
  page.on("dialog", (dialog) => {
    page.wrong.push(`a dialog of the browser: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.evaluateOnNewDocument(() => addEventListener("securitypolicyviolation",
    (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await page.setViewport({ width: wide, height: high, isMobile: isPhone, hasTouch: isPhone,
    deviceScaleFactor: isPhone ? 2 : 1 });
  if (UI_FILES) await serveFiles(page);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url);
  return page;
}

/** Serves the page from the folder, with the daemon's own headers. */
async function serveFiles(page) {
  await page.setRequestInterception(true);
  page.on("request", async (request) => {
    const { pathname } = new URL(request.url());
    const name = pathname === "/" ? "index.html" : /^\/ui\/(.+)$/.exec(pathname)?.[1];
    if (!name) return request.continue();
    const { headers } = await fetch(new URL("/", request.url()));
    const kinds = { html: "text/html", js: "text/javascript", css: "text/css",
      svg: "image/svg+xml" };
    return request.respond({ body: readFileSync(join(UI_FILES, name)),
      contentType: `${kinds[name.split(".").at(-1)]}; charset=utf-8`,
      headers: { "content-security-policy": headers.get("content-security-policy") } });
  });
}

/** What axe finds that is serious. */
export async function findings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** The text of the first element, as it is shown. */
export const text = (page, selector) => page.$eval(selector, (element) => element.innerText);

/** Waits until the element's text holds those words. */
export function says(page, selector, words) {
  const wait = page.waitForFunction((css, wanted) =>
    [...document.querySelectorAll(css)].some((element) => element.checkVisibility()
      && element.innerText.replace(/\s+/g, " ").includes(wanted)), {}, selector, words);
  return wait.catch(async () => {
    const all = await page.$$eval(selector, (found) => found.map((one) => one.innerText));
    throw new Error(`${selector} never showed “${words}”, but: ${all.join(" | ")}`);
  });
}

/** Waits until the page shows so many snapshots more. */
export async function snapshots(page, many) {
  await page.evaluate(async (wanted) => {
    const { shown } = await import("/ui/app.js");
    for (let seen = 0, last = shown(); seen < wanted;) {
      await new Promise((done) => requestAnimationFrame(done));
      if (shown() !== last) [last, seen] = [shown(), seen + 1];
    }
  }, many);
}

const IMAGES = new URL("../../docs/images/", import.meta.url).pathname;

/** A picture of the documentation: the upper part of the page. `STANDPIPE_BLESS` writes it. */
export async function picture(page, name) {
  const path = join(process.env.STANDPIPE_BLESS ? IMAGES : SCREENSHOTS, `${name}.png`);
  mkdirSync(dirname(path), { recursive: true });
  await page.screenshot({ path });
  if (!existsSync(join(IMAGES, `${name}.png`))) throw new Error(`docs/images has no ${name}.png`);
}

export async function screenshot(page, name) {
  const path = join(SCREENSHOTS, `${name}.png`);
  mkdirSync(dirname(path), { recursive: true });
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path, fullPage: true });
}
