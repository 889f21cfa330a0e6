// bun .slow.ts N name=demo.json ...
import { readFileSync } from "node:fs";
import { chromium as driver } from "playwright-core";
const [n, ...sites] = process.argv.slice(2);
const browser = await driver.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const out: Record<string, number[][]> = {};
for (let i = 0; i < Number(n); i++)
  for (const site of sites) {
    const [name = "", file = ""] = site.split("=");
    const demo = JSON.parse(readFileSync(file, "utf8"));
    const user = demo.users.find((u: any) => u.role === "partner_owner");
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const page = await context.newPage();
    const cdp = await context.newCDPSession(page);
    await cdp.send("Network.enable");
    await cdp.send("Network.setCacheDisabled", { cacheDisabled: false });
    await cdp.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 94_000 });
    await cdp.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    const t0 = performance.now();
    await page.goto(`${demo.server_root}/dashboard/`, { waitUntil: "commit" });
    await page.getByLabel("Email").waitFor();
    const fcp = await page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0");
    await page.getByLabel("Email").fill(user.email);
    const usable = performance.now() - t0;
    await page.getByRole("button", { name: /^(Continue|Next)/ }).click();
    await page.getByLabel("Password", { exact: true }).fill(user.password);
    await page.waitForTimeout(3000);
    const t1 = performance.now();
    await page.keyboard.press("Enter");
    await page.getByText(/Subscriptions|subscription/i).first().waitFor();
    await page.locator("main a[href*='/webhooks/']").first().waitFor();
    const after = performance.now() - t1;
    await page.waitForTimeout(1500);
    await cdp.send("Network.clearBrowserCache");
    const t2 = performance.now();
    await page.reload({ waitUntil: "commit" });
    await page.locator("main a[href*='/webhooks/']").first().waitFor();
    (out[name] ??= []).push([fcp, usable, after, performance.now() - t2]);
    await context.close();
  }
const med = (v: number[]) => v.toSorted((a, b) => a - b)[Math.floor(v.length / 2)]!;
for (const [name, rows] of Object.entries(out)) console.log(name, ["visible", "usable", "after password", "reload"].map((l, k) => `${l} ${(med(rows.map((r) => r[k]!)) / 1000).toFixed(2)}`).join("  "));
await browser.close();
