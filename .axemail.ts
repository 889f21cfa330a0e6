import { readFileSync, readdirSync } from "node:fs";
import { chromium as driver } from "playwright-core";
const AXE = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const browser = await driver.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: ["--no-sandbox", "--disable-gpu"] });
const [dir = ""] = process.argv.slice(2);
const page = await browser.newPage();
for (const name of readdirSync(dir)) {
  const raw = readFileSync(`${dir}/${name}`, "utf8");
  const subject = /^Subject: (.*)$/m.exec(raw)?.[1];
  const part = /Content-Type: text\/html[^\n]*\r?\n((?:[A-Z][^\n]*\r?\n)*)\r?\n([\s\S]*?)\r?\n--/i.exec(raw);
  if (!part) { console.log(name, "no html"); continue; }
  const body = part[2]!;
  const bytes = /base64/i.test(part[1]! + part[0]!.slice(0, 200)) ? Buffer.from(body, "base64").toString() : Buffer.from(body.replaceAll(/=\r?\n/g, "").replaceAll(/=([0-9A-F]{2})/g, (_, h) => String.fromCharCode(parseInt(h, 16))), "latin1").toString();
  for (const colorScheme of ["light", "dark"] as const) for (const width of [390, 800]) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await page.setContent(bytes); await page.evaluate(AXE);
    const v: any[] = await page.evaluate(`axe.run({resultTypes:["violations"]}).then(r => r.violations.map(v => v.id + " " + v.nodes[0].html.slice(0,120)))`);
    const wide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    if (v.length || wide > 0) console.log(subject, colorScheme, width, v, wide);
  }
  console.log("checked", subject);
}
await browser.close();
