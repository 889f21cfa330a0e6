// bun .axe.ts demo.json : axe-core on every page and every dialog and menu that a button of the page opens, in two schemes and widths; 200 % zoom; overflow from 320 to 1920.
import { readFileSync } from "node:fs";
import { chromium as driver, type Page } from "playwright-core";
const AXE = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const demo = JSON.parse(readFileSync(process.argv[2]!, "utf8"));
const only = process.argv[3];
const root = demo.server_root;
const browser = await driver.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const found = new Map<string, string>(); const seen = new Set<string>(); let states = 0; const faults: string[] = [];
async function check(page: Page, state: string, looks: [number, "light" | "dark"][]) {
  for (const [width, scheme] of looks) {
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.waitForTimeout(120);
    if (!(await page.evaluate(`"axe" in window`))) await page.evaluate(AXE);
    const v: any[] = await page.evaluate(`axe.run({resultTypes:["violations"],iframes:false}).then(r => r.violations)`);
    states++;
    for (const one of v) for (const n of one.nodes) { const k = `${one.id} ${n.html.slice(0, 110)}`; if (!found.has(k)) found.set(k, `${state} ${width} ${scheme} [${one.impact}]`); }
    const wide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    if (wide > 0) found.set(`wide ${state} ${width}`, `${wide}`);
  }
}
const BOTH: [number, "light" | "dark"][] = [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]];
const login = async (role: string) => {
  const u = demo.users.find((x: any) => x.role === role);
  const r = await fetch(`${demo.base_url}/login`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ email: u.email, password: u.password, rememberMe: true }) });
  const session = await r.text();
  const context = await browser.newContext({ reducedMotion: "reduce" });
  await context.addInitScript((s: string) => sessionStorage.setItem("reviewrelay.session", s), session);
  const token = JSON.parse(session).token;
  const get = async (p: string) => (await (await fetch(`${demo.base_url}${p}`, { headers: { Authorization: `Bearer ${token}` } })).json()) as any;
  return { context, get };
};
async function settle(page: Page) { await page.waitForLoadState("networkidle", { timeout: 4000 }).catch(() => {}); await page.waitForTimeout(400); }
async function walk(role: string, paths: string[], context: any) {
  for (const path of paths) {
    if (only && !`${role}${path}`.includes(only)) continue;
    const page: Page = await context.newPage();
    page.setDefaultTimeout(5000);
    page.on("pageerror", (e) => faults.push(`${path}: ${e.message}`));
    page.on("console", (m) => m.type() === "error" && faults.push(`${path}: ${m.text().slice(0, 140)}`));
    await page.setViewportSize({ width: 1280, height: 844 });
    await page.goto(`${root}/dashboard${path}`); await settle(page);
    await check(page, `${role} ${path}`, BOTH);
    // 200 % zoom of 1280 x 800, and all widths
    for (const width of [320, 360, 480, 640, 768, 992, 1200, 1920]) { await page.setViewportSize({ width, height: 400 }); await page.waitForTimeout(60); const wide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth"); if (wide > 0) found.set(`wide ${path} ${width}`, `${wide}`); }
    await page.setViewportSize({ width: 1280, height: 844 });
    const buttons = page.locator("main button:visible:enabled, header button:visible:enabled");
    const names = await buttons.evaluateAll((all: any[]) => all.map((b) => b.getAttribute("aria-label") ?? b.textContent));
    let dirty = false;
    for (let i = 0; i < Math.min(names.length, 60); i++) {
      const name = `${names[i]}`.replace(/[0-9A-HJKMNP-TV-Z]{26}|\d+/g, "#").slice(0, 40);
      const kind = `${role}${path.replace(/[0-9A-HJKMNP-TV-Z]{26}|\d+/g, "#")} ${name.replace(/ (of|for|the token) .*/, "")}`;
      if (seen.has(kind) || /sign out|act as owner|^copy/i.test(name)) continue;
      seen.add(kind);
      try {
        if (dirty) { await page.goto(`${root}/dashboard${path}`); await settle(page); dirty = false; }
        await buttons.nth(i).click({ timeout: 1500 });
        dirty = true;
        await page.waitForTimeout(350);
        const open = await page.locator("[role=dialog]:visible, [role=menu]:visible, [role=listbox]:visible, [role=alertdialog]:visible").count();
        if (open > 0) await check(page, `${role} ${path} > ${name}`, [[1280, "light"], [390, "dark"], [1280, "dark"]]);
        await page.setViewportSize({ width: 1280, height: 844 });
        if (open > 0) { await page.keyboard.press("Escape"); await page.waitForTimeout(150); }
      } catch { dirty = true; }
    }
    await page.close();
  }
}
const partner = await login("partner_owner");
const subs = (await partner.get("/partner/webhooks")).data;
const [s] = subs; const msg = (await partner.get(`/partner/webhooks/${s.id}/messages?limit=1`)).data?.[0];
await walk("partner", ["/webhooks", ...subs.map((x: any) => `/webhooks/${x.id}`), `/webhooks/${s.id}?tab=deliveries`, `/webhooks/${s.id}?tab=settings`, ...(msg ? [`/webhooks/${s.id}/deliveries/${msg.event_id}`] : []), "/webhooks/new", "/webhooks/alerts", "/events", "/events/response_posted", "/accounts", "/team", "/access", "/embedding", "/audit", "/keys", "/security"], partner.context);
const account = await login("account_owner");
const review = (await account.get("/account/reviews?limit=1")).data?.[0];
await walk("account", ["/reviews", ...(review ? [`/reviews/${review.id}`] : []), "/sites", "/access", "/keys", "/security"], account.context);
const operator = await login("super_admin");
const pid = (await operator.get("/admin/partners")).data[0].id;
await walk("operator", ["/dispatcher", "/companies", `/companies/${pid}`, "/users", "/connections", "/audit", "/keys", "/security"], operator.context);
const anonymous = await browser.newContext({ reducedMotion: "reduce" });
if (!only) {
  const page = await anonymous.newPage(); page.setDefaultTimeout(5000);
  await page.goto(`${root}/dashboard/`); await settle(page); await check(page, "sign-in", BOTH);
  await page.getByLabel("Email").fill("a@b.example"); await page.getByRole("button", { name: "Continue" }).click(); await page.waitForTimeout(500); await check(page, "sign-in password", BOTH);
  for (const path of ["/docs/", "/docs/getting-started", "/docs/reference/", "/openapi"]) { const r = await page.goto(`${root}${path}`).catch(() => null); if (r?.ok()) { await settle(page); await check(page, path, BOTH); } else console.log("not there", path); }
  await page.goto(`${root}/docs/`); const links = await page.locator("a[href^='/docs/']").evaluateAll((a: any[]) => [...new Set(a.map((x) => x.getAttribute("href").split("#")[0]))]);
  console.log("docs pages", links.length);
  for (const l of links) { await page.goto(`${root}${l}`); await check(page, l, BOTH); }
}
console.log("states", states, "violations", found.size); for (const [k, v] of found) console.log(v, "|", k);
console.log("faults", faults.length); for (const f of new Set(faults)) console.log(f);
await browser.close();
