import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { exchangeOf, type Exchange } from "./exchange.ts";
import type { Answered } from "./metrics.ts";

/** Asked for every few seconds by whoever runs us, so that they would drown everything else. */
const QUIET = new Set(["/healthz", "/readyz"]);
/** The name of a method may be anything. */
const METHOD_CHARS = 16;

/**
 * One line for each answered request, by its id, which partners are told to quote. The route is the pattern of the path,
 * and a path that is none of ours is not shown: ids, codes and tokens that somebody put into an address stay out.
 */
export function accessLog(clock: Clock, log: Log): Answered {
  return (request, route, status) => {
    const exchange = exchangeOf(request);
    const line = {
      request_id: exchange.call.requestId,
      method: request.method.slice(0, METHOD_CHARS),
      route: route ?? null,
      status,
      duration_ms: Math.round((clock.monotonicMs() - exchange.startedMs) * 10) / 10,
      ...callerOf(exchange),
    };
    if (route !== undefined && QUIET.has(route)) log.debug("request.answered", line);
    else log.info("request.answered", line);
  };
}

/** Who asked, by ids; without a token that counts, from where. */
function callerOf({ principal, call }: Exchange) {
  if (principal === undefined) return { ip: call.ip };
  const { userId, companyId, clientId, impersonatorId, tokenKind } = principal;
  return {
    user_id: userId,
    company_id: companyId,
    token: tokenKind,
    ...(clientId !== null && { client_id: clientId }),
    ...(impersonatorId !== null && { impersonator_id: impersonatorId }),
  };
}
