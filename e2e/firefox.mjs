// Drives Firefox for the Go tests: a command a line in, JSON like ["goto", "http://..."], an answer a line out, {"value"} or {"error"}.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const puppeteer = createRequire(new URL('../js/package.json', import.meta.url))('puppeteer-core');
const [executablePath, userDataDir] = process.argv.slice(2);
// A page that is closed while it loads leaves promises behind that belong to no command.
process.on('unhandledRejection', (error) => console.error(error));
const browser = await puppeteer.launch({
  browser: 'firefox', executablePath, userDataDir, headless: true, timeout: 120_000,
  // Whoever reloads the answer to a submission is asked; the person here says yes.
  extraPrefsFirefox: { 'dom.confirm_repost.testing.always_accept': true },
});
let page;

const commands = {
  async open() {
    await page?.close();
    page = await browser.newPage();
    page.setDefaultTimeout(120_000);
  },
  goto: (url) => page.goto(url).then(() => null),
  reload: () => page.reload().then(() => null),
  click: (selector) => page.click(selector).then(() => null),
  type: (selector, text) => page.type(selector, text).then(() => null),
  eval: (expression) => page.evaluate(expression),
};

const answer = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = JSON.parse(line);
  try {
    answer({ value: (await commands[name](...args)) ?? null });
  } catch ({ message }) {
    answer({ error: message });
  }
}
await browser.close();
