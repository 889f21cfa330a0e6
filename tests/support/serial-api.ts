import { connect } from "../../db/client.ts";
import type { Config } from "../../src/lib/config.ts";
import { startApi, type TestApi } from "./api.ts";
import type { FakeClock } from "./clock.ts";
import type { TestDatabase } from "./postgres.ts";
import { checkRows } from "./statement-rows.ts";

/** Statements that a request may still run one after the other when it is answered, and one more. */
const STATEMENTS_LEFT = 4;

/** A further API with a single connection to the database, on which all statements run one after the other. */
export interface SerialApi extends TestApi {
  /**
   * Resolves once everything has been written that requests have begun and not awaited, such as the last use of a token.
   * So a test can show that a request writes nothing after its answer.
   */
  settled(): Promise<void>;
}

/** Starts an API beside that of a test, with the same keys and clock. It is not for requests at the same time. */
export async function startSerialApi(
  { database, clock, api }: { database: TestDatabase; clock: FakeClock; api: TestApi },
  config: Partial<Config> = {},
): Promise<SerialApi> {
  const db = connect(database.url, { max: 1, name: "test", onRows: checkRows });
  const { config: settings, keys } = api.deps;
  const serial = await startApi({ db, clock, keys, config: { ...settings, ...config } });
  return {
    ...serial,
    async settled() {
      // Each statement waits for those that were sent before it.
      for (let n = 0; n < STATEMENTS_LEFT; n++) await db.sql`select 1`;
    },
    async stop() {
      await serial.stop();
      await db.close();
    },
  };
}
