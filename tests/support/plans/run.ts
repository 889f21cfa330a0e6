// Fills a migrated database and measures every hot statement in each state of the planner's statistics.
import { connect, type RawDb } from "../../../db/client.ts";
import { keepPlans, readingOf, type PlanMode, type Reading, type WatchedDb } from "./blocks.ts";
import { planCases } from "./cases.ts";
import type { PlanCase } from "./reads.ts";
import { fillPlans, seedPlans, STATISTICS, type PlanSizes } from "./data.ts";

const MODES: readonly PlanMode[] = ["force_generic_plan", "force_custom_plan"];

/** `kept`: with cached plans from when the tables were nearly empty. */
type PlanState = "kept" | keyof typeof STATISTICS;

export interface Measured extends Reading {
  readonly state: PlanState;
  readonly mode: PlanMode;
  readonly one: PlanCase;
}

export async function measurePlans(
  { url, db }: { readonly url: string; readonly db: RawDb },
  sizes: PlanSizes,
): Promise<Measured[]> {
  const cases = planCases(sizes);
  const measured: Measured[] = [];
  const measure = async (on: WatchedDb, state: PlanState, mode: PlanMode) => {
    for (const one of cases)
      measured.push({ one, state, mode, ...(await readingOf(on, one, mode)) });
  };
  await seedPlans(db, sizes);
  await db.sql.unsafe("analyze");
  const early = watched(url);
  for (const one of cases) await keepPlans(early, one);
  await fillPlans(db, sizes);
  await measure(early, "kept", "force_generic_plan");
  await early.db.close();
  for (const [state, prepare] of Object.entries(STATISTICS)) {
    await prepare(db);
    const on = watched(url);
    for (const mode of MODES) await measure(on, state as PlanState, mode);
    await on.db.close();
  }
  return measured;
}

function watched(url: string): WatchedDb {
  const sent: WatchedDb["sent"] = [];
  const onStatement = (text: string, parameters: readonly unknown[]) =>
    void sent.push({ text, parameters });
  return { db: connect(url, { max: 1, name: "plans", onStatement }), sent };
}
