import type { Locator, Page } from "playwright-core";

import { allErrors, fits, LOOKS } from "./dashboard.ts";

/** A task of a user, and the number of clicks that the dashboard may need for it. */
export interface Task {
  readonly name: string;
  /** The clicks of the walk, which goes the way of a user who does not know the dashboard. */
  readonly clicks: number;
  /** The fewest clicks possible, if the user moves by Tab, submits by Enter and searches by Ctrl-K. */
  readonly least: number;
  /** The reason why more than four clicks are acceptable. */
  readonly reason?: string;
}

const HEIGHT = 900;
/** Times of the keystroke-level model: thinking, pointing and clicking for a click; typing for a key. */
const CLICK_S = 1.35 + 1.1 + 0.2;
const KEY_S = 0.28;

/**
 * Performs a task in a page, counts its clicks and keys, and checks accessibility and layout in the states that
 * matter.
 */
export class Walk {
  readonly page: Page;
  readonly #shots = process.env["SCREENSHOTS"];
  readonly #task: Task;
  readonly #startedAt = performance.now();
  #clicks = 0;
  #keys = 0;
  #lookedMs = 0;
  #seconds: number | undefined;
  /** Accessibility violations and pages wider than their window, with their state and look. */
  readonly faults: string[] = [];

  constructor(page: Page, task: Task) {
    this.page = page;
    this.#task = task;
  }

  async click(target: Locator): Promise<void> {
    this.#clicks += 1;
    await target.click();
  }

  /** Types into the focused element. */
  async type(text: string): Promise<void> {
    this.#keys += text.length;
    await this.page.keyboard.insertText(text);
  }

  async press(key: string): Promise<void> {
    this.#keys += 1;
    await this.page.keyboard.press(key);
  }

  /** Checks the page in light and dark, wide and narrow. Its duration does not count as time of the task. */
  async look(state: string): Promise<void> {
    const began = performance.now();
    for (const { width, colorScheme } of LOOKS) {
      await this.page.setViewportSize({ width, height: HEIGHT });
      await this.page.emulateMedia({ colorScheme });
      await this.page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor();
      const name = `${this.#task.name}, ${state}, ${width} ${colorScheme}`;
      if (!(await fits(this.page))) this.faults.push(`${name}: runs wide`);
      for (const fault of await allErrors(this.page)) this.faults.push(`${name}: ${fault}`);
      if (this.#shots !== undefined) await this.#shoot(this.#shots, name);
    }
    await this.page.setViewportSize({ width: LOOKS[0]?.width ?? 0, height: HEIGHT });
    await this.page.emulateMedia({ colorScheme: "light" });
    this.#lookedMs += performance.now() - began;
  }

  /** Stops the time of the task. Later steps only verify its result. */
  done(): void {
    this.#seconds = (performance.now() - this.#startedAt - this.#lookedMs) / 1_000;
  }

  get clicks(): number {
    return this.#clicks;
  }

  /**
   * Writes the row of the table: the counts, and the seconds of the pages and of a user by the keystroke-level model.
   */
  line(): string {
    const person = this.#clicks * CLICK_S + this.#keys * KEY_S;
    const { name, least, reason = "" } = this.#task;
    return `| ${[name, this.#clicks, this.#keys, least, this.#seconds?.toFixed(1), person.toFixed(0), reason].join(" | ")} |`;
  }

  async #shoot(folder: string, name: string): Promise<void> {
    const path = `${folder}/${name.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase()}.png`;
    await this.page.screenshot({ path });
  }
}

export const HEAD =
  "| Task | Clicks | Keys | Least clicks | Seconds of the pages | Seconds of a person, reckoned | Why more than four |\n|---|---|---|---|---|---|---|";
