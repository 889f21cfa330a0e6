import type { Locator, Page } from "playwright-core";

import { allErrors, LOOKS } from "./dashboard.ts";
import { until } from "../network/receiver.ts";

/** What somebody wants to get done, and what the pages ask of them for it. */
export interface Task {
  readonly name: string;
  /** So many clicks the walk has, which goes as somebody who is new here would. */
  readonly clicks: number;
  /** So few are enough where fields are reached by Tab, forms sent by Enter and things found by Ctrl-K. */
  readonly least: number;
  /** Why there are more than four. */
  readonly reason?: string;
}

const HEIGHT = 900;
/** The keystroke-level model: to think and to point, to click, to type one key. */
const CLICK_S = 1.35 + 1.1 + 0.2;
const KEY_S = 0.28;

const FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
const SETTLED = `(async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  await frame();
  await Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
  await frame();
})()`;

/** Goes through pages as a person does, counts what that takes, and looks around at the states that matter. */
export class Walk {
  readonly page: Page;
  readonly #shots = process.env["SCREENSHOTS"];
  readonly #task: Task;
  readonly #startedAt = performance.now();
  #clicks = 0;
  #keys = 0;
  #lookedMs = 0;
  #seconds: number | undefined;
  /** What axe and the window's width have to say, by state and look. */
  readonly faults: string[] = [];

  constructor(page: Page, task: Task) {
    this.page = page;
    this.#task = task;
  }

  async click(target: Locator): Promise<void> {
    this.#clicks += 1;
    await target.click();
  }

  /** Types where the focus is. */
  async type(text: string): Promise<void> {
    this.#keys += text.length;
    await this.page.keyboard.insertText(text);
  }

  async press(key: string): Promise<void> {
    this.#keys += 1;
    await this.page.keyboard.press(key);
  }

  /** In light and dark, wide and narrow; the time that it takes is not that of the task. */
  async look(state: string): Promise<void> {
    const began = performance.now();
    for (const { width, colorScheme } of LOOKS) {
      await this.page.setViewportSize({ width, height: HEIGHT });
      await this.page.emulateMedia({ colorScheme });
      await this.page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor();
      const name = `${this.#task.name}, ${state}, ${width} ${colorScheme}`;
      if (!(await this.#fits())) this.faults.push(`${name}: runs wide`);
      for (const fault of await allErrors(this.page)) this.faults.push(`${name}: ${fault}`);
      if (this.#shots !== undefined) await this.#shoot(this.#shots, name);
    }
    await this.page.setViewportSize({ width: LOOKS[0]?.width ?? 0, height: HEIGHT });
    await this.page.emulateMedia({ colorScheme: "light" });
    this.#lookedMs += performance.now() - began;
  }

  /** The task is done: what comes now is proof. */
  done(): void {
    this.#seconds = (performance.now() - this.#startedAt - this.#lookedMs) / 1_000;
  }

  get clicks(): number {
    return this.#clicks;
  }

  /** The line of the table: what was counted, and what the pages and a person need for it. */
  line(): string {
    const person = this.#clicks * CLICK_S + this.#keys * KEY_S;
    const { name, least, reason = "" } = this.#task;
    return `| ${[name, this.#clicks, this.#keys, least, this.#seconds?.toFixed(1), person.toFixed(0), reason].join(" | ")} |`;
  }

  /** Colours and layout move for a moment after a change. */
  async #fits(): Promise<boolean> {
    await this.page.evaluate(SETTLED);
    try {
      await until("the page fits", async () => Boolean(await this.page.evaluate(FITS)), 3_000);
      return true;
    } catch {
      return false;
    }
  }

  async #shoot(folder: string, name: string): Promise<void> {
    const path = `${folder}/${name.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase()}.png`;
    await this.page.screenshot({ path });
  }
}

export const HEAD =
  "| Task | Clicks | Keys | Least clicks | Seconds of the pages | Seconds of a person, reckoned | Why more than four |\n|---|---|---|---|---|---|---|";
