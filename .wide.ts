import { readFileSync } from "node:fs";
import { chromium as driver } from "playwright-core";
const demo = JSON.parse(readFileSync(process.argv[2]!, "utf8"));
const browser = await driver.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: ["--no-sandbox", "--disable-gpu"] });
for (const [role, paths] of [["partner_owner", ["/access", "/security", "/team", "/accounts", "/audit", "/keys"]], ["super_admin", ["/dispatcher", "/companies", "/users", "/connections"]]] as const) {
  const u = demo.users.find((x: any) => x.role === role);
  const session = await (await fetch(`${demo.base_url}/login`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ email: u.email, password: u.password, rememberMe: true }) })).text();
  const context = await browser.newContext({ reducedMotion: "reduce" });
  await context.addInitScript((s: string) => sessionStorage.setItem("reviewrelay.session", s), session);
  const page = await context.newPage();
  for (const path of paths) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${demo.server_root}/dashboard${path}`); await page.waitForTimeout(1200);
    const out: string[] = [];
    for (const width of [320, 640, 768, 990, 991, 992, 993, 1000, 1020, 1040, 1060, 1100, 1150, 1200]) {
      await page.setViewportSize({ width, height: 800 }); await page.waitForTimeout(400);
      const wide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      if (wide > 0) out.push(`${width}:${wide} ${await page.evaluate(`[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0,2).map(e => e.tagName + "." + e.className.toString().slice(0,40) + " " + e.textContent.slice(0,30)).join(" | ")`)}`);
    }
    console.log(path, out.join("\n    ") || "fits");
  }
  await context.close();
}
await browser.close();
