import { type PgBouncer, runPgBouncer } from "../../../scripts/demo/stores/pgbouncer.ts";
import { program } from "../needs.ts";

export type { PgBouncer };

/** Starts a real PgBouncer before a server, with fewer server connections than clients. */
export const startPgBouncer = (
  url: string,
  options: Parameters<typeof runPgBouncer>[2],
): Promise<PgBouncer> => runPgBouncer(program("pgbouncer"), url, options);
