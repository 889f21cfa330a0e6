import { expect } from "bun:test";
import type { Locator, Page } from "playwright-core";

import { isThorough } from "../thorough.ts";
import { checkLooks } from "./dashboard.ts";
import { heading } from "./locators.ts";
import type { Visits } from "./use-dashboard.ts";

/** A task of a user, and the number of clicks that the dashboard may need for it. */
interface Task {
  readonly name: string;
  /** The clicks of the walk, which goes the way of a user who does not know the dashboard. */
  readonly clicks: number;
}

/** The user who performs a task. */
export interface Walker {
  readonly email: string;
  /** The title of the first page after the sign-in. */
  readonly at: string;
}

/** Performs a task in a page and counts its clicks. */
class Walk {
  readonly page: Page;
  readonly #task: Task;
  #clicks = 0;

  constructor(page: Page, task: Task) {
    this.page = page;
    this.#task = task;
  }

  /** Clicks, or if thorough does the same by keyboard alone. */
  async click(target: Locator): Promise<void> {
    this.#clicks += 1;
    await (isThorough ? pressed(this.page, target) : target.click());
  }

  /** Types into the focused element. */
  type(text: string): Promise<void> {
    return this.page.keyboard.insertText(text);
  }

  /** Checks accessibility and layout of a state of the page. */
  look(state: string): Promise<void> {
    return checkLooks(this.page, `${this.#task.name}, ${state}`);
  }

  get clicks(): number {
    return this.#clicks;
  }
}

/** Keys that move in what has one stop of the Tab key, by role. */
const MOVES: Readonly<Record<string, string>> = {
  menuitem: "ArrowDown",
  option: "ArrowDown",
  tab: "ArrowRight",
};
/** Keys that activate what Enter does not, by role. A text field has no action beside its focus. */
const ACTS: Readonly<Record<string, string>> = { checkbox: "Space", combobox: "ArrowDown" };
const TEXT_FIELD = "textarea, input:not([type=checkbox], [type=radio], [role=combobox])";
/** More than the stops of a page. */
const MOST_MOVES = 200;

/** Moves to an element as people without a mouse do, and activates it. */
async function pressed(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  const is = async (selector: string) => (await target.and(page.locator(selector)).count()) > 0;
  const role =
    (await target.getAttribute("role")) ?? (await target.getAttribute("type")) ?? "button";
  for (let moves = 0; !(await is(":focus, [data-combobox-selected]")); moves += 1) {
    if (moves === MOST_MOVES) throw new Error("No key leads to an element of the task.");
    await page.keyboard.press(MOVES[role] ?? "Tab");
  }
  if (!(await is(TEXT_FIELD))) await page.keyboard.press(ACTS[role] ?? "Enter");
}

/**
 * Performs a task from the first page after the sign-in. Fails if the task needs more clicks than its limit, or if the
 * page reports an error.
 */
export async function walkThrough(
  world: Visits,
  task: Task,
  { email, at }: Walker,
  steps: (walk: Walk, page: Page) => Promise<void>,
): Promise<void> {
  const { page, faults } = await world.open("", { email });
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await heading(page, at).waitFor();
  const walk = new Walk(page, task);
  await steps(walk, page);
  expect(faults).toEqual([]);
  expect(walk.clicks).toBeLessThanOrEqual(task.clicks);
}
