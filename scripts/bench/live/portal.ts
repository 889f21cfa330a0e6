// `bun run bench portal` measures a partner's list of deliveries in a real browser, first while deliveries arrive,
// then while scrolling through all of them: memory per minute, CPU share, and the longest tasks.
//
//   --minutes N   (10)    --rate N   deliveries a second (200)
import { parseArgs } from "node:util";

import type { CDPSession, Page } from "playwright-core";

import { BASE_PATH } from "../../../src/http/access.ts";
import { openBrowser } from "../../proof/chromium.ts";
import { watchForStop } from "../../install/stop-signal.ts";
import { quantile, round, slopeOf } from "../figures.ts";
import { writeResult } from "../rig.ts";
import { atRate } from "./offer.ts";
import { readOptions } from "./options.ts";
import { prepare } from "./requests.ts";
import { withRig, type LiveRig } from "./rig.ts";
import type { Tenant } from "./tenants.ts";

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    minutes: { type: "string", default: "10" },
    rate: { type: "string", default: "200" },
  },
});
const MINUTES = Number(values.minutes);
const RATE = Number(values.rate);
const MINUTE_S = 60;
const WINDOW = { width: 1280, height: 900 };
/** The distance of a fast turn of the wheel. */
const NOTCH_PX = 900;
/** The browser's threshold for a long task. */
const LONG_MS = 50;
/** A list that does not move for this time has reached its end. */
const STILL_MS = 5_000;

interface Minute {
  readonly minute: number;
  readonly delivered: number;
  /** The heap after a garbage collection. */
  readonly heapMb: number;
  readonly nodes: number;
  /** The CPU share of the page's process. */
  readonly corePercent: number;
}

interface Scrolled {
  readonly rows: number;
  readonly notches: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The duration of each task above 50 ms. */
  readonly longTasks: readonly number[];
}

async function portal(rig: LiveRig): Promise<number> {
  const [tenant] = rig.tenants;
  if (tenant === undefined) return 1;
  const browser = await openBrowser();
  try {
    const page = await browser.newPage({ viewport: WINDOW });
    await page.goto(await portalLink(rig, tenant));
    await page.getByRole("tab", { name: "Deliveries" }).click();
    const look: Look = {
      page,
      session: await page.context().newCDPSession(page),
      browser: await browser.newBrowserCDPSession(),
    };
    const minutes = await watch(rig, tenant, look);
    const slope = slopeOf(minutes.slice(1).map(({ heapMb }) => heapMb));
    rig.say(`Memory: ${slope.perStep} MB a minute (${slope.percentPerStep} %) after the first`);
    const scrolled = rig.stop.aborted ? undefined : await scroll(rig, page);
    console.table(minutes);
    if (scrolled !== undefined)
      console.table([{ ...scrolled, longTasks: scrolled.longTasks.join(" ") }]);
    console.log(`Written to ${writeResult("portal", { minutes, slope, scrolled })}`);
    return 0;
  } finally {
    await browser.close();
  }
}

interface Look {
  readonly page: Page;
  readonly session: CDPSession;
  readonly browser: CDPSession;
}

async function portalLink({ root }: LiveRig, { subscriptionId, token }: Tenant): Promise<string> {
  const answer = await fetch(`${root}${BASE_PATH}/partner/portal-links`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ pages: [`webhooks/${subscriptionId}`] }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`A portal link was answered ${answer.status} ${text}`);
  return String(Object(JSON.parse(text)).url);
}

/** Watches the list while new deliveries appear at its top. */
async function watch(rig: LiveRig, tenant: Tenant, look: Look): Promise<Minute[]> {
  rig.say(`Watching ${RATE} deliveries/s for ${MINUTES} minutes …`);
  await rig.sink.reset({ keys: true });
  const minutes: Minute[] = [];
  for (let minute = 1; minute <= MINUTES && !rig.stop.aborted; minute++) {
    const requests = prepare(rig.sign, [tenant], {
      name: `portal${minute}`,
      count: RATE * MINUTE_S,
      perRequest: 1,
    });
    const before = await rendererMs(look);
    const startedAt = performance.now();
    await atRate(rig.root, requests, RATE, rig.stop);
    const share = ((await rendererMs(look)) - before) / (performance.now() - startedAt);
    await look.session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await look.session.send("Runtime.getHeapUsage");
    const { nodes } = await look.session.send("Memory.getDOMCounters");
    const { arrivals } = await rig.sink.report(true);
    const row: Minute = {
      minute,
      delivered: arrivals.length,
      heapMb: round(usedSize / 1e6, 2),
      nodes,
      corePercent: round(share * 100, 1),
    };
    minutes.push(row);
    rig.say(
      `  minute ${minute}: ${row.delivered} delivered, ${row.heapMb} MB, ${row.nodes} nodes, ${row.corePercent} % of a core`,
    );
  }
  return minutes;
}

async function rendererMs({ browser }: Look): Promise<number> {
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  const ofPages = processInfo.filter(({ type }) => type === "renderer");
  return ofPages.reduce((sum, { cpuTime }) => sum + cpuTime * 1_000, 0);
}

const OBSERVE = `
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longTasks.push(Math.round(duration));
  }).observe({ type: "longtask" });`;
const NEXT_FRAME = `new Promise((resolve) => requestAnimationFrame(() => resolve(scrollY)))`;

/** Scrolls from the newest to the oldest with the wheel. */
async function scroll(rig: LiveRig, page: Page): Promise<Scrolled> {
  rig.say("Scrolling through all of them …");
  // A scrolled list adds no new rows, so this waits for the last ones.
  await Bun.sleep(STILL_MS);
  await page.mouse.move(WINDOW.width / 2, WINDOW.height / 2);
  await page.evaluate(OBSERVE);
  const frames: number[] = [];
  let movedAt = performance.now();
  for (let last = -1; performance.now() - movedAt < STILL_MS && !rig.stop.aborted;) {
    const startedAt = performance.now();
    await page.mouse.wheel(0, NOTCH_PX);
    const place = await page.evaluate<number>(NEXT_FRAME);
    if (place !== last) {
      movedAt = performance.now();
      frames.push(movedAt - startedAt);
      if (frames.length % 500 === 0) {
        const long = await page.evaluate<number>("longTasks.length");
        rig.say(`  ${frames.length} notches, ${place} pixels, ${long} tasks over ${LONG_MS} ms`);
      }
    }
    last = place;
  }
  const longTasks = await page.evaluate<number[]>("longTasks");
  const rows = Number(await page.locator("table").first().getAttribute("aria-rowcount")) - 1;
  const scrolled: Scrolled = {
    rows,
    notches: frames.length,
    p50Ms: quantile(frames, 0.5),
    p99Ms: quantile(frames, 0.99),
    longTasks: longTasks.filter((ms) => ms > LONG_MS),
  };
  rig.say(`  ${rows} rows, ${scrolled.longTasks.length} tasks over ${LONG_MS} ms`);
  return scrolled;
}

/** The shell's exit status for a process that Ctrl-C ended. */
const EXIT_STOPPED = 130;
const stop = watchForStop(() => process.exit(EXIT_STOPPED));
const options = readOptions(["--rows", "0", "--rate", String(RATE)]);
if (options !== undefined) process.exit(await withRig(options, stop, portal));
