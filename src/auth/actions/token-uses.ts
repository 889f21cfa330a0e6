import type { Db } from "../../../db/client.ts";
import type { Call } from "../../http/call.ts";
import type { Principal } from "../../http/principal.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import { keepNewestUses, saveUse } from "../queries/token-uses.ts";
import { AUDITED_IN_USE } from "./authenticate.ts";

interface TokenUsesDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** A use that was written is written again after so long: a minute is exact enough. */
const STEP_MS = 60_000;
/** So many uses are remembered; where there are more, all are forgotten and written once more. */
const REMEMBERED = 10_000;

/**
 * Writes where tokens are used that live apart from a sign-in, once a minute for each route and address. The request
 * neither waits for it nor fails with it. Each process remembers for itself what it has written.
 */
export class TokenUses {
  readonly #deps: TokenUsesDeps;
  /** By token, route and address: until when there is nothing to write. */
  readonly #written = new Map<string, Date>();

  constructor(deps: TokenUsesDeps) {
    this.#deps = deps;
  }

  note({ tokenKind, jti }: Principal, { ip }: Call, route: string): void {
    if (!AUDITED_IN_USE.has(tokenKind)) return;
    const key = `${jti} ${ip} ${route}`;
    const at = this.#deps.clock.now();
    const until = this.#written.get(key);
    if (until !== undefined && at < until) return;
    if (this.#written.size >= REMEMBERED) this.#written.clear();
    this.#written.set(key, addMs(at, STEP_MS));
    this.#write({ jti, route, ip, at }).catch((error: unknown) =>
      this.#deps.log.warn("token.use_lost", errorFields(error)),
    );
  }

  async #write(use: Parameters<typeof saveUse>[1]): Promise<void> {
    const { db } = this.#deps;
    if (await saveUse(db, use)) await keepNewestUses(db, use.jti);
  }
}
